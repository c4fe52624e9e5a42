# SPDX-License-Identifier: Apache-2.0
"""Magnum's verbs: read, decide, act, record. The only module that saves or destroys Magnum objects.

What Magnum has saved before it calls a verb and what it does with an exception differs from verb to verb
(``magnum/conductor/handlers``). So each verb saves what is intended first, raises only what can be refused
before anything is touched, and otherwise returns: the periodic pass carries the work on.
"""

from __future__ import annotations

import datetime
import threading
from typing import Any

from oslo_log import log as logging
from oslo_utils import uuidutils

import magnum.conf
from magnum import objects
from magnum.common import context as magnum_context
from magnum.common import exception
from magnum.drivers.common import driver
from magnum.drivers.k8s_capi_helm import (
    assembly,
    certificates,
    conf,
    deletion,
    errors,
    founding,
    intake,
    names,
    reconcile,
    secrets,
    survey,
    teardown,
)
from magnum.drivers.k8s_capi_helm.model import ClusterRequest, Operation, Record, Verb, Verdict
from magnum.drivers.k8s_capi_helm.monitor import Monitor

CONF = magnum.conf.CONF
LOG = logging.getLogger(__name__)
conf.register_opts(CONF)

_CREATE_START_LIMIT = datetime.timedelta(minutes=10)
_SWEEP_AFTER = 30.0


