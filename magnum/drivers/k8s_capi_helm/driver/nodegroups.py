# SPDX-License-Identifier: Apache-2.0
"""Verbs on one nodegroup: what is refused fails that nodegroup alone, the rest is written down."""

from __future__ import annotations

from typing import Any

from magnum.drivers.k8s_capi_helm import assembly, change, errors, intake, ownership, revisions
from magnum.drivers.k8s_capi_helm.driver import intents, newcomer, room, rows, sizes
from magnum.drivers.k8s_capi_helm.driver.rows import Status
from magnum.drivers.k8s_capi_helm.model import NOTHING, Verb


def create(context: Any, cluster: Any, nodegroup: Any, conf: Any) -> None:
    """Add a nodegroup. One that cannot be made fails alone; the cluster stays as it is."""
    ports = assembly.ports(conf)
    try:
        ownership.require(ports, cluster, conf)
        ownership.refuse_leaving(cluster)
        checked = newcomer.check(ports, context, cluster, nodegroup, conf)
        # Its row follows the autoscaler from the beginning, so only the record keeps a number.
        verb, name, row = Verb.NODEGROUP_CREATE, nodegroup.name, nodegroup.uuid
        intents.begin(
            cluster,
            conf,
            verb,
            name,
            must_be_known=checked.count is not None,
            count=checked.count,
            row=row,
            resolved=checked.resolved,
        )
    except errors.DriverError as error:
        newcomer.refuse(ports, cluster, nodegroup, conf, error)
        return
    intents.carry_on(context, cluster, conf)


def update(context: Any, cluster: Any, nodegroup: Any, conf: Any) -> None:
    """Change bounds, labels and taints of a nodegroup. One that cannot be changed fails alone.

    Magnum would save the wanted fields with whatever it is told; so refused ones are dropped
    here, and nothing is raised, which would leave the whole cluster UPDATE_FAILED.
    """
    ports, fields = assembly.ports(conf), rows.changed_fields(nodegroup)
    if cluster.stack_id and intents.cannot_be_asked(cluster, nodegroup, conf):
        return
    try:
        ownership.require(ports, cluster, conf)
        intake.validate_details(nodegroup)
        live = newcomer.live_release(ports, cluster, conf)
        intake.validate_taints(nodegroup, newcomer.family(live))
        bounds = sizes.rebound(ports, cluster, nodegroup, fields, conf)
    except errors.DriverError as error:
        nodegroup.obj_reset_changes()
        rows.refuse(nodegroup, error)
        return
    old = {row.uuid: row for row in cluster.nodegroups}[nodegroup.uuid]
    wanted = nodegroup.obj_what_changed() - {"status", "status_reason"}
    before = {field: getattr(old, field) for field in wanted}
    # The rows do not tell "none" from "never asked", nor bounds of the autoscaler from a site's
    # new defaults; only the record does.
    must_be_known = bounds.must_be_known or rows.empties(nodegroup)
    try:
        operation = intents.begin(
            cluster,
            conf,
            Verb.NODEGROUP_UPDATE,
            nodegroup.name,
            must_be_known=must_be_known,
            count=bounds.count,
            fields=fields,
            bounds=rows.bounds(old) if set(fields) & set(change.BOUNDS) else None,
            resolved=room.flavor(context, cluster, nodegroup) if bounds.scales else NOTHING,
        )
    except errors.DriverError as error:
        rows.refuse(nodegroup, error, **before)
        return
    rows.intend(nodegroup, Status.UPDATE_IN_PROGRESS)
    intents.insist(cluster, nodegroup, conf, operation)
    intents.carry_on(context, cluster, conf)


def delete(context: Any, cluster: Any, nodegroup: Any, conf: Any) -> None:
    """Take a nodegroup away; its row goes when its last machine has.

    :raises errors.DriverError: nothing proves that the cluster is of this driver and here, its
        release is older than what runs, or the management cluster refuses.
    """
    ports = assembly.ports(conf)
    ownership.require(ports, cluster, conf)
    revisions.require(ports, intake.namespace(cluster, conf), cluster.stack_id)
    rows.intend(nodegroup, Status.DELETE_IN_PROGRESS)
    intents.begin(cluster, conf, Verb.NODEGROUP_DELETE, nodegroup.name, row=nodegroup.uuid)
    intents.carry_on(context, cluster, conf)
