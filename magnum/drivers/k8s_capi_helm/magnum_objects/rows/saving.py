# SPDX-License-Identifier: Apache-2.0
"""Save, create and destroy one record of Magnum, within column limits and with retries.

Galera takes a write back at its commit when another node was faster, InnoDB where two are in each
other's way, and says "deadlock, try restarting transaction"; a server that restarts has lost its
connections. Magnum's decorator for that stands on ``_do_update_cluster`` and
``_do_update_nodegroup``, where oslo.db never looks, so an update is tried once. It sets changed
fields to values, so that trying it again does no harm.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from oslo_db import api as db_api
from oslo_db.sqlalchemy import enginefacade
from oslo_log import log as logging

from magnum.common import exception
from magnum.db.sqlalchemy import models
from magnum.drivers.k8s_capi_helm.errors import column_limits
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.types import (
    Cluster,
    ClusterTemplate,
    NodeGroup,
)

LOG = logging.getLogger(__name__)
#: Seconds of the first pause, doubled each time and by lot after a deadlock; 6 seconds in all.
_FIRST_PAUSE, _LONGEST_PAUSE, TRIES = 0.1, 2.0, 6
#: Where oslo.db keeps the transactions of each thread, as in ``magnum.db.sqlalchemy.api``.
_CONTEXT = threading.local()
_again = db_api.wrap_db_retry(
    retry_interval=_FIRST_PAUSE,
    max_retry_interval=_LONGEST_PAUSE,
    max_retries=TRIES,
    retry_on_deadlock=True,
    retry_on_disconnect=True,
    jitter=True,
)


def save(obj: Cluster | NodeGroup | ClusterTemplate, **fields: Any) -> None:
    """Set fields of a record, and save what differs from the database.

    Magnum's conductor sets some fields without saving them (a nodegroup's DELETE_IN_PROGRESS), so
    what the object says already need not be what the database says. Texts are cut to what their
    columns hold.
    """
    for key, value in fields.items():
        fitted = column_limits.fit(key, value)
        if isinstance(value, list) and len(fitted) < len(value):
            LOG.warning(
                "Record %s: only %d of %d %s fit into Magnum's database.",
                obj.uuid,
                len(fitted),
                len(value),
                key,
            )
        if getattr(obj, key) != fitted:
            setattr(obj, key, fitted)
    if obj.obj_what_changed():
        _again(obj.save)()


def claim(obj: Cluster | NodeGroup, field: str, **fields: Any) -> bool:
    """Save fields of a record, if the database still has of *field* what the object has.

    Of several conductors that make the same change, one learns that it has made it.

    :returns: whether they are saved; else nothing is, and the object is as it was.
    """
    model = models.Cluster if obj.obj_name() == "Cluster" else models.NodeGroup
    fitted = {key: column_limits.fit(key, value) for key, value in fields.items()}
    expected = {"uuid": obj.uuid, field: getattr(obj, field)}

    def replace() -> int:
        with enginefacade.writer.using(_CONTEXT) as session:
            query = session.query(model).filter_by(**expected)
            return int(query.update(fitted, synchronize_session=False))

    if not _again(replace)():
        return False
    for key, value in fitted.items():
        setattr(obj, key, value)
    obj.obj_reset_changes(list(fitted))
    return True


def insert(obj: ClusterTemplate) -> None:
    """Create the record of a cluster template; Magnum itself tries this again."""
    obj.create()


def destroy(obj: NodeGroup | ClusterTemplate) -> None:
    """Destroy a record; one that is gone, by another conductor's pass, is as good.

    :raises magnum.common.exception.ClusterTemplateReferenced: clusters have this template.
    """
    with contextlib.suppress(exception.NodeGroupNotFound, exception.ClusterTemplateNotFound):
        _again(obj.destroy)()
