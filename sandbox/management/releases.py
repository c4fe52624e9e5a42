# SPDX-License-Identifier: Apache-2.0
"""The releases of Cluster API and of its OpenStack provider that a sandbox runs.

A new release is one line of a table below. ``python -m sandbox.management.releases`` pins what
the tables have and sandbox/go/crds/go.sum lacks; nothing that is not pinned is ever built.

A sandbox has the releases that sandbox/go/clusterapi and sandbox/go/capo pin, built with all the
versions in there, unless --capi and --capo select others. Every other release is built in its own
module, with the versions that it pins itself.
"""

import dataclasses

from sandbox.management import gomodules, pinned_module
from sandbox.management.pinned_module import PinnedModule
from sandbox.state import SandboxError, State

MODULE = "crds"
HOST = "sigs.k8s.io"
#: From here on the core manager is in a directory of its own.
CORE_MOVED = (1, 14)
#: From here on CAPO rewrites objects of an older storage version, and has an option for it.
CAPO_MIGRATES = (0, 14)
#: An upgrade of Cluster API skips three minor releases at most.
#: https://cluster-api.sigs.k8s.io/reference/versions
LONGEST_UPGRADE = 3


@dataclasses.dataclass(frozen=True)
class Release(PinnedModule):
    """A release of a project.

    :ivar project: what the project is called, and its path below the module's host.
    :ivar version: without the letter v.
    :ivar core: versions of the API group cluster.x-k8s.io: all that Cluster API serves, or the
        one that a provider reads.
    """

    project: str
    version: str
    core: tuple[str, ...]
    sums = MODULE
    table = "sandbox.management.releases"

    @property
    def minor(self) -> tuple[int, int]:
        """Its number without the patch, like (1, 14)."""
        major, minor, *_ = self.version.split(".")
        return int(major), int(minor)

    @property
    def number(self) -> tuple[int, ...]:
        """All parts of the version, which compare."""
        return tuple(int(part) for part in self.version.split("."))

    @property
    def name(self) -> str:
        """Directory of the release in the cache."""
        return f"{self.project}-v{self.version}"

    @property
    def module(self) -> str:
        """Path of its Go module."""
        return f"{HOST}/{self.project}"

    @property
    def core_path(self) -> str:
        """Where its module has the core manager; empty for the root."""
        return "core" if self.minor >= CORE_MOVED else ""


CAPI_PROJECT, CAPO_PROJECT = "cluster-api", "cluster-api-provider-openstack"
BOTH = ("v1beta1", "v1beta2")
CLUSTER_API = (
    Release(CAPI_PROJECT, "1.10.10", ("v1beta1",)),
    Release(CAPI_PROJECT, "1.11.3", BOTH),
    Release(CAPI_PROJECT, "1.12.5", BOTH),
    Release(CAPI_PROJECT, "1.13.6", BOTH),
    Release(CAPI_PROJECT, "1.14.2", BOTH),
)
CAPO = (
    Release(CAPO_PROJECT, "0.12.1", ("v1beta1",)),
    Release(CAPO_PROJECT, "0.14.7", ("v1beta2",)),
)
RELEASES = (*CLUSTER_API, *CAPO)


def _pinned(module: str, table: tuple[Release, ...]) -> Release:
    """The release that a module of ours has."""
    text = (gomodules.GO / module / "go.mod").read_text()
    return next(one for one in table if f"{one.module} v{one.version}\n" in text)


INITIAL_CAPI, INITIAL_CAPO = _pinned("clusterapi", CLUSTER_API), _pinned("capo", CAPO)


@dataclasses.dataclass(frozen=True)
class Providers:
    """Cluster API and the OpenStack provider of one management cluster.

    :raises SandboxError: they cannot work together.
    """

    capi: Release = INITIAL_CAPI
    capo: Release = INITIAL_CAPO

    def __post_init__(self) -> None:
        (read,) = self.capo.core
        if read not in self.capi.core:
            able = [found.version for found in CLUSTER_API if read in found.core]
            raise SandboxError(
                f"--capi {self.capi.version} --capo {self.capo.version}: this OpenStack provider "
                f"reads Clusters and Machines as {read}, and this Cluster API serves "
                f"{', '.join(self.capi.core)} only; --capo {self.capo.version} needs --capi "
                f"{', '.join(able)}"
            )

    @classmethod
    def of(cls, state: State) -> "Providers":
        """Those of a sandbox."""
        return choose(state, None, None)

    def record(self, state: State) -> None:
        """Remember them for the next start."""
        state.record(providers={"capi": self.capi.version, "capo": self.capo.version})

    def check_follow(self, before: "Providers") -> None:
        """Refuse what is no upgrade.

        :raises SandboxError: one of them is older than before, or Cluster API skips too much.
        """
        pairs = ((before.capi, self.capi), (before.capo, self.capo))
        reset = f"`python -m sandbox reset {self}` creates a new sandbox"
        if any(new.number < old.number for old, new in pairs):
            raise SandboxError(
                f"{self} does not follow {before}: no downgrade is supported; {reset}"
            )
        skipped = self.capi.minor[1] - before.capi.minor[1]
        if skipped > LONGEST_UPGRADE:
            raise SandboxError(
                f"{self} does not follow {before}: Cluster API is upgraded by "
                f"{LONGEST_UPGRADE} minor releases at most; choose one between them, or {reset}"
            )

    def __str__(self) -> str:
        return f"--capi {self.capi.version} --capo {self.capo.version}"


def choose(state: State | None, capi: str | None, capo: str | None) -> Providers:
    """The providers of these versions.

    :param state: of the sandbox whose providers are meant where no version is given; initially,
        and for None, those of :class:`Providers`.
    :raises SandboxError: a version is not in the tables, or they cannot work together.
    """
    initial = {"capi": Providers.capi.version, "capo": Providers.capo.version}
    known: dict[str, str] = state.get("providers", initial) if state else initial
    return Providers(
        _known("--capi", CLUSTER_API, capi or known["capi"]),
        _known("--capo", CAPO, capo or known["capo"]),
    )


def _known(option: str, table: tuple[Release, ...], version: str) -> Release:
    for release in table:
        if release.version == version:
            return release
    known = ", ".join(release.version for release in table)
    raise SandboxError(
        f"{option} {version}: choose one of {known}; another one is a line of "
        "sandbox/management/releases.py"
    )


def main() -> None:
    """Pin every release that is not pinned yet."""
    new = pinned_module.pin(RELEASES)
    print("\n".join(new) or "every release is pinned")


if __name__ == "__main__":
    main()
