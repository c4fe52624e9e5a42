# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm charts``: which charts clusters have, and where a copy of each is."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
import dataclasses

from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import own_clusters, release_records
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus, OperatorLister, Rows
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import conditions, names
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

COLUMNS = ("Chart", "Digest", "Source", "Clusters", "Without copy", "Host", "Next")
_SHORT = 12


@dataclasses.dataclass(slots=True)
class ChartUse:
    """A chart that clusters have.

    :ivar title: name and version, "" if no copy says it.
    :ivar sources: where it came from, as the Leases say.
    :ivar clusters: names of the clusters that have it.
    :ivar without_copy: those in whose namespace no copy is.
    """

    title: str = ""
    sources: set[str] = dataclasses.field(default_factory=set)
    clusters: list[str] = dataclasses.field(default_factory=list)
    without_copy: list[str] = dataclasses.field(default_factory=list)


class Charts(OperatorLister):
    """List the charts that clusters have, and where copies of them are.

    Each change of a cluster needs its very chart. Exit status 0: each chart is in the namespaces of
    its clusters, or on this host; 1: one is not, and has to be fetched from its source; 3: the
    management cluster cannot be read.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """How the digests are printed."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--long", action="store_true", help="Print whole digests.")
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each chart."""
        rows, status = [], ExitStatus.OK
        for digest, use in sorted(chart_uses(run).items(), key=lambda item: item[1].title):
            on_host = bool(digest) and run.clients.charts.has_stored(digest)
            advice = "" if on_host or not use.without_copy else _advice(digest, use)
            status = max(status, ExitStatus.WARNING if advice else ExitStatus.OK)
            rows.append(
                (
                    use.title or "unknown",
                    digest if arguments.long else digest[:_SHORT],
                    ", ".join(sorted(use.sources)),
                    len(use.clusters),
                    len(use.without_copy),
                    "yes" if on_host else "no",
                    advice,
                )
            )
        return COLUMNS, rows, status


def chart_uses(run: Reconciliation) -> dict[str, ChartUse]:
    """The charts of all clusters by digest; "" for clusters that have not recorded one.

    With one list of Leases, and one of copies in each namespace.

    :raises errors.DriverError: the management cluster cannot be read.
    """
    cluster_names = {release_of(cluster.stack_id): cluster.name for cluster in own_clusters()}
    uses: dict[str, ChartUse] = {}
    for clients in run.clients.all_clients():
        _add_uses(uses, clients.kube, cluster_names)
    return uses


def _add_uses(
    uses: dict[str, ChartUse], kube: KubeClient, cluster_names: Mapping[str, str]
) -> None:
    """Add the charts of the clusters of one management cluster."""
    records = release_records(kube)
    copies = _copies(kube, {namespace for namespace, _ in records})
    for (namespace, release), record in sorted(records.items()):
        if record is None or record.tombstone:
            continue
        use = uses.setdefault(record.chart_digest, ChartUse())
        name = cluster_names.get(release) or release
        use.clusters.append(name)
        use.sources |= {record.chart_source} - {""}
        about = copies.get((namespace, names.chart_copy(record.chart_digest)))
        use.title = use.title or about or ""
        if about is None or not record.chart_digest:
            use.without_copy.append(name)


def _copies(kube: KubeClient, namespaces: set[str]) -> Mapping[tuple[str, str], str]:
    """What each copy is of, by namespace and name."""

    def listed() -> Iterator[tuple[tuple[str, str], str]]:
        for namespace in sorted(namespaces):
            for copy in kube.list(
                names.CONFIG_MAP, namespace, names.CHART_COPY_LABELS, metadata_only=True
            ):
                about = conditions.object_annotations(copy).get(names.CHART_COPY_ABOUT)
                yield (namespace, conditions.name(copy)), conditions.words(about)

    return dict(listed())


def _advice(digest: str, use: ChartUse) -> str:
    """How a chart that has no copy gets one."""
    few = ", ".join(use.without_copy[:3])
    if not digest:
        return f"A resize to the current size records the chart of: {few}."
    return (
        "The chart must stay at its source. A resize to the current size puts a copy into the "
        f"namespace of: {few}."
    )
