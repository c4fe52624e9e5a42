# SPDX-License-Identifier: Apache-2.0
"""The request to create a cluster: all refusals before anything is created."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import functools
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.cloud import provision
from magnum.drivers.k8s_capi_helm.handlers.entry import rpc
from magnum.drivers.k8s_capi_helm.handlers.requests import preflight
from magnum.drivers.k8s_capi_helm.handlers.tasks import finalize_deletion, status_task
from magnum.drivers.k8s_capi_helm.magnum_objects import certificates, state
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import saving
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.writer import Status
from magnum.drivers.k8s_capi_helm.model import CredentialRoles
from magnum.drivers.k8s_capi_helm.reconcile import install, new_cluster, reconciler
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.credentials import credentials
from magnum.drivers.k8s_capi_helm.reconcile.policy import management_choice
from magnum.drivers.k8s_capi_helm.reconcile.release import prerequisites, project_namespace

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class CreatePlan:
    """A cluster that can be created.

    :ivar run: the reconciliation at its management cluster.
    :ivar created_cluster: its request, what the cloud said of it, and its values.
    :ivar grants: what its credentials may do.
    """

    run: Reconciliation
    created_cluster: install.CreatedCluster
    grants: CredentialRoles


def plan_create(
    run: Reconciliation, context: Any, cluster: Any, nodegroups: list[Any]
) -> CreatePlan:
    """The plan of a cluster, under a name that no release has yet.

    :param nodegroups: rows of its nodegroups.
    :raises errors.DriverError: it cannot be made; nothing was touched.
    """
    clients, conf = run.clients, run.settings
    release = clients.release_name(cluster.name)
    request = new_cluster.read_new_request(cluster, nodegroups, conf, release)
    run = management_choice.choose_management(run, request)
    clients = run.clients
    roles = credentials.roles_for(context, conf, separate=request.separate_addon_credential)
    clients.helm.version()
    chart = new_cluster.find_chart(run, request, cluster, nodegroups)
    facts = preflight.for_cluster(run, request)
    values = new_cluster.render_new_cluster(conf, request, facts, chart)
    return CreatePlan(run, install.CreatedCluster(request, facts, chart, values), roles)


def create(
    begin_run: Callable[[], Reconciliation], context: Any, cluster: Any, timeout: int
) -> None:
    """Refuse what can be refused, then create what a release needs, and install it.

    :param begin_run: makes the reconciliation; what it raises is a refusal like any other.
    :param timeout: minutes that Magnum gives it, 0 for the cluster's own.
    :raises errors.DriverError: becomes CREATE_FAILED with its sentence.
    """
    # Magnum has made certificates and not saved yet which: nobody else would ever find them.
    try:
        is_there = finalize_deletion.save_created(context, cluster)
    except Exception as error:  # Magnum writes its words, whatever they are
        raise rpc.as_driver_error(error, cluster.uuid) from error
    if not is_there:
        return
    nodegroups = list(cluster.nodegroups)
    try:
        _create(begin_run(), context, cluster, nodegroups, timeout)
    except Exception as error:  # whatever it is, no row may stay CREATE_IN_PROGRESS
        driver_error = rpc.as_driver_error(error, cluster.uuid)
        if finalize_deletion.is_leaving(
            context, cluster
        ):  # Magnum would write CREATE_FAILED over that
            return
        for nodegroup in nodegroups:
            saving.save(nodegroup, status=Status.CREATE_FAILED, status_reason=str(driver_error))
        raise driver_error from error


def _create(
    run: Reconciliation, context: Any, cluster: Any, nodegroups: list[Any], timeout: int
) -> None:
    conf, end = run.settings, rpc.deadline_of_request()
    plan = plan_create(run, context, cluster, nodegroups)
    clients = plan.run.clients
    request = plan.created_cluster.request
    release, level = request.release, conf.capi_helm.pod_security_level
    # The cloud has had its time: what begins here has its whole one.
    run = dataclasses.replace(plan.run, now=clients.clock())
    limit = state.deadline(run.now, timeout or cluster.create_timeout)
    # The Lease comes first: nothing proves a release without one, and a row with its name could
    # not be deleted. A Lease whose row does not know its name is found by its label.
    facts = plan.created_cluster.facts
    create_lease = functools.partial(
        prerequisites.ensure_lease, clients, request, facts, run.now, limit
    )
    project_namespace.create_in_namespace(clients, request, level, create_lease)
    if not finalize_deletion.name_release(run, context, cluster, release):
        return
    with clients.leases.acquire(
        request.namespace, release, wait=conf.capi_helm.lock_wait
    ) as held_lease:
        pairs = certificates.key_pairs(context, cluster)
        facts = provision.create_resources(run.cloud(), request, facts)
        created = dataclasses.replace(plan.created_cluster, facts=facts)
        prerequisites.save_secrets(run, held_lease, request, facts, pairs, plan.grants)
        try:
            # What comes before cannot be left to a pass, and nobody waits for a creation.
            cluster_rows = status_task.magnum_rows(run, context, cluster)
            with deadline.end_at(end):
                reconciler.reconcile_held(run, held_lease, cluster_rows, created_cluster=created)
        except errors.DriverError as error:
            if not error.retryable:
                raise
            LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
