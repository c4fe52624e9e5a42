# SPDX-License-Identifier: Apache-2.0
"""Magnum's processes: one conductor within the API, or several with RabbitMQ."""

import dataclasses

from sandbox.cloud import magnum_release
from sandbox.state import SandboxError, State

MEMORY, RABBIT = "memory", "rabbit"
TRANSPORTS = (MEMORY, RABBIT)


@dataclasses.dataclass(frozen=True)
class Layout:
    """Transport, conductors, and processes that answer requests in each of them.

    :ivar transport: ``memory``, everything in the API's process; or ``rabbit``.
    :ivar workers: processes of each conductor; the first also runs the periodic tasks.
    :ivar magnum: version of Magnum, with MariaDB and its migrations; empty for the one that is
        installed beside the other services, on SQLite.
    :ivar driver: that Magnum has instead of this project's.
    :raises SandboxError: numbers below one, or more conductors than fit into one process.
    """

    transport: str = MEMORY
    conductors: int = 1
    workers: int = 1
    magnum: str = ""
    driver: str = ""

    def __post_init__(self) -> None:
        if self.transport not in TRANSPORTS:
            raise SandboxError(
                f"--transport {self.transport}: choose one of {', '.join(TRANSPORTS)}"
            )
        if self.magnum and self.transport == MEMORY:
            raise SandboxError(
                f"--magnum {self.magnum}: its conductor is a program of its own; "
                f"add --transport {RABBIT}"
            )
        if self.driver and not self.magnum:
            raise SandboxError(f"--driver {self.driver}: add --magnum VERSION")
        for option in ("conductors", "workers"):
            value = getattr(self, option)
            if value < 1:
                raise SandboxError(f"--{option} {value}: it must be 1 or more")
            if value > 1 and self.transport == MEMORY:
                raise SandboxError(
                    f"--{option} {value}: the transport memory has one conductor with one worker, "
                    f"in the process of Magnum's API; add --transport {RABBIT}"
                )

    @classmethod
    def of(cls, state: State) -> "Layout":
        """That of a sandbox."""
        return cls(**state.get("layout", {}))

    def record(self, state: State) -> None:
        """Remember it for the next start."""
        state.record(layout=dataclasses.asdict(self))

    @property
    def names(self) -> list[str]:
        """Processes of the conductors, as ``status`` and ``logs`` call them; none in memory."""
        if self.transport == MEMORY:
            return []
        return [f"magnum-conductor-{number}" for number in range(1, self.conductors + 1)]

    @property
    def release(self) -> magnum_release.Release | None:
        """The release of Magnum, where one was chosen."""
        if not self.magnum:
            return None
        release = magnum_release.choose(self.magnum)
        return release.with_driver(self.driver) if self.driver else release

    @property
    def runs_programs(self) -> bool:
        """Whether Magnum's own programs run, from an environment of their own."""
        return self.release is not None and not self.release.is_own

    def workers_of(self, conductor: str) -> list[str]:
        """Names of the configurations of a conductor's processes, which are its hosts in Magnum.

        Where Magnum's own program runs, it forks its workers itself.
        """
        if self.runs_programs:
            return [conductor]
        others = [f"{conductor}-worker-{number}" for number in range(2, self.workers + 1)]
        return [conductor, *others]

    def can_follow(self, before: "Layout") -> bool:
        """Whether Magnum's database is good for this one: its release is the same or a later one.

        Magnum cannot take a migration back.
        """
        if self.release is None or before.release is None:
            return self.magnum == before.magnum
        return self.release.major >= before.release.major

    def __str__(self) -> str:
        release = f" --magnum {self.magnum}" if self.magnum else ""
        release += f" --driver {self.driver}" if self.driver else ""
        return (
            f"--transport {self.transport} --conductors {self.conductors} "
            f"--workers {self.workers}{release}"
        )
