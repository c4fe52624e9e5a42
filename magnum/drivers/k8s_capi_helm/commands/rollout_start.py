# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm rollout start``: choose clusters, and record the upgrade of all of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
import re
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.clusters import (
    find_own_cluster,
    find_template,
    own_clusters,
)
from magnum.drivers.k8s_capi_helm.commands.desired_release import desired_release
from magnum.drivers.k8s_capi_helm.commands.label_option import read_labels
from magnum.drivers.k8s_capi_helm.commands.lister import (
    ExitStatus,
    operator_text,
    OperatorLister,
    Rows,
)
from magnum.drivers.k8s_capi_helm.commands.maintenance_window import parse_window
from magnum.drivers.k8s_capi_helm.commands.object_changes import release_changes
from magnum.drivers.k8s_capi_helm.commands.rollout_duration import release_rollouts
from magnum.drivers.k8s_capi_helm.commands.rollout_plan import wave_numbers
from magnum.drivers.k8s_capi_helm.commands.rollout_record import Rollout, RolloutMember
from magnum.drivers.k8s_capi_helm.commands.rollout_store import RolloutStore
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile import ownership, planned_upgrade
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation

COLUMNS = ("Wave", "Cluster", "UUID", "Project", "Template", "Machines", "Minutes", "Refusal")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?")
_MINUTE = 60.0


class RolloutStart(OperatorLister):
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
        _add_conditions(parser)
        _add_limits(parser)
        parser.add_argument("--dry-run", action="store_true", help="Predict; record nothing.")
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each cluster."""
        _check(arguments)
        template = find_template(arguments.template)
        clusters = list(_chosen(run, arguments, template))
        if not clusters:
            raise errors.InvalidRequest(
                "No cluster is to be upgraded. None fits the conditions and lacks template "
                f"'{template.name}'."
            )
        _refuse_private(template, clusters)
        rollout = _rollout(arguments, template, clusters)
        waves = [member.wave for member in rollout.members]
        if not arguments.dry_run:
            store = RolloutStore(run)
            _refuse_others(store, rollout)
            store.create(rollout)
            status = self._record_plans(run, rollout, clusters)
            return COLUMNS, map(_row, waves, clusters), status
        rows = [
            _predicted(run, wave, cluster, template, arguments.max_batch_size)
            for wave, cluster in zip(waves, clusters, strict=True)
        ]
        is_refused = any(row[-1] for row in rows)
        return COLUMNS, rows, ExitStatus.WARNING if is_refused else ExitStatus.OK

    def _record_plans(
        self, run: Reconciliation, rollout: Rollout, clusters: list[Any]
    ) -> ExitStatus:
        """Let the notices of the clusters say what is planned; a failure stops nothing else."""
        upgrade = planned_upgrade.PlannedUpgrade(
            rollout.template, rollout.template_name, rollout.window
        )
        status = ExitStatus.OK
        for cluster in clusters:
            try:
                owner = ownership.owner(cluster, run.settings)
                clients = run.of_cluster(cluster.stack_id).clients
                planned_upgrade.record_plan(clients, owner, upgrade)
            except errors.DriverError as error:
                status = ExitStatus.WARNING
                self.program.LOG.error(
                    "Cluster %s has no notice: %s", cluster.uuid, operator_text(error)
                )
        return status


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


def _add_conditions(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which clusters (all conditions hold)")
    group.add_argument("--project", metavar="ID", help="Those of this project.")
    group.add_argument(
        "--from-template", metavar="TEMPLATE", help="Those that have this template now."
    )
    group.add_argument(
        "--kubernetes", metavar="VERSION", help="Those whose version begins so, such as v1.33."
    )
    group.add_argument(
        "--with-label", action="append", default=[], metavar="NAME=VALUE", help="With a label."
    )
    group.add_argument(
        "--cluster", action="append", default=[], metavar="CLUSTER", help="These alone."
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how")
    group.add_argument(
        "--waves",
        default="1,10%",
        metavar="SIZES",
        help="Sizes of the waves, as numbers or percentages of all; the last one is repeated. "
        "1,10%% by default.",
    )
    group.add_argument(
        "--budget", type=int, default=5, help="Clusters at once, 5 by default.", metavar="N"
    )
    group.add_argument(
        "--max-batch-size", type=int, default=1, metavar="N", help="Of the upgrades."
    )
    group.add_argument(
        "--soak", type=float, default=30, metavar="MINUTES", help="Between waves, default 30."
    )
    group.add_argument(
        "--timeout", type=float, default=120, metavar="MINUTES", help="Of a cluster, 120."
    )
    group.add_argument(
        "--window",
        default="",
        help="When upgrades are requested, such as 'Sat,Sun 22:00-04:00 Europe/Berlin'.",
    )


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what no rollout can be made of.

    :raises errors.InvalidRequest: naming option and value.
    """
    if _NAME.fullmatch(arguments.name) is None:
        raise errors.InvalidRequest(
            "A name of a rollout has small letters, digits and hyphens only. It was "
            f"'{arguments.name}'."
        )
    for option, least in (("budget", 1), ("max_batch_size", 1), ("soak", 0), ("timeout", 1)):
        value = getattr(arguments, option)
        if value < least:
            raise errors.InvalidRequest(
                "An option of the rollout is too small. --"
                f"{option.replace('_', '-')} is {value:g}, and at least {least} is needed."
            )
    if arguments.window:
        parse_window(arguments.window)


