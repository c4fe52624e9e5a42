# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm rollout start``: choose clusters, and record the upgrade of all of them."""

from __future__ import annotations

import argparse
import re
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.desired.object_changes import release_changes
from magnum.drivers.k8s_capi_helm.commands.desired.release import desired_release
from magnum.drivers.k8s_capi_helm.commands.desired.rollout_duration import release_rollouts
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import find_template
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus, operator_text, Rows
from magnum.drivers.k8s_capi_helm.commands.rollout.options import (
    add_conditions,
    add_limits,
    check_limits,
    chosen_clusters,
    new_rollout,
)
from magnum.drivers.k8s_capi_helm.commands.rollout.record import Rollout
from magnum.drivers.k8s_capi_helm.commands.rollout.steps import RolloutSteps
from magnum.drivers.k8s_capi_helm.commands.rollout.store import RolloutStore
from magnum.drivers.k8s_capi_helm.labels.value_types.maintenance_window import common_opening
from magnum.drivers.k8s_capi_helm.magnum_objects import cluster_labels
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

COLUMNS = (
    *("Wave", "Cluster", "UUID", "Project", "Template"),
    *("Window", "Machines", "Minutes", "Refusal"),
)
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?")


class RolloutStart(RolloutSteps):
    """Record an upgrade of many clusters to a cluster template; 'rollout run' carries it out.

    With --dry-run nothing is recorded: each cluster is rendered as after its upgrade, with the
    machines that are replaced and the minutes that it takes. Exit status 0: it is recorded, or
    no upgrade would be refused; 1: the driver would refuse the upgrade of a cluster, or a notice
    could not be written; 3: it is not recorded.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which clusters, to which template, and how."""
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME", help="Of the rollout.")
        parser.add_argument("--template", required=True, help="UUID or name of the new template.")
        add_conditions(parser)
        add_limits(parser)
        parser.add_argument("--dry-run", action="store_true", help="Predict; record nothing.")
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each cluster."""
        _check_name(arguments.name)
        check_limits(arguments)
        template = find_template(arguments.template)
        clusters = [
            cluster
            for cluster in chosen_clusters(arguments)
            if cluster.cluster_template_id != template.uuid
        ]
        if not clusters:
            raise errors.InvalidRequest(
                "No cluster is to be upgraded. None fits the conditions and lacks template "
                f"'{template.name}'."
            )
        _refuse_private(template, clusters)
        _refuse_closed(run, arguments.window, clusters)
        rollout = new_rollout(arguments.name, arguments, template, clusters)
        waves = [member.wave for member in rollout.members]
        if not arguments.dry_run:
            store = RolloutStore(run)
            _refuse_others(store, rollout)
            store.create(rollout)
            status = self.record_plans(run, rollout, clusters)
            rows = [_row(run, *pair) for pair in zip(waves, clusters, strict=True)]
            return COLUMNS, rows, status
        rows = [
            _predicted(run, wave, cluster, template, arguments.max_batch_size)
            for wave, cluster in zip(waves, clusters, strict=True)
        ]
        is_refused = any(row[-1] for row in rows)
        return COLUMNS, rows, ExitStatus.WARNING if is_refused else ExitStatus.OK


def _check_name(name: str) -> None:
    """Refuse a name that no ConfigMap can have.

    :raises errors.InvalidRequest: naming it.
    """
    if _NAME.fullmatch(name) is None:
        raise errors.InvalidRequest(
            f"A name of a rollout has small letters, digits and hyphens only. It was '{name}'."
        )


def _refuse_private(template: Any, clusters: list[Any]) -> None:
    """Refuse a template that the users of a cluster could not see, and so not their cluster.

    :raises errors.InvalidRequest: naming the cluster.
    """
    for cluster in clusters:
        if not template.public and cluster.project_id != template.project_id:
            raise errors.InvalidRequest(
                "The cluster template is not public, and a cluster is of another project. Publish "
                f"template '{template.name}', or leave out cluster '{cluster.name}' of project "
                f"'{cluster.project_id}'."
            )


def _refuse_closed(run: Reconciliation, window: str, clusters: list[Any]) -> None:
    """Refuse a window that is never open together with that of a cluster.

    :raises errors.InvalidRequest: naming the cluster.
    """
    for cluster in clusters:
        own = _window(run, cluster)
        if common_opening((window, own), run.now) is None:
            raise errors.InvalidRequest(
                "The maintenance windows have no hour in common. Give another --window than "
                f"'{window}', or leave out cluster '{cluster.name}', whose label "
                f"maintenance_window is '{own}'."
            )


def _window(run: Reconciliation, cluster: Any) -> str:
    """A cluster's own maintenance window, "" without one."""
    return cluster_labels.parsed_labels(cluster, run.settings).maintenance_window or ""


def _refuse_others(store: RolloutStore, rollout: Rollout) -> None:
    """Refuse a rollout with a cluster that another one is to upgrade.

    :raises errors.InvalidRequest: naming the other one.
    """
    uuids = {member.uuid for member in rollout.members}
    for stored in store.list_all()[0]:
        other = stored.rollout
        if other.name == rollout.name:
            continue
        for member in other.members:
            if member.is_open and member.uuid in uuids:
                raise errors.InvalidRequest(
                    "Another rollout is to upgrade one of the clusters. Rollout "
                    f"'{other.name}' has cluster '{member.name}': wait until it is finished, or "
                    "delete it."
                )


def _row(run: Reconciliation, wave: int, cluster: Any) -> tuple[Any, ...]:
    known = wave, cluster.name, cluster.uuid, cluster.project_id
    return (*known, cluster.cluster_template.name, _window(run, cluster), "", "", "")


def _predicted(
    run: Reconciliation, wave: int, cluster: Any, template: Any, max_batch_size: int
) -> tuple[Any, ...]:
    """The row of a cluster with what its upgrade replaces, or why it is refused."""
    row = _row(run, wave, cluster)
    try:
        run = run.of_cluster(cluster.stack_id)
        desired = desired_release(run, cluster, template, max_batch_size)
        changes = release_changes(run, desired.live, desired.manifests(run))
        rollouts = release_rollouts(run, desired.live, changes)
    except errors.DriverError as error:
        return (*row[:-1], operator_text(error))
    machines = sum(rollout.machines for rollout in rollouts)
    return (*row[:-3], machines, sum(rollout.minutes for rollout in rollouts), "")
