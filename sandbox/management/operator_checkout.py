# SPDX-License-Identifier: Apache-2.0
"""A real operator of the management cluster that is no package: it runs from a checkout.

It is a service account with the roles of its own chart and no other right, as a process of the
sandbox instead of a Pod. Nothing of it is part of this project.
"""

import dataclasses
import os
from pathlib import Path
import subprocess

import yaml

from sandbox.management import binaries, server
from sandbox.management.api import Api
from sandbox.management.connection import Document
from sandbox.management.pki import Pki, write_private
from sandbox.state import SandboxError, State

#: What of its chart a cluster without nodes can use; a Deployment is read only.
APPLIED = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")
_NAMESPACED = ("ServiceAccount", "Deployment")
_RENDER_TIMEOUT = 60.0


@dataclasses.dataclass(frozen=True)
class OperatorCheckout:
    """Where an operator comes from, and who it is.

    :ivar release: the name of its chart's release, and so of the objects of its chart.
    :ivar variable: of the environment, which names the checkout.
    :ivar marker: a file that only such a checkout has.
    :ivar python_variable: of the environment, which names the Python with its requirements.
    :ivar environment: the tox environment that has such a Python.
    """

    release: str
    namespace: str
    variable: str
    marker: str
    python_variable: str
    environment: str

    def source(self) -> Path:
        """The checkout.

        :raises SandboxError: the variable names none; the text says what to set.
        """
        named = os.environ.get(self.variable, "")
        if not named:
            raise SandboxError(f"${self.variable} names no checkout of {self.release}")
        path = Path(named).resolve()
        if not (path / self.marker).is_file():
            raise SandboxError(
                f"${self.variable} is {path}, which is no checkout of {self.release}"
            )
        return path

    def python(self) -> str:
        """The Python with its requirements.

        :raises SandboxError: the variable names none; the text says how to make one.
        """
        named = os.environ.get(self.python_variable, "")
        if not os.access(named, os.X_OK):
            checkout = os.environ.get(self.variable) or "<checkout>"
            raise SandboxError(
                f"${self.python_variable} is {named!r}: it has to be a Python with the "
                f"requirements of {self.release}; {self.variable}={checkout} tox -e "
                f"{self.environment} creates one in .tox/{self.environment}"
            )
        return named

    def kopf(self, module: str, address: str) -> list[str]:
        """Its command line, if it is a program of kopf.

        :param address: of its health.
        :raises SandboxError: as :meth:`python`.
        """
        operator = ["--module", module, "--all-namespaces"]
        liveness = f"--liveness=http://{address}/healthz"
        return [self.python(), "-m", "kopf", "run", *operator, liveness]

    def objects(self, place: Path) -> list[Document]:
        """The objects of its own chart, rendered by Helm as its operators have them.

        :param place: directory of the programs of the management cluster.
        :raises SandboxError: there is no checkout, or Helm does not render it.
        """
        chart = self.source() / "chart"
        argv = [binaries.require(place, "helm"), "template", self.release, str(chart)]
        done = subprocess.run(
            [*argv, f"--namespace={self.namespace}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_RENDER_TIMEOUT,
        )
        if done.returncode:
            raise SandboxError(f"helm cannot render {chart}: {done.stderr.strip()}")
        found: list[Document] = [one for one in yaml.safe_load_all(done.stdout) if one]
        for one in found:
            if one["kind"] in _NAMESPACED:
                one["metadata"]["namespace"] = self.namespace
        return found

    def apply(self, state: State, objects: list[Document]) -> Path:
        """Let it have its service account and its roles; returns a kubeconfig with which it is it.

        :param objects: of its chart.
        :raises SandboxError: the API server refuses.
        """
        api = Api(server.kubeconfig(state))
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        api.apply_all(one for one in objects if one["kind"] in APPLIED)
        return self.write_kubeconfig(state, objects)

    def write_kubeconfig(self, state: State, objects: list[Document]) -> Path:
        """A kubeconfig with which it is its service account.

        By a certificate: Kubernetes clients take a token only out of a Pod's own directory.
        """
        (account,) = (one for one in objects if one["kind"] == "ServiceAccount")
        user = f"system:serviceaccount:{self.namespace}:{account['metadata']['name']}"
        certificate, key = Pki(state).client_certificate(user, self.release)
        identity = {"client-certificate": str(certificate), "client-key": str(key)}
        path = state.path("management", f"{self.release}.kubeconfig")
        config = server.user_kubeconfig(state, self.release, identity)
        write_private(path, yaml.safe_dump(config).encode())
        return path
