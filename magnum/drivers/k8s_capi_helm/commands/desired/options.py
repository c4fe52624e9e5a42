# SPDX-License-Identifier: Apache-2.0
"""The options of commands that show what is desired of a cluster: now, or after an upgrade."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from magnum.drivers.k8s_capi_helm.commands.desired.label_option import read_labels
from magnum.drivers.k8s_capi_helm.commands.desired.release import desired_release, DesiredRelease
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    add_cluster_argument,
    find_own_cluster,
    find_template,
)
from magnum.drivers.k8s_capi_helm.commands.output.lister import Program
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

_CHART_VERSION = "capi_helm_chart_version"


def add_desired_arguments(parser: argparse.ArgumentParser) -> None:
    """Let a command take a cluster, and what it is to be upgraded to."""
    add_cluster_argument(parser)
    parser.add_argument(
        "--template",
        metavar="TEMPLATE",
        help="As after an upgrade to this cluster template (UUID or name). Without it and the "
        "next two: as Magnum's records ask for now.",
    )
    parser.add_argument(
        "--chart-version",
        metavar="VERSION",
        help="As after an upgrade to a template with this chart version, which need not exist.",
    )
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="As after an upgrade to a template with this label, which need not exist; may be "
        "repeated.",
    )


def read_desired(
    program: Program, run: Reconciliation, arguments: argparse.Namespace
) -> tuple[Reconciliation, DesiredRelease]:
    """What is desired of the cluster that is named; notes are logged.

    :returns: the reconciliation at the cluster's management cluster, and what is desired.
    :raises errors.DriverError: it cannot be found out.
    """
    cluster = find_own_cluster(arguments.cluster)
    changed = read_labels("--label", arguments.label)
    if arguments.chart_version:
        changed[_CHART_VERSION] = arguments.chart_version
    template = None
    if arguments.template or changed:
        template = find_template(arguments.template or cluster.cluster_template_id)
        template = _with_labels(template, changed.items())
    run = run.of_cluster(cluster.stack_id)
    desired = desired_release(run, cluster, template)
    for note in desired.notes:
        program.LOG.error("%s", note)
    return run, desired


def _with_labels(template: Any, labels: Iterable[tuple[str, str]]) -> Any:
    """A copy of a template with other labels, which is never saved."""
    changed = template.obj_clone()
    changed.labels = {**(template.labels or {}), **dict(labels)}
    return changed
