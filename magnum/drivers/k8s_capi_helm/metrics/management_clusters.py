# SPDX-License-Identifier: Apache-2.0
"""The metrics of management clusters: each as its clients have left them.

Those of the default management cluster have no label ``management_cluster``, so that their series
stay the same when others are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_LABEL = "management_cluster"


class ManagementMetrics(Collector):
    """The management clusters of a process; safe to share between threads.

    :param prefix: of the names of the metrics.
    :ivar breakers: 1 while the circuit breaker of a management cluster is open; here and below by
        its name, "" for the default one.
    :ivar expiries: seconds of the epoch when its client certificate expires, 0 without one.
    :ivar ages: what tells the age of each of its watches, by kind.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.breakers: dict[str, float] = {"": 0.0}
        self.expiries: dict[str, float] = {"": 0.0}
        self.ages: dict[str, Callable[[], Mapping[str, float]]] = {}

    def collect(self) -> Iterable[Metric]:
        """The three families."""
        breakers = self._family(
            "circuit_breaker_open",
            "1 while requests to the management cluster are refused because it does not respond",
        )
        for management, value in dict(self.breakers).items():
            breakers.add_metric(_labels(management), value)
        yield breakers
        expiries = self._family(
            "management_certificate_expiry_timestamp_seconds",
            "When the client certificate of the kubeconfig expires; 0 without one that lasts",
        )
        for management, value in dict(self.expiries).items():
            expiries.add_metric(_labels(management), value)
        yield expiries
        watches = self._family(
            "watch_age_seconds",
            "Seconds since the watch of a kind was known to be up to date, or was started",
            "kind",
        )
        for management, read_ages in dict(self.ages).items():
            for kind, age in read_ages().items():
                watches.add_metric([kind, *_labels(management)], age)
        yield watches

    def _family(self, name: str, text: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"{self._prefix}{name}", text, labels=[*labels, _LABEL])


def _labels(management: str) -> list[str]:
    return [management] if management else []
