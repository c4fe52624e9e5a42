# SPDX-License-Identifier: Apache-2.0
"""What periodic tasks have seen of all clusters, as few series whatever the number of clusters.

The passes leave it here without any request or query. A process without periodic tasks shows
nothing of clusters, and those of several hosts show the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
import dataclasses
import time

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

#: Periodic tasks of Magnum, as labels.
STATUS_TASK, HEALTH_TASK = "status", "health"
#: Seconds after which a cluster is none any more that no task has come by: every health task does.
FORGOTTEN = 900.0
#: Clusters whose certificates are the first to expire, by uuid.
_FIRST = 10


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterState:
    """A cluster after a pass.

    :ivar status: Magnum's word.
    :ivar health: Magnum's word, "" before the first health task.
    :ivar cause: class of the reason, as in front of ``status_reason``; "" without one.
    :ivar has_credential_issue: whether its health has a problem with its application credential.
    :ivar seen_at: when, on ``time.monotonic()``.
    :ivar since: the same of the first pass of this process that has seen this status.
    """

    status: str
    health: str
    cause: str
    has_credential_issue: bool
    seen_at: float
    since: float


class ClusterMetrics(Collector):
    """All clusters; safe to share between threads.

    :ivar clusters: the last state of each, by uuid.
    :ivar certificate_expiries: when the first certificate of a control plane expires, in seconds of
        the epoch, by uuid of the cluster.
    :ivar last_passes: when the last pass of each began, by task and uuid.
    :ivar cleaned: when clusters that are gone were forgotten; both on ``time.monotonic()``.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.clusters: dict[str, ClusterState] = {}
        self.certificate_expiries: dict[str, float] = {}
        self.last_passes: dict[tuple[str, str], float] = {}
        self.cleaned = time.monotonic()

    def clean(self, now: float) -> None:
        """Forget clusters that are gone: another conductor has deleted them.

        :param now: on ``time.monotonic()``.
        """
        self.cleaned = now
        for uuid, state in list(self.clusters.items()):
            if now - state.seen_at > FORGOTTEN:
                self.forget(uuid)

    def forget(self, uuid: str) -> None:
        """A cluster is deleted."""
        self.clusters.pop(uuid, None)
        self.certificate_expiries.pop(uuid, None)
        for task in (STATUS_TASK, HEALTH_TASK):
            self.last_passes.pop((task, uuid), None)

    def collect(self) -> Iterable[Metric]:
        """The families of the fleet, by what is known now."""
        self.clean(time.monotonic())
        states = list(self.clusters.values())
        yield self._counted(
            "clusters",
            "Clusters by Magnum's status and health",
            ("status", "health"),
            Counter((state.status, state.health or "UNKNOWN") for state in states),
        )
        yield self._counted(
            "cluster_reasons",
            "Clusters in progress or failed, by the class of the reason",
            ("reason",),
            Counter((state.cause,) for state in states if state.cause),
        )
        issues = sum(state.has_credential_issue for state in states)
        yield GaugeMetricFamily(
            f"{self._prefix}cluster_credential_problems",
            "Clusters whose application credential Keystone does not accept",
            value=issues,
        )
        first = sorted((end, uuid) for uuid, end in list(self.certificate_expiries.items()))
        yield self._counted(
            "cluster_certificate_expiry_timestamp_seconds",
            f"When the first certificate of a control plane expires; the first {_FIRST} clusters",
            ("cluster",),
            {(uuid,): end for end, uuid in first[:_FIRST]},
        )

    def _counted(
        self, name: str, text: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], float]
    ) -> Metric:
        family = GaugeMetricFamily(f"{self._prefix}{name}", text, labels=labels)
        for key, value in sorted(values.items()):
            family.add_metric(key, value)
        return family
