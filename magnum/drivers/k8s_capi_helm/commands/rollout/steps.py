# SPDX-License-Identifier: Apache-2.0
"""The steps of a rollout, and the notices of its clusters."""

from __future__ import annotations

from typing import Any

from magnum import objects
from magnum.common import context as magnum_context
from magnum.common import exception
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.output.lister import (
    clean_text,
    ExitStatus,
    operator_text,
    OperatorLister,
)
from magnum.drivers.k8s_capi_helm.commands.rollout.plan import (
    plan_next,
    with_refusal,
    with_request,
)
from magnum.drivers.k8s_capi_helm.commands.rollout.record import Rollout, RolloutState
from magnum.drivers.k8s_capi_helm.commands.rollout.status import observed_clusters
from magnum.drivers.k8s_capi_helm.commands.rollout.store import RolloutStore, StoredRollout
from magnum.drivers.k8s_capi_helm.labels.value_types.maintenance_window import common_opening
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import planned_upgrade


class RolloutSteps(OperatorLister):
    """A command that takes steps of rollouts."""

    def take_step(self, run: Reconciliation, store: RolloutStore, name: str) -> Rollout:
        """Look, record what has changed, and request what is next, one by one."""
        stored = store.read(name)
        before = stored.rollout
        is_open = common_opening([before.window], run.now) == run.now
        rollout, chosen = plan_next(before, observed_clusters(run), run.now, is_window_open=is_open)
        if rollout != before:
            stored = store.replace(stored, rollout)
            self._after(run, before, rollout)
        for uuid in chosen:
            if stored.rollout.state is RolloutState.RUNNING:
                stored = self._request(run, store, stored, uuid)
        return stored.rollout

    def _request(
        self, run: Reconciliation, store: RolloutStore, stored: StoredRollout, uuid: str
    ) -> StoredRollout:
        """Record a request, and make it.

        :raises errors.Conflict: the rollout has changed meanwhile; nothing is requested.
        """
        before, clock = stored.rollout, run.clients.clock
        stored = store.replace(stored, with_request(before, uuid, clock()))
        self._after(run, before, stored.rollout)
        rollout = stored.rollout
        try:
            self.program.conductor().request_upgrade(uuid, rollout.template, rollout.max_batch_size)
        except errors.InvalidRequest as error:
            stored = store.replace(stored, with_refusal(rollout, uuid, str(error), clock()))
            self._after(run, rollout, stored.rollout)
        return stored

    def _after(self, run: Reconciliation, before: Rollout, rollout: Rollout) -> None:
        """Say what has changed, and take notices from clusters for which nothing is planned."""
        for old, member in zip(before.members, rollout.members, strict=True):
            if old != member:
                text = f": {member.text}" if member.text else ""
                self.show(run, f"cluster {member.name} is {member.state.value}{text}")
        self.clear_notices(run, before, rollout)

    def show(self, run: Reconciliation, text: str) -> None:
        """A line of progress on the standard error."""
        self.program.stderr.write(f"{run.clients.clock():%H:%M:%S} {clean_text(text)}\n")
        self.program.stderr.flush()

    def record_plans(
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

    def clear_notices(self, run: Reconciliation, before: Rollout, after: Rollout) -> None:
        """Take the tenants' notice from clusters for which nothing is planned any more.

        A notice that stays is withdrawn by the driver when the cluster has the template.
        """
        planned = {member.uuid for member in after.members if member.is_open}
        context = magnum_context.make_admin_context(all_tenants=True)
        for member in before.members:
            if not member.is_open or member.uuid in planned:
                continue
            try:
                cluster = objects.Cluster.get_by_uuid(context, member.uuid)
                owner = ownership.owner(cluster, run.settings)
                clients = run.of_cluster(cluster.stack_id).clients
                planned_upgrade.record_plan(clients, owner, None)
            except exception.ClusterNotFound:
                continue
            except errors.DriverError as error:
                self.program.LOG.error(
                    "Cluster %s keeps its notice: %s", member.uuid, operator_text(error)
                )
