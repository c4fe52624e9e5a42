# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm charts fetch``: put charts into the store of this host before they are needed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
import functools
from typing import Any

from magnum.drivers.k8s_capi_helm import conf, errors, labels
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    find_own_cluster,
    find_record,
    find_template,
    own_clusters,
)
from magnum.drivers.k8s_capi_helm.commands.lookup.templates import shown_templates
from magnum.drivers.k8s_capi_helm.commands.output.lister import (
    ExitStatus,
    operator_text,
    OperatorLister,
    Rows,
)
from magnum.drivers.k8s_capi_helm.model import Chart
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import upgrade

COLUMNS = ("For", "Chart", "Digest", "Source", "Path", "Finding")
_LOST = (
    "The directory of [capi_helm] chart_directory cannot be written, so the chart is gone when "
    "the command ends."
)


class ChartFetch(OperatorLister):
    """Fetch the charts of new or existing clusters into the store of this host.

    Exit status 0: all are in the store, 1: the store cannot be written, so that they are lost, 2: a
    chart cannot be fetched, or is not allowed.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which charts."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "versions",
            nargs="*",
            metavar="VERSION",
            help="Of the chart; without any the one that new clusters get.",
        )
        parser.add_argument("--name", help="Of a chart of [capi_helm] allowed_charts.")
        parser.add_argument("--repository", metavar="URL", help="Where that chart is.")
        parser.add_argument(
            "--template", action="append", help="The chart of a template instead; may be repeated."
        )
        parser.add_argument(
            "--cluster", action="append", help="The chart of a cluster instead; may be repeated."
        )
        parser.add_argument(
            "--all-clusters", action="store_true", help="The charts of all clusters instead."
        )
        parser.add_argument(
            "--all-templates",
            action="store_true",
            help="The charts of all templates that are not hidden instead.",
        )
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each chart."""
        ways = (
            bool(arguments.versions or arguments.name or arguments.repository),
            bool(arguments.template or arguments.all_templates),
            bool(arguments.cluster or arguments.all_clusters),
        )
        if sum(ways) > 1:
            raise errors.InvalidRequest(
                "Choose charts in one way. Name versions, templates or clusters."
            )
        rows, status = [], ExitStatus.OK
        for user, fetch in _requests(run, arguments):
            try:
                chart = fetch()
            except errors.DriverError as error:
                rows.append((user, "", "", "", "", operator_text(error)))
                status = ExitStatus.CRITICAL
                continue
            is_lost = not _is_kept(run, chart)
            status = max(status, ExitStatus.WARNING if is_lost else ExitStatus.OK)
            rows.append(
                (
                    user,
                    f"{chart.name} {chart.version}",
                    chart.digest,
                    chart.source,
                    chart.path,
                    _LOST if is_lost else "",
                )
            )
        return COLUMNS, rows, status


def _requests(
    run: Reconciliation, arguments: argparse.Namespace
) -> Iterator[tuple[str, Callable[[], Chart]]]:
    """Who needs a chart, and what fetches it."""
    if arguments.cluster or arguments.all_clusters:
        chosen = map(find_own_cluster, arguments.cluster or ())
        for cluster in own_clusters() if arguments.all_clusters else chosen:
            yield f"cluster {cluster.name}", functools.partial(_chart_of_cluster, run, cluster)
    elif arguments.template or arguments.all_templates:
        named = map(find_template, arguments.template or ())
        for template in shown_templates() if arguments.all_templates else named:
            texts = template.labels or {}
            yield f"template {template.name}", functools.partial(_chart_by_labels, run, texts)
    else:
        for version in arguments.versions or [""]:
            texts = {
                "capi_helm_chart_version": version,
                "capi_helm_chart_name": arguments.name or "",
                "capi_helm_chart_repo": arguments.repository or "",
            }
            user = f"version {version}" if version else "new clusters"
            yield user, functools.partial(_chart_by_labels, run, texts)


def _chart_by_labels(run: Reconciliation, texts: Mapping[str, str]) -> Chart:
    """The chart of a new cluster with these labels; a text that is empty names nothing.

    :raises errors.DriverError: it is not allowed, or cannot be fetched.
    """
    typed = labels.parse(texts, conf.label_defaults(run.settings))
    return upgrade.new_chart(run.clients, typed)


def _chart_of_cluster(run: Reconciliation, cluster: Any) -> Chart:
    """The very chart of a cluster.

    :raises errors.DriverError: it has none, or it cannot be fetched.
    """
    run = run.of_cluster(cluster.stack_id)
    owner, record = find_record(run, cluster)
    live = run.clients.helm.live(owner.namespace, owner.release)
    if live is None:
        raise errors.InvalidRequest(
            "The cluster has no Helm release, and so no chart. Release "
            f"'{owner.release}' is not in namespace '{owner.namespace}'."
        )
    return run.clients.charts.of_release(live, record.chart_digest)


def _is_kept(run: Reconciliation, chart: Chart) -> bool:
    """Whether a chart is there when the command has ended; one that is bundled always is."""
    inventory = run.clients.charts.inventory
    return inventory.is_kept(chart) or all(
        stored.chart.path != chart.path for stored in inventory.list_charts()
    )
