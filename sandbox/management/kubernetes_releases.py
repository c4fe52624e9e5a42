# SPDX-License-Identifier: Apache-2.0
"""The minor releases of Kubernetes whose own programs read what the charts render.

A new minor release is one line of the table below, with its newest patch release that the module
proxy has. ``python -m sandbox.management.kubernetes_releases`` pins what the table has and
sandbox/go/kubeadm/go.sum lacks. Nothing of them runs in a sandbox; a program is built when a test
needs it.
"""

import dataclasses

from sandbox.management import binaries, pinned_module
from sandbox.management.binaries import Program
from sandbox.management.pinned_module import PinnedModule

HOST = "k8s.io"


@dataclasses.dataclass(frozen=True)
class KubernetesRelease(PinnedModule):
    """A release of Kubernetes."""

    version: str
    sums = "kubeadm"
    table = "sandbox.management.kubernetes_releases"

    @property
    def module(self) -> str:
        """Path of its Go module."""
        return f"{HOST}/kubernetes"

    @property
    def minor(self) -> str:
        """Like 1.34."""
        return self.version.rpartition(".")[0]

    @property
    def below(self) -> str:
        """Its libraries have versions of their own: 0.34.4 for 1.34.4.

        https://github.com/kubernetes/kubernetes/blob/master/staging/README.md
        """
        return f"0.{self.version.partition('.')[2]}"

    def has_below(self, name: str) -> bool:
        return name.startswith(f"{HOST}/") and name != self.module


MINORS = (
    KubernetesRelease("1.32.13"),
    KubernetesRelease("1.33.13"),
    KubernetesRelease("1.34.4"),
    KubernetesRelease("1.35.4"),
    KubernetesRelease("1.36.3"),
)


def selected() -> list[KubernetesRelease]:
    """Those that $K8S_CAPI_HELM_MINORS names; all without it.

    :raises SandboxError: it names one that the table does not have.
    """
    return pinned_module.selected(MINORS, "K8S_CAPI_HELM_MINORS")


#: What prints the bootstrap data that Cluster API makes of rendered objects.
BOOTSTRAP_DATA = Program("bootstrapdata", "clusterapi", "./bootstrapdata", binaries.OWN)


def kubeadm(release: KubernetesRelease) -> Program:
    """The kubeadm of a release."""
    return Program(
        f"kubeadm-{release.minor}",
        release.sums,
        f"{release.module}/cmd/kubeadm",
        release.version,
        ("version", "--output=short"),
        binaries.version_flags(release.version),
        also="kubeadm",
        release=release,
    )


def main() -> None:
    """Pin every release that is not pinned yet."""
    new = pinned_module.pin(MINORS)
    print("\n".join(new) or "every release is pinned")


if __name__ == "__main__":
    main()
