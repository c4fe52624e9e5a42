# SPDX-License-Identifier: Apache-2.0
"""A second management cluster of a sandbox, with controllers of its own, in front of one cloud.

It has the same releases, certificates and ports of its own, and all that a management cluster has.
What plays machines keeps tenants' clusters in its memory: when a Cluster is moved, the tenant's API
is closed here and opened there, with the same nodes and certificate authorities. In a real cloud it
stays as it is.
"""

from pathlib import Path
import shutil

import yaml

from sandbox import processes
from sandbox.management import lifecycle, server
from sandbox.management.pki import Pki, write_private
from sandbox.management.releases import Providers
from sandbox.state import State

DIRECTORY = "second-management"


def start(state: State) -> State:
    """Start it; returns its own state.

    :raises SandboxError: it does not come up in time.
    """
    other = State(state.path(DIRECTORY, "x").parent)
    Providers.of(state).record(other)
    lifecycle.up(other)
    return other


def end(state: State) -> None:
    """End it, if there is one, and forget it."""
    if (state.root / DIRECTORY).is_dir():
        other = State(state.root / DIRECTORY)
        lifecycle.down(other)
        processes.stop_all(other)
        shutil.rmtree(other.root)


def choose(state: State, other: State | None) -> None:
    """Let the driver's kubeconfig name the other management cluster, or the sandbox's own one."""
    server.write_users(state)
    if other is not None:
        write_private(server.driver_kubeconfig(state), server.driver_kubeconfig(other).read_bytes())


def former_kubeconfig(state: State) -> Path:
    """A kubeconfig of the driver's user for the management cluster of a state, whatever is chosen.

    It is what an operator keeps of the former management cluster.
    """
    identity = {"token": Pki(state).token(server.DRIVER)}
    text = yaml.safe_dump(server.user_kubeconfig(state, server.DRIVER, identity))
    path = state.path("management", "former.kubeconfig")
    write_private(path, text.encode())
    return path
