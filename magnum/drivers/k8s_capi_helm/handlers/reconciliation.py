# SPDX-License-Identifier: Apache-2.0
"""The reconciliation of a request, and the one of a periodic task."""

from __future__ import annotations

import enum
import functools
from typing import Any

from magnum.common import context as magnum_context
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.reconcile.clients import Clients
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation


class Trigger(enum.Enum):
    """What a pass is made for."""

    PERIODIC_TASK = enum.auto()
    #: A request that is on record.
    REQUEST = enum.auto()
    WATCH_EVENT = enum.auto()

    @property
    def may_finish(self) -> bool:
        """Whether a pass may end what is in progress."""
        return self is not Trigger.WATCH_EVENT

    def is_left_to_others(self, error: errors.DriverError) -> bool:
        """Whether a pass that meets an error is over, without a word.

        The holder of the lock applies what is on record, and writes the result. Every other error
        of a watch event is left to the next periodic task.
        """
        if self is Trigger.REQUEST:
            return isinstance(error, errors.LockHeld)
        return self is Trigger.WATCH_EVENT


def of_request(clients: Clients, settings: Settings, context: Any) -> Reconciliation:
    """One that begins now, with the cloud as the person of *context* sees it."""
    cloud = functools.cache(lambda: clients.cloud(context))
    return Reconciliation(clients, settings, cloud, clients.clock())


def of_periodic_task(clients: Clients, settings: Settings) -> Reconciliation:
    """One that begins now, with the cloud as Magnum's service user sees it.

    A periodic task has no user's token.
    """
    admin = magnum_context.make_admin_context(all_tenants=True)
    return of_request(clients, settings, admin)
