# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm list``: all clusters, with status, versions, expiry and pending operations."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from concurrent import futures
import dataclasses
import datetime
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    own_clusters,
    release_records,
    ReleaseKey,
)
from magnum.drivers.k8s_capi_helm.commands.output.expiry import days_left, expiry_status
from magnum.drivers.k8s_capi_helm.commands.output.lister import (
    ExitStatus,
    operator_text,
    OperatorLister,
    Rows,
)
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.model import conditions, Json, names, ReleaseRecord
from magnum.drivers.k8s_capi_helm.model.management_cluster import management_of, release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.status import health
from magnum.drivers.k8s_capi_helm.status.objects import certificate_expiry, machines
from magnum.drivers.k8s_capi_helm.status.texts import issue

COLUMNS = (
    *("Name", "UUID", "Project", "Status", "Health", "Reason", "Kubernetes", "Chart"),
    *("Certificates", "Credential", "Pending", "Since"),
)
#: The last column, where management clusters are configured by name.
MANAGEMENT_COLUMN = "Management cluster"


@dataclasses.dataclass(frozen=True, slots=True)
class Fleet:
    """What the management cluster has of all releases, read with one list per kind.

    :ivar records: of the Leases; None where one cannot be read.
    :ivar certificate_ends: when the first certificate of a control plane expires.
    :ivar charts: name and version by digest.
    """

    records: Mapping[ReleaseKey, ReleaseRecord | None]
    certificate_ends: Mapping[ReleaseKey, datetime.datetime]
    charts: Mapping[str, str]


class ListClusters(OperatorLister):
    """List the clusters of this driver: status, versions, expiry, what is pending.

    "Certificates" are the days until the first certificate of a control plane expires. Exit status
    0, or with --monitor: 1 where the health of a cluster at rest is unknown or a certificate
    expires within 30 days, 2 where a cluster has failed or is unhealthy, or a certificate expires
    within 7 days. 3: a management cluster cannot be read, and its columns are empty.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which clusters are listed."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--project", metavar="ID", help="Only clusters of this project.")
        parser.add_argument(
            "--status",
            metavar="STATUS",
            help="Only clusters with this status, or with this ending of one: FAILED.",
        )
        parser.add_argument("--health", metavar="HEALTH", help="Only clusters with this health.")
        parser.add_argument(
            "--monitor",
            action="store_true",
            help="Let the exit status be that of the worst cluster.",
        )
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each cluster."""
        clusters = [
            cluster for cluster in own_clusters(arguments.project) if _is_listed(cluster, arguments)
        ]
        status, fleets = ExitStatus.OK, dict[str, Fleet]()
        for management, fleet in read_fleets(run.clients).items():
            fleets[management] = Fleet({}, {}, {}) if isinstance(fleet, Exception) else fleet
            if isinstance(fleet, Exception):
                self.program.LOG.error("%s", operator_text(fleet))
                status = ExitStatus.UNKNOWN
        if arguments.monitor and status is ExitStatus.OK:
            statuses = (cluster_status(one, _fleet_of(one, fleets), run) for one in clusters)
            status = max(statuses, default=ExitStatus.OK)
        rows = cluster_rows(clusters, fleets, run)
        if not run.settings.capi_helm.management_clusters:
            return COLUMNS, rows, status
        places = (management_of(cluster.stack_id) for cluster in clusters)
        named = ((*row, place) for row, place in zip(rows, places, strict=True))
        return (*COLUMNS, MANAGEMENT_COLUMN), named, status


def _is_listed(cluster: Any, arguments: argparse.Namespace) -> bool:
    status, health_status = cluster.status or "", cluster.health_status or ""
    asked = (arguments.status or "").upper()
    is_asked = not asked or status == asked or status.endswith(f"_{asked}")
    return is_asked and arguments.health in (None, health_status, health_status.lower())


def read_fleets(clients: Clients) -> dict[str, Fleet | errors.DriverError]:
    """The fleet of each management cluster by its name, or why it cannot be read; all at once."""
    listed = clients.all_clients()
    with futures.ThreadPoolExecutor(len(listed)) as pool:
        found = pool.map(_fleet_or_error, (one.kube for one in listed))
        return dict(zip((one.management for one in listed), found, strict=True))


def _fleet_or_error(kube: KubeClient) -> Fleet | errors.DriverError:
    try:
        return read_fleet(kube)
    except errors.DriverError as error:
        return error


