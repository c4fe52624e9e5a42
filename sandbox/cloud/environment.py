# SPDX-License-Identifier: Apache-2.0
"""Environment variables of the services' processes, and of those who ask them."""

import os

from sandbox import processes
from sandbox.cloud import plugins
from sandbox.cloud.config import Paths
from sandbox.cloud.services import HOST
from sandbox.state import State

# Variables that would lead a service away from its own files or certificates.
NOT_PASSED_ON = ("KUBECONFIG", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


def of_services(state: State) -> dict[str, str]:
    """Environment of all service processes."""
    announced = plugins.announce(Paths.of(state).root / "plugins")
    # Whoever tries another driver than the installed one names its place.
    first = os.environ.get("SANDBOX_PYTHONPATH")
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in NOT_PASSED_ON and not key.startswith("OS_")
    }
    return kept | {
        **without_proxy(),
        "PYTHONPATH": os.pathsep.join(filter(None, (first, str(announced)))),
        "XDG_CACHE_HOME": str(state.path("cloud", "cache")),  # plug-in look-ups are cached there
        processes.OWNER_VARIABLE: str(state.root),
    }


def without_proxy() -> dict[str, str]:
    """Variables that keep requests to this machine from a proxy, whatever others it is for."""
    known = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    spared = ",".join(filter(None, [known, "127.0.0.0/8", HOST, "localhost"]))
    return {"no_proxy": spared, "NO_PROXY": spared}
