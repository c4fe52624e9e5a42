# SPDX-License-Identifier: Apache-2.0
"""The real cluster-api-addon-provider, from a checkout that ``$ADDON_PROVIDER`` names.

It takes the place of the simulated one (:mod:`sandbox.addons`) where a sandbox is started with it:
the same name among the processes, the same port of its health. It has a service account with the
role of its own chart and no other right, and runs in a Python with its own requirements (``tox -e
addon-provider``). Nothing of it is part of this project.
https://github.com/azimuth-cloud/cluster-api-addon-provider
"""

import os
from pathlib import Path

import yaml

from sandbox.management import tenant_api
from sandbox.management.operator_checkout import OperatorCheckout
from sandbox.state import SandboxError, State

CHECKOUT = OperatorCheckout(
    release="cluster-api-addon-provider",
    # Short: a certificate's common name, here the account's, has 64 characters at most.
    namespace="capi-addons",
    variable="ADDON_PROVIDER",
    marker="capi_addons/operator.py",
    python_variable="K8S_CAPI_HELM_ADDON_PROVIDER_PYTHON",
    environment="addon-provider",
)
GROUP = "addons.stackhpc.com"
SIMULATED, REAL = KINDS = ("simulated", "real")
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
        CHECKOUT.source()
        CHECKOUT.python()
        if tenant_api.chosen(state) != tenant_api.REAL:
            raise SandboxError(
                "--addon-provider real: Helm needs real API servers in the clusters; add "
                "--tenant-api real"
            )
    state.record(addon_provider=kind)


def prepare(state: State, place: Path, address: str) -> tuple[list[str], dict[str, str]]:
    """Apply its role, and return its command line and environment.

    :param place: directory of the programs of the management cluster.
    :param address: of its health.
    :raises SandboxError: there is no checkout or no Python, or the API server refuses.
    """
    kubeconfig = CHECKOUT.apply(state, CHECKOUT.objects(place))
    config = state.path("management", "addon-provider.yaml")
    config.write_text(yaml.safe_dump(CONFIG))
    argv = CHECKOUT.kopf("capi_addons.operator", address)
    folders = {
        f"HELM_{name}_HOME": str(state.path("management", "helm", name.lower(), "x").parent)
        for name in ("CACHE", "CONFIG", "DATA")
    }
    return argv, {
        **folders,
        "CAPI_ADDON_PROVIDER_CONFIG": str(config),
        "KUBECONFIG": str(kubeconfig),
        "PYTHONPATH": str(CHECKOUT.source()),
        "PATH": os.pathsep.join([str(place), os.environ.get("PATH", "")]),
    }
