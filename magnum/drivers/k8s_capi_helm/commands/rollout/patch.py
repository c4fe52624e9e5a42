# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm rollout patch``: automatic patch releases, step by step, for a timer.

It records rollouts as ``rollout start`` does, one after the other, and takes the steps that are
due. Nothing else decides when a cluster is upgraded: waves, budget, windows and the stop at the
first cluster that does not come good are those of every rollout.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
import dataclasses
from typing import Any

from magnum import objects
from magnum.common import context as magnum_context
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus, Rows
from magnum.drivers.k8s_capi_helm.commands.rollout.options import (
    add_conditions,
    add_limits,
    check_limits,
    chosen_clusters,
    new_rollout,
)
from magnum.drivers.k8s_capi_helm.commands.rollout.patch_templates import (
    patch_templates,
    PatchTemplate,
)
from magnum.drivers.k8s_capi_helm.commands.rollout.record import (
    MemberState,
    Rollout,
    RolloutMember,
    RolloutState,
)
from magnum.drivers.k8s_capi_helm.commands.rollout.status import (
    COLUMNS,
    exit_status,
    observed_clusters,
    rollout_row,
)
from magnum.drivers.k8s_capi_helm.commands.rollout.steps import RolloutSteps
from magnum.drivers.k8s_capi_helm.commands.rollout.store import RolloutStore, StoredRollout
from magnum.drivers.k8s_capi_helm.labels.value_types.maintenance_window import common_opening
from magnum.drivers.k8s_capi_helm.magnum_objects import cluster_labels
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

PATCH_COLUMNS = ("Cluster", "UUID", "Project", "From", "To", "Template", "Window")


class RolloutPatch(RolloutSteps):
    """Upgrade clusters to the newest patch release of their minor version, in the window.

    For a timer: each call records the next rollout if none is left, takes the steps that are due,
    and ends. A cluster is upgraded if there is a public template that differs from its own in the
    image alone, and if its label auto_upgrade_enabled is not false. A rollout that has stopped is
    the last one until 'rollout resume' or 'rollout delete'. Exit status 0: nothing is left to do,
    1: a rollout is not finished, or has left out clusters, or with --dry-run clusters would be
    upgraded, 2: a rollout has stopped, 3: a service did not answer.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which clusters, and how."""
        parser = super().get_parser(prog_name)
        add_conditions(parser)
        add_limits(parser)
        parser.add_argument(
            "--dry-run", action="store_true", help="Show the clusters and versions; do nothing."
        )
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """The rollout of now, or the clusters that have a newer patch release."""
        check_limits(arguments)
        if not arguments.window:
            raise errors.InvalidRequest(
                "Automatic upgrades need a maintenance window. Give --window, for example 'Sat,Sun "
                "22:00-04:00 Europe/Berlin'."
            )
        store = RolloutStore(run)
        stored = self._recorded(store)
        if arguments.dry_run:
            return self._predicted(run, stored, arguments)
        unfinished = _unfinished(stored)
        rollout = unfinished[0] if unfinished else self._record_next(run, store, stored, arguments)
        if rollout is None:
            return COLUMNS, [], ExitStatus.OK
        if rollout.state is RolloutState.RUNNING:
            rollout = self.take_step(run, store, rollout.name)
        return COLUMNS, [rollout_row(run, rollout, observed_clusters(run))], exit_status(rollout)

    def _recorded(self, store: RolloutStore) -> list[StoredRollout]:
        """All rollouts.

        :raises errors.DriverError: one cannot be read, so it is not known what it is about.
        """
        stored, unreadable = store.list_all()
        for name, error in unreadable.items():
            raise errors.InvalidRequest(
                f"A rollout cannot be read, so nothing new is planned. It is '{name}': {error}"
            )
        return stored

    def _predicted(
        self, run: Reconciliation, stored: list[StoredRollout], arguments: argparse.Namespace
    ) -> Rows:
        """A row for each cluster that has a newer patch release."""
        rows = []
        for cluster, patch in _planned(run, stored, arguments):
            labels = cluster_labels.parsed_labels(cluster, run.settings)
            known = cluster.name, cluster.uuid, cluster.project_id, cluster.coe_version
            target = f"v{patch.version}", patch.template.name
            rows.append((*known, *target, labels.maintenance_window or ""))
        return PATCH_COLUMNS, rows, ExitStatus.WARNING if rows else ExitStatus.OK

    def _record_next(
        self,
        run: Reconciliation,
        store: RolloutStore,
        stored: list[StoredRollout],
        arguments: argparse.Namespace,
    ) -> Rollout | None:
        """Record the rollout of the first template to which clusters are to be upgraded, if any.

        Of two hosts that do so at once, one is refused: both choose the same name.
        """
        planned = _planned(run, stored, arguments)
        if not planned:
            return None
        _, first = planned[0]
        clusters = [one for one, patch in planned if patch.template.uuid == first.template.uuid]
        name = f"auto-{first.version}-{first.template.uuid[:8]}".replace(".", "-")
        rollout = new_rollout(name, arguments, first.template, clusters, is_auto=True)
        previous = [one for one in stored if one.rollout.is_auto and one.rollout.name == name]
        if previous:
            left_out = filter(_is_left_out, previous[0].rollout.members)
            rollout = dataclasses.replace(rollout, members=(*rollout.members, *left_out))
        recorded = store.replace(previous[0], rollout) if previous else store.create(rollout)
        self.record_plans(run, rollout, clusters)
        self.show(run, f"rollout {name} is recorded, with {len(clusters)} clusters")
        return recorded.rollout


def _is_left_out(member: RolloutMember) -> bool:
    return member.state is MemberState.SKIPPED


def _unfinished(stored: Iterable[StoredRollout]) -> list[Rollout]:
    """The automatic rollouts that are not finished; one after the other there is one at most."""
    rollouts = (one.rollout for one in stored)
    return [one for one in rollouts if one.is_auto and one.state is not RolloutState.FINISHED]


def _planned(
    run: Reconciliation, stored: Iterable[StoredRollout], arguments: argparse.Namespace
) -> list[tuple[Any, PatchTemplate]]:
    """The clusters that have a newer patch release, with its template; by template and name.

    Without clusters of another rollout, those whose window is never open in this one, and those
    that an automatic rollout to that template has left out: its record is kept until it is deleted.
    """
    known = [(one.rollout, member) for one in stored for member in one.rollout.members]
    taken = {member.uuid for _, member in known if member.is_open}
    left_out = {
        (member.uuid, rollout.template)
        for rollout, member in known
        if rollout.is_auto and _is_left_out(member)
    }
    clusters = {one.uuid: one for one in chosen_clusters(arguments) if one.uuid not in taken}
    context = magnum_context.make_admin_context(all_tenants=True)
    found = patch_templates(run, clusters.values(), objects.ClusterTemplate.list(context))
    planned = [(clusters[uuid], patch) for uuid, patch in found.items()]
    return sorted(
        (
            (cluster, patch)
            for cluster, patch in planned
            if (cluster.uuid, patch.template.uuid) not in left_out
            and _can_open(run, arguments, cluster)
        ),
        key=lambda one: (one[1].template.name or "", one[1].template.uuid, one[0].name or ""),
    )


def _can_open(run: Reconciliation, arguments: argparse.Namespace, cluster: Any) -> bool:
    own = cluster_labels.parsed_labels(cluster, run.settings).maintenance_window or ""
    return common_opening((arguments.window, own), run.now) is not None
