# SPDX-License-Identifier: Apache-2.0
"""A real API server in place of the simulated one of a cluster.

The sandbox's machines answer with an in-memory API server, which knows neither RBAC nor Services.
Programs of the cluster run against this one instead; the test adds the Nodes as kubelets do. What
they need of it is a connection and kubeconfigs of service accounts, which any other API server of
the cluster can offer too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import json
from pathlib import Path
import shutil
import subprocess
import tempfile
from typing import Any

import yaml

from magnum.tests.functional.k8s_capi_helm import waiting
from sandbox import processes
from sandbox.management import binaries, server
from sandbox.management.api import Api
from sandbox.management.connection import Connection, Refused
from sandbox.management.pki import Pki, write_private
from sandbox.state import State

Object = dict[str, Any]
Flags = Mapping[str, str]

#: Of the objects of these charts, those that live in a namespace.
_NAMESPACED = ("ConfigMap", "DaemonSet", "Deployment", "Secret", "ServiceAccount")
_CONTROLLERS = (
    *server.CONTROLLERS,
    "persistentvolume-binder-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
)
#: Flags with which kubeadm starts every API server: volume drivers have privileged containers.
_KUBEADM = {"allow-privileged": "true"}
_TOKEN_LIFETIME = 6 * 3600


class TenantApi:
    """etcd, kube-apiserver and kube-controller-manager of one cluster.

    :param folder: where all of it is kept; what an earlier run has left there is removed.
    :param flags: of kube-apiserver, without the dashes; they replace the sandbox's own.
    """

    def __init__(self, folder: Path, flags: Flags | None = None) -> None:
        processes.stop_all(State(folder))
        shutil.rmtree(folder)
        self.state = State(folder)
        self._place = binaries.build(self.state)
        self._flags = flags or {}
        self._shared = tempfile.TemporaryDirectory()

    def start(self) -> TenantApi:
        """Start it, and wait until it answers.

        :raises SandboxError: it does not; the text ends with its log.
        """
        Pki(self.state).ensure()
        server.write_users(self.state)
        processes.start(self.state, "etcd", server.etcd(self.state, self._place))
        self._start_apiserver()
        argv = server.controller_manager(self.state, self._place)
        argv = changed(argv, {"controllers": ",".join(_CONTROLLERS)})
        processes.start(self.state, "kube-controller-manager", argv)
        return self

    def restart(self, flags: Flags) -> None:
        """Start kube-apiserver again with other flags.

        :raises SandboxError: it does not answer then; the text ends with its log.
        """
        processes.stop(self.state, "kube-apiserver")
        self._flags = flags
        self._start_apiserver()

    def stop(self) -> None:
        """End it, and every program that was started beside it."""
        processes.stop_all(self.state)
        self._shared.cleanup()

    def shared(self, name: str) -> Path:
        """A directory for files of containers of one Pod; its path is short enough for a socket."""
        folder = Path(self._shared.name, name)
        folder.mkdir(exist_ok=True)
        return folder

    def request(self, method: str, path: str, body: Object | None = None) -> Object:
        """One request of the administrator; a PATCH is a merge patch.

        :raises Refused: the API server answered with an error.
        """
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return self.connection.request(method, path, body=body, content_type=content)

    def find(self, path: str) -> Object | None:
        """The object at a path, None when it does not exist."""
        try:
            return self.request("GET", path)
        except Refused as error:
            if error.status == 404:
                return None
            raise

    def apply(self, objects: Iterable[Object], namespace: str) -> None:
        """Apply objects as Helm does, those without a namespace in the one of the release.

        :raises AssertionError: kubectl fails; the text is what it said.
        """
        found = [_placed(one, namespace) for one in objects]
        argv = [binaries.require(self._place, "kubectl"), "apply", "--server-side", "-f", "-"]
        done = subprocess.run(
            [*argv, f"--kubeconfig={server.kubeconfig(self.state)}"],
            input=json.dumps({"apiVersion": "v1", "kind": "List", "items": found}),
            capture_output=True,
            text=True,
            check=False,
            timeout=waiting.LIMIT,
        )
        assert done.returncode == 0, done.stderr

    def kubeconfig(self, namespace: str, account: str) -> Path:
        """A kubeconfig with the token of a service account, which has to be there."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        asked = {"spec": {"expirationSeconds": _TOKEN_LIFETIME}}
        token = self.request("POST", path, asked)["status"]["token"]
        target = self.state.path("programs", f"{account}.kubeconfig")
        config = server.user_kubeconfig(self.state, account, {"token": token})
        write_private(target, yaml.safe_dump(config).encode())
        return target

    @property
    def connection(self) -> Connection:
        """The administrator's."""
        return Connection(server.kubeconfig(self.state))

    def _start_apiserver(self) -> None:
        processes.start(
            self.state,
            "kube-apiserver",
            changed(server.apiserver(self.state, self._place), {**_KUBEADM, **self._flags}),
            ready=Api(server.kubeconfig(self.state)).answers,
            timeout=server.START_TIMEOUT,
        )


def changed(argv: Sequence[str], flags: Flags) -> list[str]:
    """A command line with other flags; a file of authorizers excludes the flag that names some."""
    replaced = {*flags, *(["authorization-mode"] if "authorization-config" in flags else [])}
    kept = [one for one in argv if one.partition("=")[0].removeprefix("--") not in replaced]
    return [*kept, *(f"--{name}={value}" for name, value in flags.items())]


def _placed(one: Object, namespace: str) -> Object:
    if one["kind"] not in _NAMESPACED:
        return one
    return {**one, "metadata": {"namespace": namespace, **one["metadata"]}}