def _fleet_of(cluster: Any, fleets: Mapping[str, Fleet]) -> Fleet:
    """The fleet of a cluster's management cluster; an empty one if that is not configured."""
    return fleets.get(management_of(cluster.stack_id)) or Fleet({}, {}, {})


def read_fleet(kube: KubeClient) -> Fleet:
    """All releases: one list of Leases, one of Machines, and one of charts for each that is new.

    :raises errors.DriverError: the management cluster cannot be read.
    """
    records = release_records(kube)
    ends: dict[ReleaseKey, datetime.datetime] = {}
    for key, end in kube.snapshot(names.MACHINE, _certificate_end)[0]:
        ends[key] = min(end, ends.get(key, end))
    return Fleet(records, ends, _charts(kube, records))


def _certificate_end(machine: Json) -> tuple[ReleaseKey, datetime.datetime] | None:
    """When the certificate of a control plane's machine expires, and of which release it is."""
    release = conditions.object_label(machine, names.LABEL_CLUSTER_NAME)
    expiry = certificate_expiry.first_expiry(machines.of_control_plane([machine]))
    if not release or expiry is None:
        return None
    return (str(conditions.metadata(machine).get("namespace")), release), expiry[0]


def _charts(kube: KubeClient, records: Mapping[ReleaseKey, ReleaseRecord | None]) -> dict[str, str]:
    """Name and version of each chart that a release has, by digest.

    Many releases have the same chart, and a copy of it is in the namespace of each.
    """
    charts: dict[str, str] = {}
    for (namespace, _), record in records.items():
        digest = record.chart_digest if record else ""
        if not digest or digest in charts:
            continue
        charts[digest] = ""
        for copy in kube.list(
            names.CONFIG_MAP, namespace, names.CHART_COPY_LABELS, metadata_only=True
        ):
            if conditions.name(copy) == names.chart_copy(digest):
                about = conditions.object_annotations(copy).get(names.CHART_COPY_ABOUT)
                charts[digest] = conditions.words(about)
    return charts


def cluster_rows(
    clusters: Iterable[Any], fleets: Mapping[str, Fleet], run: Reconciliation
) -> Iterator[tuple[Any, ...]]:
    """The columns of each cluster."""
    for cluster in clusters:
        key, fleet = _key(cluster, run.settings), _fleet_of(cluster, fleets)
        record, end = fleet.records.get(key), fleet.certificate_ends.get(key)
        pending = record.operations if record else ()
        since = min((operation.started_at for operation in pending), default=None)
        yield (
            cluster.name,
            cluster.uuid,
            cluster.project_id,
            cluster.status or "",
            cluster.health_status or "",
            _reason(cluster),
            cluster.coe_version or "",
            fleet.charts.get(record.chart_digest, "") if record else "",
            "" if end is None else days_left(end, run.now),
            "refused" if "credential" in (cluster.health_status_reason or {}) else "",
            ", ".join(dict.fromkeys(operation.title for operation in pending)),
            f"{since:%Y-%m-%d %H:%M:%S}" if since else "",
        )


def _reason(cluster: Any) -> str:
    """The class of the status reason, or that only time is needed; else the unhealthy parts."""
    reason = cluster.status_reason or ""
    status = cluster.status or ""
    cause = issue.row_class(status, reason)
    if not cause and status.endswith("_IN_PROGRESS"):
        return reason.partition(": ")[0] if reason.startswith("waiting: ") else ""
    if cause or cluster.health_status == health.HEALTHY:
        return cause
    return ", ".join(sorted(health.parts_not_ready(cluster.health_status_reason or {})))


def cluster_status(cluster: Any, fleet: Fleet, run: Reconciliation) -> ExitStatus:
    """How urgently a cluster needs an operator."""
    end = fleet.certificate_ends.get(_key(cluster, run.settings))
    certificates = ExitStatus.OK if end is None else expiry_status(end, run.now)
    status = cluster.status or ""
    if status.endswith("_FAILED") or cluster.health_status == health.UNHEALTHY:
        return ExitStatus.CRITICAL
    # Until an operation has ended there is no health.
    if cluster.health_status == health.UNKNOWN and not status.endswith("_IN_PROGRESS"):
        return max(ExitStatus.WARNING, certificates)
    return certificates


def _key(cluster: Any, settings: Settings) -> ReleaseKey:
    return reader.cluster_namespace(cluster, settings), release_of(cluster.stack_id)
