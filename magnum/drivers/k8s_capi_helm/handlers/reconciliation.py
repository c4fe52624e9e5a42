# SPDX-License-Identifier: Apache-2.0
"""The reconciliation of a request, and the one of a periodic task."""

from __future__ import annotations

import functools
from typing import Any

from magnum.common import context as magnum_context
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.reconcile.clients import Clients
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation


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