class Driver(driver.Driver):  # type: ignore[misc]
    """Kubernetes clusters by Cluster API and Helm charts."""

    @property
    def provides(self) -> list[dict[str, str]]:
        """Server type, distribution and orchestration engine of the clusters this driver can make."""
        return [
            {"server_type": "vm", "os": distro, "coe": "kubernetes"} for distro in intake.DISTROS
        ]

    # Clusters ----------------------------------------------------------------------------------------
    def create_cluster(self, context: Any, cluster: Any, cluster_create_timeout: int) -> None:
        """Refuse what can be refused, then found the cluster and install its release.

        :raises errors.DriverError: becomes CREATE_FAILED with its sentence.
        """
        rows = list(cluster.nodegroups)
        intake.validate_new_cluster(cluster, rows)
        release = names.release(cluster.name)
        request = intake.cluster_request(cluster, rows, CONF, release=release)
        ports, cloud = assembly.ports(CONF), assembly.cloud(context)
        ports.helm.version()
        ports.charts.wanted(request.labels.capi_helm_chart_version)
        facts = cloud.facts(request, interface=CONF.capi_helm.app_cred_interface_type)
        intake.check_facts(request, facts, CONF)
        founding.open_namespace(ports, request.namespace, request.project_id)
        cluster.stack_id = release
        cluster.save()
        now = _now()
        timeout = cluster_create_timeout or cluster.create_timeout
        founding.open_record(ports, request, now, intake.deadline(now, timeout))
        with ports.operations.hold(
            request.namespace, release, wait=CONF.capi_helm.lock_wait
        ) as hold:
            pairs = certificates.key_pairs(context, cluster)
            founding.save_secrets(ports, cloud, request, facts, pairs, CONF)
            try:
                reconcile.bring_up_held(
                    ports, hold, lambda: _request(cluster), lambda: cloud, CONF, facts=facts
                )
            except errors.DriverError as error:
                if not error.retryable:
                    raise
                LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)

    def update_cluster(
        self, context: Any, cluster: Any, scale_manager: Any = None, rollback: bool = False
    ) -> None:
        """``PATCH node_count``: Magnum has saved the default worker group's new count."""
        self._resize(context, cluster, cluster.default_ng_worker)

    def resize_cluster(
        self,
        context: Any,
        cluster: Any,
        resize_manager: Any,
        node_count: int,
        nodes_to_remove: list[str] | None,
        nodegroup: Any = None,
    ) -> None:
        """Resize one nodegroup, by default the default worker group.

        :raises errors.InvalidRequest: ``nodes_to_remove`` is given, which is not supported yet.
        """
        if nodes_to_remove:
            raise errors.InvalidRequest(
                f"nodes_to_remove names {', '.join(nodes_to_remove)}; this version of the driver cannot "
                "remove chosen nodes. Resize without nodes_to_remove."
            )
        self._resize(context, cluster, nodegroup or cluster.default_ng_worker)

    def _resize(self, context: Any, cluster: Any, nodegroup: Any) -> None:
        self._require_ours(cluster)
        nodegroup.status = objects.fields.ClusterStatus.UPDATE_IN_PROGRESS
        nodegroup.status_reason = None
        nodegroup.save()
        self._begin(cluster, Verb.RESIZE, (nodegroup.name,))
        self._advance(context, cluster)

    def upgrade_cluster(
        self,
        context: Any,
        cluster: Any,
        cluster_template: Any,
        max_batch_size: int,
        nodegroup: Any,
        scale_manager: Any = None,
        rollback: bool = False,
    ) -> None:
        """Not supported by this version; Magnum then leaves the cluster as it is."""
        raise exception.NotSupported(
            operation="Upgrading a cluster with this version of the k8s_capi_helm driver"
        )

    def delete_cluster(self, context: Any, cluster: Any) -> None:
        """Take note of the deletion; the periodic pass deletes in order and with proof.

        :raises errors.NotOurs: nothing proves that the cluster is of this driver and here.
        """
        if cluster.stack_id:
            self._require_ours(cluster)
            self._begin(cluster, Verb.DELETE, ())
        cluster.status = objects.fields.ClusterStatus.DELETE_IN_PROGRESS
        cluster.status_reason = None
        cluster.save()

    def validate_master_resize(self, node_count: int) -> None:
        """Control planes can be resized to any odd number, which etcd's quorum asks for."""
        self.validate_master_size(node_count)

    # Nodegroups --------------------------------------------------------------------------------------
    def create_nodegroup(self, context: Any, cluster: Any, nodegroup: Any) -> None:
        """Add a nodegroup. One that cannot be made fails alone; the cluster stays as it is."""
        try:
            self._require_ours(cluster)
            intake.validate_new_nodegroup(nodegroup, cluster.cluster_template)
            intake.validate_nodegroup_labels(nodegroup, cluster)
            if self._is_being_deleted(cluster):
                raise errors.InvalidRequest("The cluster is being deleted.")
        except errors.DriverError as error:
            if error.retryable:
                LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
                return
            nodegroup.status = objects.fields.ClusterStatus.CREATE_FAILED
            nodegroup.status_reason = str(error)
            nodegroup.save()
            return
        self._begin(cluster, Verb.NODEGROUP_CREATE, (nodegroup.name,))
        self._advance(context, cluster)

    def update_nodegroup(self, context: Any, cluster: Any, nodegroup: Any) -> None:
        """Not supported by this version.

        :raises errors.InvalidRequest: always.
        """
        raise errors.InvalidRequest(
            f"Nodegroup '{nodegroup.name}' cannot be updated with this version of the driver. Its node "
            "count can be changed with 'openstack coe cluster resize'."
        )

    def delete_nodegroup(self, context: Any, cluster: Any, nodegroup: Any) -> None:
        """Take a nodegroup away; its row goes when its last machine has."""
        self._require_ours(cluster)
        nodegroup.status = objects.fields.ClusterStatus.DELETE_IN_PROGRESS
        nodegroup.status_reason = None
        nodegroup.save()
        self._begin(cluster, Verb.NODEGROUP_DELETE, (nodegroup.name,))
        self._advance(context, cluster)

    # Federations, which Magnum asks every driver for --------------------------------------------------
    def create_federation(self, context: Any, federation: Any) -> None:
        """Refused: this driver makes clusters, not federations of clusters."""
        raise exception.NotSupported(operation="Creating a federation")

    def update_federation(self, context: Any, federation: Any) -> None:
        """Refused: this driver makes clusters, not federations of clusters."""
        raise exception.NotSupported(operation="Updating a federation")

    def delete_federation(self, context: Any, federation: Any) -> None:
        """Refused: this driver makes clusters, not federations of clusters."""
        raise exception.NotSupported(operation="Deleting a federation")

    def rotate_credential(self, context: Any, cluster: Any) -> None:
        """Not supported by this version; nothing changes."""
        raise exception.NotSupported(
            operation="Rotating the credential with this version of the k8s_capi_helm driver"
        )

    # Magnum's periodic tasks -------------------------------------------------------------------------
    def update_cluster_status(
        self, context: Any, cluster: Any, use_admin_ctx: bool = False
    ) -> None:
        """Carry on what is in progress and write what is true; called every ten seconds or so."""
        current = objects.Cluster.get_by_uuid(context, cluster.uuid)
        if current.status != cluster.status:
            cluster.status, cluster.status_reason = current.status, current.status_reason
            cluster.obj_reset_changes(["status", "status_reason"])
            return
        if cluster.status == objects.fields.ClusterStatus.DELETE_IN_PROGRESS:
            self._delete_on(cluster)
        else:
            self._advance(context, cluster)

    def get_monitor(self, context: Any, cluster: Any) -> Monitor:
        """Magnum's health poll; it also brings FAILED clusters back that have come good."""
        return Monitor(context, cluster, lambda: self._poll(context, cluster))

    def _poll(self, context: Any, cluster: Any) -> Verdict | None:
        if not names.is_release(cluster.stack_id):
            return None
        statuses = objects.fields.ClusterStatus
        ports, now = assembly.ports(CONF), _now()
        if cluster.status == statuses.DELETE_FAILED and self._proved(cluster):
            cluster.status = statuses.DELETE_IN_PROGRESS
            cluster.save()
        rows = list(cluster.nodegroups)
        found = survey.judge(ports, cluster, rows, CONF, now, cloud=_admin_cloud)
        if cluster.status.endswith("_FAILED") and not cluster.status.startswith("DELETE"):
            self._write(context, cluster, rows, found)
        elif cluster.status.endswith("_COMPLETE") and any(
            row.status.endswith("_IN_PROGRESS") for row in rows
        ):
            # A nodegroup verb and a pass that had looked before it crossed each other.
            cluster.status = statuses.UPDATE_IN_PROGRESS
            cluster.save()
        return found.verdict

    # What the verbs and passes have in common --------------------------------------------------------
    def _begin(self, cluster: Any, verb: Verb, groups: tuple[str, ...]) -> None:
        """Save the intent: Magnum's status first, then the pending operation.

        The rows are what is carried out; the operation adds when it began and when it has to be through.
        When the management cluster is away the operation is simply not known there, and the periodic
        pass works from the rows.
        """
        statuses = objects.fields.ClusterStatus
        deleting = verb is Verb.DELETE
        cluster.status = statuses.DELETE_IN_PROGRESS if deleting else statuses.UPDATE_IN_PROGRESS
        cluster.status_reason = None
        cluster.save()
        now = _now()
        minutes = CONF.capi_helm.delete_timeout if deleting else CONF.capi_helm.update_timeout
        operation = Operation(
            id=str(verb) if deleting else f"{verb}-{uuidutils.generate_uuid()[:8]}",
            verb=verb,
            started=now,
            groups=groups,
            deadline=intake.deadline(now, minutes),
        )
        try:
            assembly.ports(CONF).operations.add(
                intake.namespace(cluster, CONF), cluster.stack_id, operation
            )
        except errors.DriverError as error:
            if not error.retryable:
                raise
            LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)

    def _advance(self, context: Any, cluster: Any) -> None:
        """One pass: apply what is pending, look, judge, write."""
        if not names.is_release(cluster.stack_id):
            self._fail_unfounded(cluster)
            return
        ports, now = assembly.ports(CONF), _now()
        if self._is_being_deleted(cluster):
            cluster.status = objects.fields.ClusterStatus.DELETE_IN_PROGRESS
            cluster.save()
            return
        waiting = refusal = ""
        try:
            outcome = reconcile.bring_up(
                ports, lambda: _request(cluster), _admin_cloud, CONF, now
            )
            waiting = outcome.waiting
        except errors.DriverError as error:
            LOG.error("Cluster %s: %s %s", cluster.uuid, error, error.detail)
            refusal = str(error)
        rows = list(cluster.nodegroups)
        found = survey.judge(
            ports, cluster, rows, CONF, now, cloud=_admin_cloud, refusal=refusal, waiting=waiting
        )
        self._write(context, cluster, rows, found)

    def _write(self, context: Any, cluster: Any, rows: list[Any], found: survey.Finding) -> None:
        """Write a verdict, unless what it judged has been overtaken meanwhile."""
        ports, verdict = assembly.ports(CONF), found.verdict
        namespace, release = intake.namespace(cluster, CONF), cluster.stack_id
        current = objects.Cluster.get_by_uuid(context, cluster.uuid)
        fresh = {row.uuid: row for row in cluster.nodegroups}
        judged = {row.uuid: (row.status, row.node_count) for row in rows}
        if current.status != cluster.status or judged != {
            uuid: (row.status, row.node_count) for uuid, row in fresh.items()
        }:
            return
        if found.record is not None and not found.unreachable:
            latest = ports.operations.read(namespace, release)
            if latest is None or latest.operations != found.record.operations:
                return
            if verdict.fingerprint != found.record.first_look:
                ports.operations.remember(namespace, release, first_look=verdict.fingerprint)
            if verdict.status.endswith(("_COMPLETE", "_FAILED")):
                ports.operations.finish(namespace, release, [op.id for op in latest.operations])
        for group in verdict.groups:
            row = next(row for row in fresh.values() if row.name == group.name)
            if group.gone:
                row.destroy()
                continue
            _set(row, status=group.status, status_reason=group.reason)
            if group.node_count is not None:
                _set(row, node_count=group.node_count)
            if group.addresses:
                _set(row, node_addresses=list(group.addresses))
        if verdict.api_address:
            cluster.api_address = verdict.api_address
        if verdict.coe_version:
            cluster.coe_version = verdict.coe_version
        cluster.status, cluster.status_reason = verdict.status, verdict.reason
        cluster.save()

    def _fail_unfounded(self, cluster: Any) -> None:
        """A row without a release: its create has just begun, or its conductor died."""
        created = cluster.created_at
        if created is None or _now() - created < _CREATE_START_LIMIT:
            return
        cluster.status = objects.fields.ClusterStatus.CREATE_FAILED
        cluster.status_reason = (
            "The creation was interrupted before anything was made. Delete this cluster and create it "
            "again."
        )
        cluster.save()

    def _delete_on(self, cluster: Any) -> None:
        """One pass of a deletion; only here a cluster becomes DELETE_COMPLETE."""
        statuses = objects.fields.ClusterStatus
        if not names.is_release(cluster.stack_id):
            cluster.status, cluster.status_reason = statuses.DELETE_COMPLETE, None
            cluster.save()
            return
        ports, owner = assembly.ports(CONF), _owner(cluster)
        try:
            step = teardown.advance(ports, owner, _admin_cloud, CONF, _now())
        except errors.DriverError as error:
            LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
            cluster.status_reason = str(error)
        else:
            cluster.status_reason = step.reason or None
            if step.action is deletion.Action.DONE:
                cluster.status = statuses.DELETE_COMPLETE
                self._sweep_later(owner)
            elif step.action is deletion.Action.NO_PROOF or self._is_late(owner):
                cluster.status = statuses.DELETE_FAILED
        cluster.save()

    def _is_late(self, owner: secrets.Owner) -> bool:
        record = assembly.ports(CONF).operations.read(owner.namespace, owner.release)
        limits = [op.deadline for op in (record.operations if record else ()) if op.deadline]
        return bool(limits) and _now() > max(limits)

    def _sweep_later(self, owner: secrets.Owner) -> None:
        """Remove the tombstone once Magnum has removed the row; a crash before is no harm."""
        ports = assembly.ports(CONF)

        def sweep() -> None:
            try:
                ports.operations.sweep(owner.namespace, owner.release)
            except errors.DriverError as error:
                LOG.warning("Lease of release %s stays behind: %s", owner.release, error)

        timer = threading.Timer(_SWEEP_AFTER, sweep)
        timer.daemon = True
        timer.start()

    # Whose cluster it is -----------------------------------------------------------------------------
    def _require_ours(self, cluster: Any) -> None:
        """Refuse a cluster of another driver, or one that is not on this management cluster.

        :raises errors.NotOurs: with a sentence.
        :raises errors.ManagementUnreachable: nobody can tell.
        """
        if not names.is_release(cluster.stack_id):
            raise errors.NotOurs(
                f"Cluster '{cluster.name}' has the stack id '{cluster.stack_id}', which is not of this "
                "driver. An operator has to look which driver made it."
            )
        if not self._proved(cluster):
            raise errors.NotOurs(
                f"Nothing on the management cluster proves that release '{cluster.stack_id}' belongs to "
                f"cluster '{cluster.name}'. An operator has to check that the driver's kubeconfig names "
                "the right management cluster."
            )

    def _proved(self, cluster: Any) -> bool:
        ports, owner = assembly.ports(CONF), _owner(cluster)
        record = ports.operations.read(owner.namespace, owner.release)
        if record is not None:
            return teardown.has_proof(record, None, owner.cluster_uuid)
        name = names.credential_secret(owner.release)
        credential = ports.kube.get(names.SECRET, owner.namespace, name)
        if not teardown.has_proof(None, credential, owner.cluster_uuid):
            return False
        ports.operations.open(
            owner.namespace,
            owner.release,
            cluster_uuid=owner.cluster_uuid,
            project_id=owner.project_id,
        )
        return True

    def _is_being_deleted(self, cluster: Any) -> bool:
        try:
            record: Record | None = assembly.ports(CONF).operations.read(
                intake.namespace(cluster, CONF), cluster.stack_id
            )
        except errors.DriverError as error:
            LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
            return False
        operations = record.operations if record else ()
        return any(operation.verb is Verb.DELETE for operation in operations)


def _request(cluster: Any) -> ClusterRequest:
    return intake.cluster_request(cluster, cluster.nodegroups, CONF)


def _owner(cluster: Any) -> secrets.Owner:
    return secrets.Owner(
        release=cluster.stack_id,
        namespace=intake.namespace(cluster, CONF),
        project_id=cluster.project_id,
        user_id=cluster.user_id,
        cluster_uuid=cluster.uuid,
    )


def _admin_cloud() -> Any:
    return assembly.cloud(magnum_context.make_admin_context(all_tenants=True))


def _set(row: Any, **fields: Any) -> None:
    changed = {key: value for key, value in fields.items() if getattr(row, key) != value}
    for key, value in changed.items():
        setattr(row, key, value)
    if changed:
        row.save()


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
