# SPDX-License-Identifier: Apache-2.0
"""What the API server of a tenant's cluster is: Cluster API's in-memory one, or the real programs.

With the real ones each cluster has etcd members, kube-apiservers, a kube-controller-manager and a
kube-scheduler of its own, children of the process that plays the machines
(sandbox/go/clusterapi/machines/tenant), and kubeadm makes the objects that it makes on a machine.
"""

from pathlib import Path

from sandbox import processes
from sandbox.management import binaries, kubernetes_releases
from sandbox.state import SandboxError, State

MEMORY, REAL = MODES = ("memory", "real")
#: Programs of a tenant's cluster that a management cluster has too.
SHARED = ("etcd", "kube-apiserver", "kube-controller-manager")
SCHEDULER, KUBEADM = "kube-scheduler", "kubeadm"
#: Process whose children the real programs are; see ``controllers.MACHINES``.
_PARENT = "machines"


def chosen(state: State) -> str:
    """Which of both the clusters of a sandbox have."""
    return str(state.get("tenant_api", MEMORY))


def choose(state: State, mode: str) -> None:
    """Remember which the clusters have from the next start on.

    :raises SandboxError: clusters run with the other one.
    """
    before = chosen(state)
    if mode != before and processes.alive(state, _PARENT):
        raise SandboxError(
            f"the clusters' API servers run with --tenant-api {before}; `python -m sandbox reset "
            f"--tenant-api {mode}` creates a new sandbox"
        )
    state.record(tenant_api=mode)


def arguments(state: State, place: Path) -> list[str]:
    """Arguments for the program that plays the machines; what they name is built.

    :param place: directory of the programs of the management cluster.
    :raises SandboxError: a program cannot be built.
    """
    if chosen(state) == MEMORY:
        return []
    return [
        f"--tenant-folder={state.path('management', 'tenants')}",
        f"--tenant-programs={_programs(state, place)}",
    ]


def _programs(state: State, place: Path) -> Path:
    """A directory with exactly the programs of a tenant's cluster."""
    (release,) = (one for one in kubernetes_releases.MINORS if one.version == binaries.KUBERNETES)
    paths = {name: Path(binaries.require(place, name)) for name in SHARED}
    paths[SCHEDULER] = binaries.one(binaries.SCHEDULER)
    paths[KUBEADM] = binaries.one(kubernetes_releases.kubeadm(release))
    for name, path in paths.items():
        binaries.link(state.path("management", "tenant-programs", name), path)
    return state.path("management", "tenant-programs")
