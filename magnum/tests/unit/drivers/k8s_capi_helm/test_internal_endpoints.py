# SPDX-License-Identifier: Apache-2.0
"""Magnum asks inside, and a cluster's Secret has what its machines reach.

Machines of tenants have no way to a cloud's internal network, and a conductor often none to the
public endpoints. Both are right by Magnum's own options, ``[keystone_auth] auth_url`` and
``[*_client] endpoint_type``, and by one of the driver.
"""

from __future__ import annotations

import base64
import pathlib
import subprocess
import sys
from typing import Any

import fixtures
import yaml

import magnum.conf
from magnum.drivers.k8s_capi_helm import conf, errors
from magnum.drivers.k8s_capi_helm.model import CredentialRoles, names, secrets
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.process import clients
from magnum.drivers.k8s_capi_helm.reconcile.release import prerequisites
from magnum.tests import base
from magnum.tests.unit.drivers.k8s_capi_helm import fakes, test_cloud
from magnum.tests.unit.drivers.k8s_capi_helm.test_cloud_regions import CLIENTS, HOME, RegionCase

CONF = magnum.conf.CONF
conf.register_opts(CONF)
#: Literals of IPv6, which need brackets in each URL.
OUTSIDE, INSIDE = "https://[2001:db8::5]:13000", "http://[fd00::5]:5000"
AUTHORITY = "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n"


class HeldLease:
    """A lock that is never lost."""

    def check(self) -> None:
        """Nothing to say."""


class TestSecret(RegionCase):
    def setUp(self) -> None:
        super().setUp()
        self.choose(nova=HOME)
        for client in (*CLIENTS, "glance"):
            self.config(group=f"{client}_client", endpoint_type="internalURL")
        self.openstack.closed, self.openstack.outside = {"public", "admin"}, OUTSIDE
        self.openstack.base = INSIDE
        self.again()

    def saved(self) -> dict[str, str]:
        """The texts of the Secret that a create writes."""
        kube, request = fakes.FakeKube(), test_cloud.request()
        kube.put(names.NAMESPACE, {"metadata": {"name": request.namespace}})
        interface = CONF.capi_helm.app_cred_interface_type
        credential = prerequisites.NewCredential(
            "magnum-demo", self.cloud.auth_url(interface), CredentialRoles(("member",), None)
        )
        ports = self.clients(kube)
        run = Reconciliation(ports, CONF, lambda: self.cloud, ports.clock())
        lock: Any = HeldLease()
        prerequisites.save_credentials(run, lock, secrets.Owner.of(request), credential)
        secret = kube.get(names.SECRET, "magnum-p1", names.credential_secret(request.release))
        return {
            key: base64.b64decode(text).decode() for key, text in (secret or {})["data"].items()
        }

    @staticmethod
    def clients(kube: Any) -> clients.Clients:
        nothing: Any = None
        return clients.Clients(kube=kube, leases=nothing, helm=nothing, charts=nothing)

    @staticmethod
    def login(texts: dict[str, str]) -> dict[str, Any]:
        """What a clouds.yaml says, without the credential."""
        cloud: dict[str, Any] = yaml.safe_load(texts["clouds.yaml"])["clouds"]["openstack"]
        shown = {"interface", "endpoint_type", "region_name", "verify"}
        return {
            "auth_url": cloud["auth"]["auth_url"],
            **{key: value for key, value in cloud.items() if key in shown},
        }

    def test_machines_get_the_public_endpoint_and_magnum_asks_inside(self) -> None:
        authority = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "ca.pem"
        authority.write_text(AUTHORITY)
        self.config(group="drivers", openstack_ca_file=str(authority), verify_ca=True)
        self.asks_all()
        texts = self.saved()
        expected = {
            "auth_url": f"{OUTSIDE}/identity/v3",
            "interface": "public",
            "endpoint_type": "public",
            "region_name": HOME,
            "verify": True,
        }
        self.assertEqual(expected, self.login(texts))
        self.assertEqual(AUTHORITY, texts["cacert"])
        self.assertEqual({INSIDE}, self.openstack.hosts)

    def test_whether_keystone_accepts_it_is_asked_inside(self) -> None:
        content = base64.b64encode(self.saved()["clouds.yaml"].encode()).decode()
        [credential] = secrets.credentials_of({"data": {secrets.CLOUDS: content}})
        self.assertTrue(self.cloud.accepts(credential))
        self.assertEqual({INSIDE}, self.openstack.hosts)

    def test_the_operator_may_choose_another_interface(self) -> None:
        self.config(group="capi_helm", app_cred_interface_type="internal")
        login = self.login(self.saved())
        self.assertEqual(f"{INSIDE}/identity/v3", login["auth_url"])
        self.assertEqual(("internal",) * 2, (login["interface"], login["endpoint_type"]))

    def test_an_authority_that_cannot_be_read_is_named_before_a_credential_is_made(self) -> None:
        self.config(group="drivers", openstack_ca_file="/nowhere/ca.pem")
        error = self.assertRaises(errors.InvalidConfiguration, self.saved)
        self.assertIn("Ask its operator to look into the log.", str(error))
        self.assertIn("[drivers] openstack_ca_file is /nowhere/ca.pem: ", error.detail)
        self.assertEqual({}, self.openstack.credentials)

    def test_services_that_are_asked_on_another_interface_than_resolves_are_named(self) -> None:
        """The trap: Magnum's own default is the public interface of each service."""
        self.config(group="nova_client", endpoint_type="publicURL")
        self.openstack.outside = None
        self.again()
        error = self.assertRaises(errors.CloudUnreachable, self.cloud.facts, test_cloud.request())
        self.assertEqual(
            "Nova does not answer. The request for the flavors failed; try again in some minutes.",
            str(error),
        )
        self.assertIn(f"http://public.{HOME}.invalid", error.detail)


class TestLogin(base.TestCase):
    """Where Magnum logs in, by the options that installers write."""

    USER = (
        "auth_type = password\nauth_url = http://inside.example:5000\nusername = magnum\n"
        "password = secret\nproject_name = service\nuser_domain_name = Default\n"
        "project_domain_name = Default\n"
    )

    def login(self, text: str) -> str | None:
        """The address by a magnum.conf."""
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "magnum.conf"
        path.write_text(text)
        # Read by a process of its own, as options of plugins are registered for ever.
        program = (
            "import sys, magnum.conf\n"
            "from keystonemiddleware import auth_token\n"
            "from magnum.common import context\n"
            "from magnum.drivers.k8s_capi_helm.cloud.access import endpoints\n"
            "magnum.conf.CONF(['--config-file', sys.argv[1]], project='magnum')\n"
            "person = context.RequestContext(auth_token='t')\n"
            "print(endpoints.KeystoneClient(person, endpoints.login_url).auth_url)\n"
        )
        ended = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program, str(path)],
            capture_output=True,
            check=True,
            text=True,
            timeout=120,
        )
        return ended.stdout.strip()

    def test_the_service_users_own_address_and_not_the_public_one(self) -> None:
        public = "www_authenticate_uri = https://public.example:5000\n"
        for text in (
            f"[keystone_auth]\n{self.USER}[keystone_authtoken]\n{public}",
            "[keystone_auth]\nauth_section = keystone_authtoken\n"
            f"[keystone_authtoken]\n{public}{self.USER}",
        ):
            self.assertEqual("http://inside.example:5000", self.login(text), text)

    def test_only_the_public_one_is_known(self) -> None:
        text = "[keystone_authtoken]\nwww_authenticate_uri = https://public.example:5000\n"
        self.assertEqual("https://public.example:5000", self.login(text))
