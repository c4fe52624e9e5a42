# SPDX-License-Identifier: Apache-2.0
"""What a verb costs beside the peer driver's: requests, ratios and the verdict on goals.

Pure: :mod:`tools.bench.peer_verb_bench` measures. Times depend on the machine and on what else it
does, so goals about single verbs are parts of what the peer takes in the same round.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import json
import statistics

from tools.bench import pass_costs
from tools.bench.pass_costs import Check, OWN, PEER

#: The peer once more, with a checkout of the chart that it is made for.
PEER_REFERENCE = "H, reference"
CREATE, GROUP, RESIZE = "create", "nodegroup create", "resize"
VERBS = (CREATE, GROUP, RESIZE)
#: Nodegroups that are created at once.
TOGETHER = 20
#: Part of the peer's processor time, Helm's included, at most.
GOALS = {CREATE: 0.5, GROUP: 0.4, RESIZE: 0.4}
#: More than the peer is a failure of the benchmark. Goals are missed by Helm's own part.
MOST = 1.0
#: The same of nodegroups at once, as a multiple of each goal: Helm's own requests are most of them.
TOGETHER_MOST = 2.5
#: Of all nodegroups at once, at most.
REQUESTS, PROCESSOR, RUNS = 400, 3.0, 3
#: How the programs of each driver call themselves, and Helm itself.
_AGENTS = {PEER: "python-requests", PEER_REFERENCE: "python-requests", OWN: "OpenAPI-Generator"}
_HELM = "Helm/"
_OF_HELM = "helm: "


@dataclasses.dataclass(frozen=True, slots=True)
class Clock:
    """What a conductor has taken until a moment.

    :ivar time: seconds since the epoch.
    :ivar driver: processor seconds of its process.
    :ivar children: the same of the programs that it has run to their end.
    :ivar runs: of Helm.
    :ivar certificates: of the processor seconds, those in which Magnum made certificates.
    """

    time: float
    driver: float
    children: float
    runs: int
    certificates: float


@dataclasses.dataclass(frozen=True, slots=True)
class Spent:
    """What one verb took.

    :ivar wall: seconds from the call until nothing is left to do.
    :ivar driver: processor seconds of the conductor's process.
    :ivar helm: the same of the runs of Helm.
    :ivar runs: of Helm.
    :ivar certificates: of the conductor's seconds, those in which Magnum made certificates.
    :ivar requests: to the management cluster by name; see :func:`count_requests`.
    :ivar done: nodegroups that are there in the end, where several were created at once.
    """

    wall: float
    driver: float
    helm: float
    runs: int
    certificates: float
    requests: Mapping[str, int]
    done: int = 0

    @property
    def processor(self) -> float:
        """Processor seconds of both."""
        return self.driver + self.helm

    @property
    def uncertified(self) -> float:
        """Processor seconds of both, but for those in which Magnum made certificates."""
        return self.processor - self.certificates

    @property
    def asked(self) -> int:
        """All requests."""
        return sum(self.requests.values())

    @property
    def asked_by_helm(self) -> int:
        """Requests of Helm."""
        return sum(n for name, n in self.requests.items() if name.startswith(_OF_HELM))


Found = Mapping[str, Mapping[str, Sequence[Spent]]]


def spent(before: Clock, after: Clock, requests: Mapping[str, int], done: int = 0) -> Spent:
    """What was taken between two moments."""
    return Spent(
        after.time - before.time,
        after.driver - before.driver,
        after.children - before.children,
        after.runs - before.runs,
        after.certificates - before.certificates,
        requests,
        done,
    )


def count_requests(
    lines: Iterable[str | bytes], driver: str, since: float, until: float
) -> dict[str, int]:
    """Requests of a driver in an audit log between two times, by verb and resource.

    Drivers use the same user, and are told apart by how their programs call themselves. Those of
    Helm begin with "helm: "; only one driver runs it at a time.
    """
    found: collections.Counter[str] = collections.Counter()
    parts = collections.defaultdict[str, list[str | bytes]](list)
    for line in lines:
        agent = json.loads(line).get("userAgent", "")
        if agent.startswith(_HELM):
            parts[_OF_HELM].append(line)
        elif agent.startswith(_AGENTS[driver]):
            parts[""].append(line)
    for prefix, some in parts.items():
        for name, number in pass_costs.count_requests(some, since, until).items():
            found[f"{prefix}{name}"] += number
    return dict(found)


def ratios(drivers: Mapping[str, Sequence[Spent]]) -> list[float]:
    """This driver's processor seconds as parts of the peer's, round by round."""
    pairs = zip(drivers[OWN], drivers[PEER], strict=True)
    return [mine.processor / theirs.processor for mine, theirs in pairs]


def verb_checks(found: Found) -> list[Check]:
    """The goal of each verb with the median of the rounds."""
    return [
        Check(f"{verb}: processor, part of H's", statistics.median(ratios(found[verb])), goal, MOST)
        for verb, goal in GOALS.items()
    ]


def together_checks(rounds: Sequence[Spent], number: int = TOGETHER) -> list[Check]:
    """The goals of nodegroups that this driver created at once, with the median of the rounds."""
    what = f"{number} nodegroups at once"

    def check(text: str, values: Iterable[float], limit: float) -> Check:
        return Check(f"{what}: {text}", statistics.median(values), limit, TOGETHER_MOST * limit)

    return [
        check("missing", (number - one.done for one in rounds), 0),
        check("requests", (one.asked for one in rounds), REQUESTS),
        check("processor of the driver, s", (one.driver for one in rounds), PROCESSOR),
        check("runs of Helm", (one.runs for one in rounds), RUNS),
    ]


def _row(name: str, cells: Iterable[str]) -> str:
    return f"  {name:14}{''.join(f'{cell:>20}' for cell in cells)}".rstrip()


def _spread(values: Iterable[float], digits: int = 2) -> str:
    return pass_costs.spread(list(values)).text(digits)


def table(title: str, drivers: Mapping[str, Sequence[Spent]]) -> str:
    """Medians, with least and most of the rounds, of one verb."""
    titles = ("processor s", "driver s", "helm s", "helm runs", "requests", "of helm", "wall s")
    lines = ["", f"{title}: {len(drivers[OWN])} rounds", _row("", titles)]
    for driver, rounds in drivers.items():
        cells = (
            _spread(one.processor for one in rounds),
            _spread(one.driver for one in rounds),
            _spread(one.helm for one in rounds),
            _spread((one.runs for one in rounds), 0),
            _spread((one.asked for one in rounds), 0),
            _spread((one.asked_by_helm for one in rounds), 0),
            _spread(one.wall for one in rounds),
        )
        lines.append(_row(driver, cells))
    if PEER in drivers:
        lines.append(_row("part of H's", (_spread(ratios(drivers)),)))
    return "\n".join(lines)


def certificates(drivers: Mapping[str, Sequence[Spent]]) -> str:
    """How much of a create is Magnum's own step that makes certificates."""
    lines = ["  of which Magnum's certificates, and the rest:"]
    for driver, rounds in drivers.items():
        made, rest = (one.certificates for one in rounds), (one.uncertified for one in rounds)
        lines.append(_row(driver, (_spread(made), _spread(rest))))
    mine, theirs = (
        statistics.median(one.uncertified for one in drivers[driver]) for driver in (OWN, PEER)
    )
    lines.append(_row("part of H's", ("", f"{mine / theirs:.2f}")))
    return "\n".join(lines)


def together_table(drivers: Mapping[str, Sequence[Spent]], number: int = TOGETHER) -> str:
    """The same of nodegroups that were created at once, with how many are there."""
    lines = [table(f"{number} nodegroups at once", drivers), _row("", ("there in the end",))]
    for driver, rounds in drivers.items():
        lines.append(_row(driver, (_spread((one.done for one in rounds), 0),)))
    return "\n".join(lines)


def requests_table(drivers: Mapping[str, Sequence[Spent]]) -> str:
    """Requests by verb and resource, the median of the rounds."""
    lines = list[str]()
    for driver, rounds in drivers.items():
        lines.append(f"  {driver}")
        for name in sorted({name for one in rounds for name in one.requests}):
            median = statistics.median(one.requests.get(name, 0) for one in rounds)
            lines.append(f"{median:8.0f} {name}")
    return "\n".join(lines)