def _rollout(arguments: argparse.Namespace, template: Any, clusters: list[Any]) -> Rollout:
    try:
        waves = wave_numbers(arguments.waves.split(","), len(clusters))
    except ValueError as error:
        raise errors.InvalidRequest(
            "--waves takes sizes with commas between them, such as 1,5,25%. It has "
            f"'{arguments.waves}': {error}."
        ) from None
    members = tuple(
        RolloutMember(cluster.uuid, cluster.name or "", wave, cluster.cluster_template_id)
        for cluster, wave in zip(clusters, waves, strict=True)
    )
    return Rollout(
        name=arguments.name,
        template=template.uuid,
        template_name=template.name or "",
        members=members,
        budget=arguments.budget,
        max_batch_size=arguments.max_batch_size,
        soak=arguments.soak * _MINUTE,
        timeout=arguments.timeout * _MINUTE,
        window=arguments.window,
    )


def _chosen(run: Reconciliation, arguments: argparse.Namespace, template: Any) -> Iterator[Any]:
    """The clusters that all conditions choose, by name.

    :raises errors.InvalidRequest: a condition cannot be read, or names what does not exist.
    """
    named = {find_own_cluster(text).uuid for text in arguments.cluster}
    old = find_template(arguments.from_template).uuid if arguments.from_template else ""
    labels = read_labels("--with-label", arguments.with_label)
    for cluster in own_clusters(arguments.project):
        texts = cluster.labels or {}
        if (
            release_of(cluster.stack_id)
            and not (cluster.status or "").startswith("DELETE_")
            and cluster.cluster_template_id != template.uuid
            and (not named or cluster.uuid in named)
            and (not old or cluster.cluster_template_id == old)
            and (cluster.coe_version or "").startswith(arguments.kubernetes or "")
            and all(texts.get(name) == text for name, text in labels.items())
        ):
            yield cluster


def _row(wave: int, cluster: Any) -> tuple[Any, ...]:
    known = wave, cluster.name, cluster.uuid, cluster.project_id
    return (*known, cluster.cluster_template.name, "", "", "")


def _predicted(
    run: Reconciliation, wave: int, cluster: Any, template: Any, max_batch_size: int
) -> tuple[Any, ...]:
    """The row of a cluster with what its upgrade replaces, or why it is refused."""
    row = _row(wave, cluster)
    try:
        run = run.of_cluster(cluster.stack_id)
        desired = desired_release(run, cluster, template, max_batch_size)
        changes = release_changes(run, desired.live, desired.manifests(run))
        rollouts = release_rollouts(run, desired.live, changes)
    except errors.DriverError as error:
        return (*row[:-1], operator_text(error))
    machines = sum(rollout.machines for rollout in rollouts)
    return (*row[:-3], machines, sum(rollout.minutes for rollout in rollouts), "")
