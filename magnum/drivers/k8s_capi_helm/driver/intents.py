# SPDX-License-Identifier: Apache-2.0
"""What a verb leaves before anything slow: Magnum's status and the pending operation."""

from __future__ import annotations

from typing import Any

from oslo_log import log as logging
from oslo_utils import uuidutils

from magnum.drivers.k8s_capi_helm import assembly, errors, intake
from magnum.drivers.k8s_capi_helm.driver import passes, rows
from magnum.drivers.k8s_capi_helm.driver.rows import Status
from magnum.drivers.k8s_capi_helm.model import Operation, Verb

LOG = logging.getLogger(__name__)


def begin(
    cluster: Any,
    conf: Any,
    verb: Verb,
    *groups: str,
    must_be_known: bool = False,
    count: int | None = None,
    fields: tuple[str, ...] = (),
) -> None:
    """Save the intent: Magnum's status first, then the pending operation.

    The rows are what is carried out; the operation adds when it began and when it has to be
    through. When the management cluster is away the operation is simply not known there, and
    the periodic pass works from the rows.

    :param must_be_known: the rows alone do not say what is asked for.
    :param count: of a resize, machines that an autoscaled nodegroup is to be given.
    :param fields: of a nodegroup's update, the fields that it changes.
    :raises errors.DriverError: the operation could not be written down, and had to be.
    """
    deleting = verb is Verb.DELETE
    rows.intend(cluster, Status.DELETE_IN_PROGRESS if deleting else Status.UPDATE_IN_PROGRESS)
    now = passes.utc_now()
    minutes = conf.capi_helm.delete_timeout if deleting else conf.capi_helm.update_timeout
    called = intake.entries(cluster.nodegroups)
    operation = Operation(
        id=str(verb) if deleting else f"{verb}-{uuidutils.generate_uuid()[:8]}",
        verb=verb,
        started=now,
        groups=tuple(called[name] for name in groups),
        deadline=intake.deadline(now, minutes),
        count=count,
        fields=fields,
    )
    try:
        assembly.ports(conf).operations.add(
            intake.namespace(cluster, conf), cluster.stack_id, operation
        )
    except errors.DriverError as error:
        if must_be_known or not error.retryable:
            raise
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
