# SPDX-License-Identifier: Apache-2.0
"""What a pass costs beside the same of peer drivers: counts, spreads, ratios, verdict on goals.

Pure: :mod:`tools.bench.pass_bench` measures. Times depend on the machine and on what else it does,
so goals are about requests, and about processor time as a part of the peer's in the same round.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import datetime
import json
import math
import statistics

#: The drivers that take turns: one that does nothing, the peer of the goals (magnum-capi-helm),
#: another peer (magnum-cluster-api), and this one.
NOTHING, PEER, OTHER_PEER, OWN = "0", "H", "V", "this driver"
DRIVERS = (NOTHING, PEER, OTHER_PEER, OWN)
AT_REST, PENDING, COMPLETING = "at rest, health", "pending, status", "completing, status"
#: Clusters are in namespaces with this prefix. A watch of all namespaces, a list for it, the
#: controllers' Leases and a question whether anybody answers are a process's, for any number of
#: clusters.
CLUSTERS = "magnum-"
OF_PROCESS = "of the process: "


@dataclasses.dataclass(frozen=True, slots=True)
class Goal:
    """What this driver should take, per cluster and pass; while completing, per change.

    :ivar requests: to the management cluster, at most.
    :ivar processor: part of the peer's processor time over nothing, at most.
    :ivar most_requests: more than the goal, and more than these are a failure of the benchmark.
    :ivar most_processor: the same of processor time: goals that are out of reach are missed, and
        say so, and still nothing gets worse unseen.
    """

    requests: float
    processor: float
    most_requests: float
    most_processor: float


GOALS = {
    AT_REST: Goal(requests=0.0, processor=0.02, most_requests=0.05, most_processor=0.1),
    PENDING: Goal(requests=0.1, processor=0.1, most_requests=0.2, most_processor=0.4),
    COMPLETING: Goal(requests=6.0, processor=1.0, most_requests=8.0, most_processor=7.0),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    """What one driver took in one round, per cluster and pass.

    :ivar requests: by verb and resource, as :func:`count_requests` names them.
    :ivar milliseconds: processor time of the conductor's process.
    :ivar passes: of Magnum's job that it took; a change may take several.
    """

    requests: Mapping[str, float]
    milliseconds: float
    passes: int = 1

    @property
    def asked(self) -> float:
        """All requests but those that :attr:`of_process` counts."""
        return sum(n for name, n in self.requests.items() if not name.startswith(OF_PROCESS))

    @property
    def of_process(self) -> float:
        """Requests that the process makes, for any number of clusters: divided by it, too."""
        return sum(n for name, n in self.requests.items() if name.startswith(OF_PROCESS))


@dataclasses.dataclass(frozen=True, slots=True)
class Spread:
    """A median, and the least and most of the rounds."""

    median: float
    least: float
    most: float

    def text(self, digits: int = 2) -> str:
        """For a table."""
        return f"{self.median:.{digits}f} ({self.least:.{digits}f}..{self.most:.{digits}f})"


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """One goal with what was measured.

    :ivar most: a worse result is a failure.
    """

    text: str
    measured: float
    limit: float
    most: float

    @property
    def met(self) -> bool:
        """What cannot be measured is not met."""
        return self.measured <= self.limit

    @property
    def result(self) -> str:
        """In a word; what cannot be measured is a failure."""
        if self.met:
            return "met"
        return "missed" if self.measured <= self.most else "failed"


def count_requests(lines: Iterable[str | bytes], since: float, until: float) -> dict[str, int]:
    """Requests of an audit log that came between two times, by verb and resource.

    A refused one has its status code as well: "get leases 404". One in no namespace of clusters
    begins with "of the process: ".

    :param lines: one event in JSON each, of the stage ResponseComplete
        (https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/).
    :param since: seconds since the epoch, as *until*.
    """
    found: collections.Counter[str] = collections.Counter()
    for line in lines:
        event = json.loads(line)
        at = datetime.datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
        if since <= at <= until:
            found[_named(event)] += 1
    return dict(found)


def _named(event: Mapping[str, object]) -> str:
    reference = event.get("objectRef")
    parts = reference if isinstance(reference, dict) else {}
    resource = "/".join(parts[key] for key in ("resource", "subresource") if parts.get(key))
    status = event.get("responseStatus")
    code = status.get("code", 200) if isinstance(status, dict) else 200
    refused = f" {code}" if code >= 400 else ""
    owner = "" if str(parts.get("namespace", "")).startswith(CLUSTERS) else OF_PROCESS
    return f"{owner}{event['verb']} {resource or event.get('requestURI', '')}{refused}"


def per_cluster(counts: Iterable[Mapping[str, int]], clusters: int) -> dict[str, float]:
    """The mean of some passes, for each of their clusters."""
    total: collections.Counter[str] = collections.Counter()
    passes = list(counts)
    for one in passes:
        total.update(one)
    return {name: number / clusters / len(passes) for name, number in sorted(total.items())}


def spread(values: Sequence[float]) -> Spread:
    """Of one number per round."""
    return Spread(statistics.median(values), min(values), max(values))


def over(costs: Sequence[Cost], nothing: Sequence[Cost]) -> list[float]:
    """Milliseconds over those of a driver that does nothing, round by round.

    One that takes several passes for a change takes Magnum's own part of each, which would have
    been there anyway.
    """
    return [
        one.milliseconds - zero.milliseconds / zero.passes * one.passes
        for one, zero in zip(costs, nothing, strict=True)
    ]


def ratios(costs: Mapping[str, Sequence[Cost]], driver: str = OWN) -> list[float]:
    """A driver's milliseconds as parts of those of H, both over nothing, round by round."""
    asked, peer = (over(costs[one], costs[NOTHING]) for one in (driver, PEER))
    return [
        mine / theirs if theirs > 0 else math.nan for mine, theirs in zip(asked, peer, strict=True)
    ]


def checks(phase: str, costs: Mapping[str, Sequence[Cost]]) -> list[Check]:
    """Each goal of a phase with the median of the rounds."""
    goal = GOALS[phase]
    asked = statistics.median(one.asked for one in costs[OWN])
    found = ratios(costs)
    ratio = math.nan if any(map(math.isnan, found)) else statistics.median(found)
    return [
        Check(f"{phase}: requests per cluster", asked, goal.requests, goal.most_requests),
        Check(
            f"{phase}: processor over 0, part of H's", ratio, goal.processor, goal.most_processor
        ),
    ]
