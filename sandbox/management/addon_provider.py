# SPDX-License-Identifier: Apache-2.0
"""The real cluster-api-addon-provider, from a checkout that ``$ADDON_PROVIDER`` names.

It takes the place of the simulated one (:mod:`sandbox.addons`) where a sandbox is told so: the same
name among the processes, the same port of its health. It has a service account with the role of
its own chart and no other right, and runs in a Python with its own requirements (``tox -e
addon-provider``). Nothing of it is part of this project.
https://github.com/azimuth-cloud/cluster-api-addon-provider
"""

import os
from pathlib import Path
import subprocess

import yaml

from sandbox.management import binaries, server, tenant_api
from sandbox.management.api import Api
from sandbox.management.connection import Document
from sandbox.management.pki import Pki, write_private
from sandbox.state import SandboxError, State

NAMESPACE, GROUP = "capi-addon-system", "addons.stackhpc.com"
CHECKOUT, PYTHON = "ADDON_PROVIDER", "K8S_CAPI_HELM_ADDON_PROVIDER_PYTHON"
RELEASE = "cluster-api-addon-provider"
#: What of its chart a cluster without nodes can use.
APPLIED = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")
SIMULATED, REAL = KINDS = ("simulated", "real")
RENDER_TIMEOUT = 60.0
#: The real ones are 15 s and an hour; a sandbox is made for a short wait.
CONFIG = {"temporaryErrorDelay": 5, "helmClient": {"defaultTimeout": "3m"}}


def chosen(state: State) -> str:
    """Which of both a sandbox has."""
    return str(state.get("addon_provider", SIMULATED))


def choose(state: State, kind: str) -> None:
    """Remember which one starts next.

    :raises SandboxError: the real one has no checkout, no Python, or no real API servers; or the
        management cluster has the CRDs of the other one.
    """
    before = chosen(state)
    if kind != before and (state.root / "management" / "etcd").exists():
        raise SandboxError(
            f"the management cluster has the CRDs of the {before} addon provider; `python -m "
            f"sandbox reset --addon-provider {kind}` creates a new sandbox"
        )
    if kind == REAL:
        checkout()
        python()
        if tenant_api.chosen(state) != tenant_api.REAL:
            raise SandboxError(
                "--addon-provider real: Helm needs real API servers in the clusters; add "
                "--tenant-api real"
            )
    state.record(addon_provider=kind)


def checkout() -> Path:
    """The checkout that ``$ADDON_PROVIDER`` names.

    :raises SandboxError: it names none; the text says what to set.
    """
    named = os.environ.get(CHECKOUT, "")
    path = Path(named).resolve()
    if not named or not (path / "capi_addons" / "operator.py").is_file():
        raise SandboxError(f"${CHECKOUT} is {named!r}, which is no checkout of {RELEASE}")
    return path


def python() -> str:
    """The Python that ``$K8S_CAPI_HELM_ADDON_PROVIDER_PYTHON`` names.

    :raises SandboxError: it names none; the text says how to make one.
    """
    named = os.environ.get(PYTHON, "")
    if not os.access(named, os.X_OK):
        raise SandboxError(
            f"${PYTHON} is {named!r}: it has to be a Python with the requirements of {RELEASE}; "
            f"{CHECKOUT}=... tox -e addon-provider creates one in .tox/addon-provider"
        )
    return named


def prepare(state: State, place: Path, address: str) -> tuple[list[str], dict[str, str]]:
    """Apply its role, and return its command line and environment.

    :param place: directory of the programs of the management cluster.
    :param address: of its health.
    :raises SandboxError: there is no checkout or no Python, or the API server refuses.
    """
    source = checkout()
    objects = chart(source, place)
    api = Api(server.kubeconfig(state))
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    api.apply_all(one for one in objects if one["kind"] in APPLIED)
    config = state.path("management", "addon-provider.yaml")
    config.write_text(yaml.safe_dump(CONFIG))
    operator = ["--module", "capi_addons.operator", "--all-namespaces"]
    argv = [python(), "-m", "kopf", "run", *operator, f"--liveness=http://{address}/healthz"]
    folders = {
        f"HELM_{name}_HOME": str(state.path("management", "helm", name.lower(), "x").parent)
        for name in ("CACHE", "CONFIG", "DATA")
    }
    return argv, {
        **folders,
        "CAPI_ADDON_PROVIDER_CONFIG": str(config),
        "KUBECONFIG": str(_write_kubeconfig(state, objects)),
        "PYTHONPATH": str(source),
        "PATH": os.pathsep.join([str(place), os.environ.get("PATH", "")]),
    }


def chart(source: Path, place: Path) -> list[Document]:
    """The objects of its own chart, rendered by Helm as its operators have them.

    :raises SandboxError: Helm does not render it.
    """
    argv = [binaries.require(place, "helm"), "template", RELEASE, str(source / "chart")]
    done = subprocess.run(
        [*argv, f"--namespace={NAMESPACE}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=RENDER_TIMEOUT,
    )
    if done.returncode:
        raise SandboxError(f"helm cannot render {source / 'chart'}: {done.stderr.strip()}")
    found: list[Document] = [one for one in yaml.safe_load_all(done.stdout) if one]
    for one in found:
        if one["kind"] == "ServiceAccount":
            one["metadata"]["namespace"] = NAMESPACE
    return found


def _write_kubeconfig(state: State, objects: list[Document]) -> Path:
    """A kubeconfig with which it is its service account, by a certificate."""
    (account,) = (one for one in objects if one["kind"] == "ServiceAccount")
    user = f"system:serviceaccount:{NAMESPACE}:{account['metadata']['name']}"
    certificate, key = Pki(state).client_certificate(user, RELEASE)
    identity = {"client-certificate": str(certificate), "client-key": str(key)}
    path = state.path("management", f"{RELEASE}.kubeconfig")
    config = server.user_kubeconfig(state, RELEASE, identity)
    write_private(path, yaml.safe_dump(config).encode())
    return path
