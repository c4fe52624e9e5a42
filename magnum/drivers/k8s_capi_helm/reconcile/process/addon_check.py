# SPDX-License-Identifier: Apache-2.0
"""Addon checks: periodically look up the objects of addons in tenants' clusters."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import datetime
import random
import time
from typing import Protocol

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.http.request import path
from magnum.drivers.k8s_capi_helm.kube.tenant.tenant_api import TenantApi, TenantApiUnavailable
from magnum.drivers.k8s_capi_helm.kube.tenant.tenant_budget import TenantBudget
from magnum.drivers.k8s_capi_helm.kube.tenant.tenant_kubeconfig import read_tenant_kubeconfig
from magnum.drivers.k8s_capi_helm.model import (
    AddonInventory,
    conditions,
    Json,
    names,
    Observed,
    WorkloadObject,
)
from magnum.drivers.k8s_capi_helm.reconcile.process.caches import Cache
from magnum.drivers.k8s_capi_helm.status.health import READY
from magnum.drivers.k8s_capi_helm.status.objects import workload_addons

LOG = logging.getLogger(__name__)

#: How soon it is looked again where something is missing for the first time: somebody may be about
#: to mend it. Twice as long after each time.
_SOON = datetime.timedelta(minutes=1)
#: How long a cluster that cannot be reached is left alone at most.
_SELDOM = datetime.timedelta(hours=1)
#: How long nobody has asked about a cluster that has gone.
_FORGOTTEN = datetime.timedelta(days=1)
_AWAY = "not checked: Magnum cannot reach the cluster's API"


class ObjectReader(Protocol):
    """What is needed of the management cluster; kube_client.KubeClient has it."""

    def get(self, kind: names.Kind, namespace: str, name: str, /) -> Json | None: ...


@dataclasses.dataclass(frozen=True, slots=True)
class _Look:
    """The last one: when, for what, what was found, and how many in a row were in vain.

    :ivar poor: how many in a row found something missing.
    """

    at: datetime.datetime
    wanted: tuple[WorkloadObject, ...] = ()
    found: AddonInventory | None = None
    vain: int = 0
    poor: int = 0


class AddonCheck:
    """What this process knows of the insides of clusters; safe to share between threads.

    :param every: time between two looks at a cluster where nothing is missing; zero for none ever.
    :param jitter: a number from 0 to 1; clusters that are seen for the first time at once are not
        all looked at at once.
    :param enter: opens the door to a cluster.
    :param clock: seconds that only ever go up.
    """

    def __init__(
        self,
        every: datetime.timedelta = datetime.timedelta(0),
        jitter: Callable[[], float] = random.random,
        enter: Callable[..., TenantApi] = TenantApi,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._every = every
        self._chance = jitter
        self._enter = enter
        self._budget = TenantBudget()
        # Clusters that are there are looked at more often.
        self._known: Cache[str, _Look] = Cache(max(_FORGOTTEN, 2 * every).total_seconds(), clock)

    def inside(
        self,
        kube: ObjectReader,
        namespace: str,
        release: str,
        observed: Observed,
        recorded_text: str = "",
    ) -> AddonInventory | None:
        """Missing objects of the core addons in a cluster; None before the first check.

        Nobody looks where Cluster API, which tries all the time, does not reach the cluster either.

        :param recorded_text: what the cluster's row says of it: what was seen last, while this
            process has not looked itself. Where something was missing it looks at once.
        """
        expected = workload_addons.expected(observed.addons)
        if not self._every or not expected or not _is_reached(observed):
            return None
        key = f"{namespace}/{release}"
        last = self._known.get(key) or self._known.get_or_put(
            key, self._initial(observed.at, expected, recorded_text)
        )
        if last.wanted == expected and abs(observed.at - last.at) < self._interval(last):
            return last.found
        with self._budget.attempt(namespace, failed_before=last.vain > 0) as free:
            # Taken for done already: another thread that has taken it looks now.
            taken = dataclasses.replace(last, at=observed.at)
            if not free or not self._known.replace(key, last, taken):
                return last.found
            inventory = self._check_addons(kube, namespace, release, expected)
        failure_count = last.vain + 1 if inventory.unknown else 0
        missing_count = last.poor + 1 if inventory.missing else 0
        self._known.put(key, _Look(observed.at, expected, inventory, failure_count, missing_count))
        return inventory

    def is_due(self, namespace: str, release: str, at: datetime.datetime) -> bool:
        """Whether a cluster whose objects have not changed is to be checked by now."""
        last = self._known.get(f"{namespace}/{release}")
        return last is not None and abs(at - last.at) >= self._interval(last)

    def _initial(
        self, at: datetime.datetime, expected: tuple[WorkloadObject, ...], recorded_text: str
    ) -> _Look:
        """What is known before the first look, which counts as one that was at any time before."""
        known = {READY: AddonInventory(), _AWAY: AddonInventory(unknown=_AWAY)}.get(recorded_text)
        if recorded_text and known is None:
            return _Look(at - self._every, expected, known)
        return _Look(at - self._every * self._chance(), expected, known)

    def _interval(self, last: _Look) -> datetime.timedelta:
        if last.found is not None and last.found.missing:
            # Whoever mends it sees that soon; what nobody mends is no reason to look more often.
            return min(_SOON * float(1 << min(last.poor - 1, 10)), self._every)
        backoff = self._every * float(1 << min(last.vain, 10))
        return min(max(_SELDOM, self._every), backoff)

    def _check_addons(
        self, kube: ObjectReader, namespace: str, release: str, expected: tuple[WorkloadObject, ...]
    ) -> AddonInventory:
        try:
            secret = kube.get(names.SECRET, namespace, names.kubeconfig_secret(release))
            kubeconfig = read_tenant_kubeconfig(secret) if secret is not None else None
            if kubeconfig is None:
                raise TenantApiUnavailable("there is no kubeconfig of Cluster API's kind")
            with self._enter(kubeconfig) as api:
                existing = {obj: api.has(_path(obj)) for obj in expected}
        except (errors.DriverError, TenantApiUnavailable) as error:
            detail = error.detail if isinstance(error, errors.DriverError) else str(error)
            LOG.warning(
                "Release %s: its addons cannot be checked in the cluster: %s", release, detail
            )
            return AddonInventory(unknown=_AWAY)
        return AddonInventory(
            missing=tuple(obj for obj, is_found in existing.items() if not is_found)
        )


def _path(obj: WorkloadObject) -> str:
    return path(obj.kind, obj.kind.versions[0], obj.namespace, obj.name)


def _is_reached(observed: Observed) -> bool:
    """Whether Cluster API says that the cluster answers."""
    owner = observed.cluster
    return isinstance(owner, dict) and conditions.condition(owner, "RemoteConnectionProbe").good
