# SPDX-License-Identifier: Apache-2.0
"""The minor releases of Helm with which the driver's client is tested: helm_releases COMMAND...

A new minor release is one line of the table below, with its newest patch release that the module
proxy has. Without a command this pins what the table has and sandbox/go/helmreleases/go.sum lacks.
With one it builds what is not on this machine, and runs the command once for each release, with the
program in ``HELM``; $K8S_CAPI_HELM_HELMS picks some, like "3.17 4.2".
"""

import dataclasses
import os
import subprocess
import sys

from sandbox.management import binaries, pinned_module
from sandbox.management.binaries import Program
from sandbox.management.pinned_module import PinnedModule
from sandbox.state import SandboxError

VARIABLE = "K8S_CAPI_HELM_HELMS"


@dataclasses.dataclass(frozen=True)
class HelmRelease(PinnedModule):
    """A release of Helm."""

    version: str
    sums = "helmreleases"
    table = "sandbox.management.helm_releases"

    @property
    def module(self) -> str:
        """Path of its Go module, which has the major version in it."""
        return f"helm.sh/helm/v{self.version.partition('.')[0]}"

    @property
    def minor(self) -> str:
        """Like 3.22."""
        return self.version.rpartition(".")[0]

    def program(self) -> Program:
        """The helm of this release; of one that the sandbox has, the same program."""
        for pinned in (binaries.HELM, binaries.HELM4):
            if pinned.version == self.version:
                return pinned
        return Program(
            f"helm-{self.minor}",
            self.sums,
            f"{self.module}/cmd/helm",
            self.version,
            ("version", "--short"),
            f"-X {self.module}/internal/version.version=v{self.version}",
            also="helm",
            release=self,
        )


MINORS = (
    HelmRelease("3.17.4"),
    HelmRelease("3.18.6"),
    HelmRelease("3.19.5"),
    HelmRelease("3.20.2"),
    HelmRelease("3.21.4"),
    HelmRelease("3.22.0"),
    HelmRelease("4.2.4"),
    HelmRelease("4.3.1"),
)


def selected() -> list[HelmRelease]:
    """Those that $K8S_CAPI_HELM_HELMS names; all without it.

    :raises SandboxError: it names one that the table does not have.
    """
    return pinned_module.selected(MINORS, VARIABLE)


def main(command: list[str]) -> int:
    """Pin the table, or run a command with each; the number of runs that failed."""
    if not command:
        new = pinned_module.pin(MINORS)
        print("\n".join(new) or "every release is pinned")
        return 0
    failed = 0
    for release in selected():
        helm = binaries.one(release.program())
        print(f"Helm {release.version}: {' '.join(command)}", flush=True)
        failed += subprocess.run(command, env={**os.environ, "HELM": str(helm)}).returncode != 0
    return failed


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SandboxError as error:
        sys.exit(f"helm_releases: {error}")
