# SPDX-License-Identifier: Apache-2.0
"""The real k8s-keystone-auth behind a real API server: who has which role in Keystone may do what.

The API server has the flags and files that the chart gives it, and asks the webhook by them.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
import secrets
from typing import Any

import openstack

from magnum.tests.functional.k8s_capi_helm.cloud_programs import keystone_webhook
from magnum.tests.functional.k8s_capi_helm.cloud_programs.keystone_webhook import (
    ADMINISTRATOR,
    READER,
    SYSTEM,
)
from magnum.tests.functional.k8s_capi_helm.cloud_programs.pod_process import PodProcess
from magnum.tests.functional.k8s_capi_helm.cloud_programs.program_life import ProgramLife, workload
from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management
from magnum.tests.functional.k8s_capi_helm.waiting import until
from sandbox.cloud import seed
from sandbox.management import cloud_programs, server
from sandbox.management.connection import Connection, Refused
from sandbox.management.pki import Pki, write_private

_SECRETS = "/api/v1/namespaces/{}/secrets"
_LABELS = {"keystone_auth_enabled": "true"}


class KeystoneUsers(ProgramLife):
    """A cluster whose users come with tokens of Keystone."""

    name = "keystone-users"
    webhook: PodProcess
    tokens: dict[str, str]

    @step
    def create(self) -> None:
        """A cluster with the label."""
        template = self.customer.template(labels=_LABELS)
        self.customer.create(template=template).complete("CREATE")
        self._people = contextlib.ExitStack()
        self.tokens = {}

    @step
    def install_webhook(self) -> None:
        """The webhook starts with the addon's values, the API server with the chart's flags."""
        self.start_api()
        objects = keystone_webhook.objects(self.addon("k8s-keystone-auth"))
        self.api.apply(objects, SYSTEM)
        program, port = cloud_programs.KEYSTONE_AUTH, self.api.state.port("webhook")
        self.webhook = PodProcess(
            self.api,
            workload(objects, program),
            program,
            mounts={"/etc/kubernetes/pki": self._keys()},
        )
        listen = f"--listen=127.0.0.1:{port}"
        self.webhook.start(f"--kubeconfig={self.webhook.kubeconfig()}", listen)
        until(lambda: "Starting webhook server" in self.webhook.log(), "the webhook answers")
        namespace, name = self.customer.tenant.namespace, f"{self.cluster.release}-control-plane"
        control_plane = management().named("KubeadmControlPlane", namespace, name)
        flags = keystone_webhook.flags(control_plane, self._folder("keystone-auth"), port)
        names = {"authentication-token-webhook-config-file", "authorization-config"}
        assert set(flags) == names, flags
        self.api.restart(flags)

    @step
    def reader(self) -> None:
        """Who has the role of a reader reads, but not what belongs to the system."""
        self.tokens[READER] = self._person(READER, self.customer.tenant.project_id)
        assert self._status(READER, "GET", "default") == 200
        assert self._status(READER, "POST", "default") == 403
        assert self._status(READER, "GET", SYSTEM) == 403

    @step
    def administrator(self) -> None:
        """Who has the role of an administrator may do everything."""
        self.tokens[ADMINISTRATOR] = self._person(ADMINISTRATOR, self.customer.tenant.project_id)
        assert self._status(ADMINISTRATOR, "GET", SYSTEM) == 200
        assert self._status(ADMINISTRATOR, "POST", "default") == 201

    @step
    def nobody(self) -> None:
        """Another role, the same role in another project, and no token of Keystone are refused."""
        self.tokens["member"] = self._person("member", self.customer.tenant.project_id)
        assert self._status("member", "GET", "default") == 403
        other = seed.connect(setting.state(), "demo").current_project_id
        self.tokens["elsewhere"] = self._person(ADMINISTRATOR, other)
        assert self._status("elsewhere", "GET", "default") == 403
        self.tokens["invented"] = "no-token-of-keystone"
        assert self._status("invented", "GET", "default") == 401

    @step
    def group_names(self) -> None:
        """A group of Keystone is one of Kubernetes with the same name, in every project.

        Neither the webhook nor the API server can give the names a prefix, or leave some out.
        """
        other = seed.connect(setting.state(), "demo").current_project_id
        self.tokens["grouped"] = self._person("member", other, group="system:masters")
        assert self._status("grouped", "GET", SYSTEM) == 200

    @step
    def without_webhook(self) -> None:
        """While the webhook is down, Kubernetes' own users and rights go on as before."""
        self.webhook.stop()
        self.tokens["late"] = self._person(READER, self.customer.tenant.project_id)
        assert self._status("late", "GET", "default") == 401
        assert self.api.find(_SECRETS.format(SYSTEM)) is not None

    @ending
    def delete(self) -> None:
        """The cluster is deleted."""
        self._people.close()
        self.customer.delete()

    @ending
    def sweep(self) -> None:
        """The tenant can leave."""
        self.customer.leave()

    def _status(self, who: str, method: str, namespace: str) -> int:
        """Status of a request about Secrets with the token of a user."""
        config = server.user_kubeconfig(self.api.state, who, {"token": self.tokens[who]})
        body = None
        if method == "POST":
            body = {"metadata": {"generateName": "of-a-test-"}, "stringData": {"key": "value"}}
        try:
            Connection(config).request(method, _SECRETS.format(namespace), body=body)
        except Refused as error:
            return error.status
        return 201 if method == "POST" else 200

    def _person(self, role: str, project: str, group: str = "") -> str:
        """A token of a new user with a role in a project; both go with the cluster.

        :param group: a new one of Keystone, of which the user is a member.
        """
        admin = seed.connect(setting.state(), "admin")
        name, password = f"{role}-{secrets.token_hex(3)}", secrets.token_urlsafe(16)
        user = admin.identity.create_user(name=name, domain_id="default", password=password)
        self._people.callback(admin.identity.delete_user, user)
        found = admin.identity.find_role(role) or admin.identity.create_role(name=role)
        admin.identity.assign_project_role_to_user(project, user, found)
        if group:
            made = admin.identity.create_group(name=group, domain_id="default")
            self._people.callback(admin.identity.delete_group, made)
            admin.identity.add_user_to_group(user, made)
        connection: Any = openstack.connection.Connection(
            auth={
                "auth_url": admin.config.get_auth_args()["auth_url"],
                "username": name,
                "password": password,
                "project_id": project,
                "user_domain_id": "default",
            },
            region_name=admin.config.get_region_name(),
        )
        return str(connection.authorize())

    def _keys(self) -> Path:
        """In place of the keys of kubeadm: those of this API server."""
        pki, folder = Pki(self.api.state), self._folder("pki")
        write_private(folder / "apiserver.crt", pki.certificate.read_bytes())
        write_private(folder / "apiserver.key", pki.key.read_bytes())
        return folder

    def _folder(self, name: str) -> Path:
        folder = self.api.state.path("programs", name, "x").parent
        folder.mkdir(parents=True, exist_ok=True)
        return folder


class TestKeystoneUsers(LifeCase, life=KeystoneUsers):
    """A test for each step."""
