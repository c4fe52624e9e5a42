# SPDX-License-Identifier: Apache-2.0
"""Magnum's processes: one conductor within the API, or several with RabbitMQ."""

import dataclasses

from sandbox.state import SandboxError, State

MEMORY, RABBIT = "memory", "rabbit"
TRANSPORTS = (MEMORY, RABBIT)


@dataclasses.dataclass(frozen=True)
class Layout:
    """Transport, conductors, and processes that answer requests in each of them.

    :ivar transport: ``memory``, everything in the API's process; or ``rabbit``.
    :ivar workers: processes of each conductor; the first also runs the periodic tasks.
    :raises SandboxError: numbers below one, or more conductors than fit into one process.
    """

    transport: str = MEMORY
    conductors: int = 1
    workers: int = 1

    def __post_init__(self) -> None:
        if self.transport not in TRANSPORTS:
            raise SandboxError(
                f"--transport {self.transport}: choose one of {', '.join(TRANSPORTS)}"
            )
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

    def workers_of(self, conductor: str) -> list[str]:
        """Names of the configurations of a conductor's processes, which are its hosts in Magnum."""
        others = [f"{conductor}-worker-{number}" for number in range(2, self.workers + 1)]
        return [conductor, *others]

    def __str__(self) -> str:
        return (
            f"--transport {self.transport} --conductors {self.conductors} --workers {self.workers}"
        )
