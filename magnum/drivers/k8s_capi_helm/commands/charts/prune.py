# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm charts prune``: delete charts of this host's store that nothing uses."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
import dataclasses
from typing import Any

from magnum.common import exception
from magnum.drivers.k8s_capi_helm import conf, errors, labels
from magnum.drivers.k8s_capi_helm.chart_store import StoredChart
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    find_template,
    own_clusters,
    release_records,
)
from magnum.drivers.k8s_capi_helm.commands.lookup.templates import own_templates, Template
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus, OperatorLister, Rows
from magnum.drivers.k8s_capi_helm.labels.value_types.versions import plain
from magnum.drivers.k8s_capi_helm.model import ReleaseRecord
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership

COLUMNS = ("Chart", "Digest", "KiB", "Used by", "Action")
_SHORT = 12
_HOUR = 3600.0
_FEW = 3


@dataclasses.dataclass(slots=True)
class ChartUsers:
    """What uses charts.

    :ivar by_digest: names of users by the digest that a Lease has recorded.
    :ivar by_name: those that name a chart and a version, by both.
    """

    by_digest: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    by_name: dict[tuple[str, str], list[str]] = dataclasses.field(default_factory=dict)

    def of_chart(self, stored_chart: StoredChart) -> list[str]:
        """The users of a chart in the store."""
        chart, users = stored_chart.chart, []
        for digest, names in self.by_digest.items():
            if stored_chart.has_digest(digest):
                users += names
        return [*users, *self.by_name.get((chart.name, plain(chart.version)), ())]


class ChartPrune(OperatorLister):
    """Delete charts of this host's store that no cluster, template or pending operation uses.

    Without --yes nothing is deleted. Exit status 0: nothing is unused, or it is deleted, 1: --yes
    would delete something, 3: it could not be found out what uses them; then nothing is deleted.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Whether charts are deleted, and which ones."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--yes", action="store_true", help="Delete what is not used.")
        parser.add_argument(
            "--hours",
            type=_hours,
            default=24.0,
            help="Keep charts that were stored within so many hours: a request that is being "
            "carried out may not have recorded its chart yet (24).",
        )
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each chart in the store."""
        inventory, rows, status = run.clients.charts.inventory, [], ExitStatus.OK
        users, newest = chart_users(run), run.now.timestamp() - _HOUR * arguments.hours
        for stored in inventory.list_charts():
            found = users.of_chart(stored)
            if not found and stored.stored_at > newest:
                found = [f"stored within {arguments.hours:g} hours"]
            if found:
                action = "keep"
            elif arguments.yes:
                inventory.delete(stored)
                action = "deleted"
            else:
                action, status = "delete with --yes", ExitStatus.WARNING
            rows.append(_row(stored, found, action))
        return COLUMNS, rows, status


def _hours(text: str) -> float:
    hours = float(text)
    if not 0 <= hours < float("inf"):
        raise ValueError(text)
    return hours


def chart_users(run: Reconciliation) -> ChartUsers:
    """What uses charts: clusters by their Leases or releases, templates, pending upgrades.

    :raises errors.DriverError: it cannot be found out.
    """
    users = ChartUsers()
    runs = {
        one.management: dataclasses.replace(run, clients=one) for one in run.clients.all_clients()
    }
    clusters: dict[str, dict[str, Any]] = {management: {} for management in runs}
    for cluster in own_clusters():
        if cluster.stack_id:
            own_run = run.of_cluster(cluster.stack_id)
            clusters[own_run.clients.management][release_of(cluster.stack_id)] = cluster
    for management, own_run in runs.items():
        _add_clusters(own_run, users, clusters[management])
    for template in own_templates():
        _add_template(run, users, template, f"template {template.name}")
    _add_labels(run, users, {}, "new clusters")
    return users


def _add_clusters(run: Reconciliation, users: ChartUsers, clusters: Mapping[str, Any]) -> None:
    """Add the clusters of one management cluster.

    :param clusters: by their releases.
    :raises errors.DriverError: a Lease cannot be read.
    """
    records = release_records(run.clients.kube)
    for (namespace, release), record in records.items():
        if record is None:
            raise errors.InvalidRequest(
                f"The Lease of release '{release}' in namespace '{namespace}' cannot be read, so "
                "it is not known which chart it has. See 'k8s-capi-helm why'."
            )
        name = clusters[release].name if release in clusters else release
        _add_record(run, users, record, f"cluster {name}")
    known = {release for _, release in records}
    for release, cluster in clusters.items():
        owner = ownership.owner(cluster, run.settings)
        record = records.get((owner.namespace, release))
        if release in known and record is not None and record.chart_digest:
            continue
        # One that is not adopted yet, or whose Lease records no chart.
        live = run.clients.helm.live(owner.namespace, release)
        if live is not None:
            key = (live.chart_name, plain(live.chart_version))
            users.by_name.setdefault(key, []).append(f"cluster {cluster.name}")


def _add_record(run: Reconciliation, users: ChartUsers, record: ReleaseRecord, name: str) -> None:
    if record.chart_digest:
        users.by_digest.setdefault(record.chart_digest, []).append(name)
    for operation in record.operations:
        if operation.template:
            try:
                template = find_template(operation.template)
            except (errors.InvalidRequest, exception.ClusterTemplateNotFound):
                continue  # Magnum does not delete a template of a cluster, and the request fails.
            _add_template(run, users, template, f"upgrade of {name}")


def _add_template(run: Reconciliation, users: ChartUsers, template: Template, name: str) -> None:
    _add_labels(run, users, template.labels or {}, name)


def _add_labels(
    run: Reconciliation, users: ChartUsers, texts: Mapping[str, str], name: str
) -> None:
    """The chart that labels name; labels that are refused name none."""
    try:
        typed = labels.parse(texts, conf.label_defaults(run.settings))
        key = run.clients.charts.named_chart(
            typed.capi_helm_chart_version,
            name=typed.capi_helm_chart_name,
            repository=typed.capi_helm_chart_repo,
        )
    except (errors.InvalidRequest, errors.ChartNotFound):
        return
    users.by_name.setdefault(key, []).append(name)


def _row(stored: StoredChart, users: Iterable[str], action: str) -> tuple[str, ...]:
    chart, names = stored.chart, list(dict.fromkeys(users))
    few = ", ".join(names[:_FEW])
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    size = str(-(-stored.size // 1024))
    return f"{chart.name} {chart.version}", chart.digest[:_SHORT], size, f"{few}{more}", action
