# SPDX-License-Identifier: Apache-2.0
"""The ports of this process, put together from CONF when they are first needed.

Loading the driver must touch neither kubeconfig nor helm nor network, because magnum-api loads it
too and has none of them; and conductors fork workers, which must not share a connection with their
parent.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import pathlib
import socket
import threading
from typing import Any

import certifi
from oslo_utils import uuidutils

from magnum.drivers import k8s_capi_helm
from magnum.drivers.k8s_capi_helm import chart_store, errors, kube_client
from magnum.drivers.k8s_capi_helm.cloud import Cloud, endpoints
from magnum.drivers.k8s_capi_helm.helm import HelmClient, MARGIN
from magnum.drivers.k8s_capi_helm.kube import informers
from magnum.drivers.k8s_capi_helm.lease import Operations
from magnum.drivers.k8s_capi_helm.reconcile.addon_check import Inspections
from magnum.drivers.k8s_capi_helm.reconcile.controller_check import Controllers
from magnum.drivers.k8s_capi_helm.reconcile.credential_check import Logins
from magnum.drivers.k8s_capi_helm.reconcile.finished_once import Departures
from magnum.drivers.k8s_capi_helm.reconcile.first_seen import Sightings
from magnum.drivers.k8s_capi_helm.reconcile.settled_cache import Resting

_BUNDLED = pathlib.Path(k8s_capi_helm.__file__).parent / "charts"
#: By process: workers are forked while other threads may hold it.
_locks: dict[int, threading.Lock] = {}
_made: dict[int, Ports] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Ports:
    """The doors to the management cluster; one set per process, used by all of its threads.

    :ivar logins: what this process knows of the clusters' credentials.
    :ivar inspections: what it knows of the insides of clusters.
    :ivar controllers: what it knows of the management cluster's controllers.
    :ivar resting: what it knows of clusters at rest.
    :ivar departures: what it knows of clusters that have just come to their end.
    :ivar sightings: since when it has seen requests that nobody carries on.
    """

    kube: kube_client.KubeClient
    operations: Operations
    helm: HelmClient
    charts: chart_store.ChartStore
    logins: Logins = dataclasses.field(default_factory=Logins)
    inspections: Inspections = dataclasses.field(default_factory=Inspections)
    controllers: Controllers = dataclasses.field(default_factory=Controllers)
    watching: informers.Watching | None = None
    resting: Resting = dataclasses.field(default_factory=Resting)
    departures: Departures = dataclasses.field(default_factory=Departures)
    sightings: Sightings = dataclasses.field(default_factory=Sightings)

    def reader(self) -> informers.View:
        """The management cluster for a look that may be a moment old."""
        if self.watching is None:
            return informers.View(self.kube, {}, 0.0)
        return self.watching.view()


def ports(conf: Any) -> Ports:
    """This process's ports. No I/O happens here: each port connects when it is used."""
    pid = os.getpid()
    with _locks.setdefault(pid, threading.Lock()):
        if pid not in _made:
            _made.clear()
            _made[pid] = make(conf)
        return _made[pid]


def cloud(context: Any) -> Cloud:
    """OpenStack as the person (or the service user) of *context* sees it."""
    return Cloud(endpoints.Clients(context), sees_all=bool(context.is_admin))


def ca_bundle(conf: Any) -> str:
    """PEM text with which the cloud's endpoints are verified: the operator's, else Mozilla's.

    :raises errors.Misconfigured: the operator's file cannot be read.
    """
    path = conf.drivers.openstack_ca_file or certifi.where()
    try:
        return pathlib.Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise errors.Misconfigured(
            "This Magnum service cannot make clusters because of its configuration. Ask its "
            "operator to look into the log.",
            f"[drivers] openstack_ca_file is {path}: {error}",
        ) from None


def make(conf: Any) -> Ports:
    """A new set of ports.

    :raises errors.Misconfigured: options contradict each other.
    """
    group = conf.capi_helm
    _check(group)
    kube = kube_client.KubeClient(
        group.kubeconfig_file or None,
        connect_timeout=group.management_connect_timeout,
        read_timeout=group.management_read_timeout,
        breaker_failures=group.management_breaker_failures,
        breaker_pause=group.management_breaker_pause,
    )
    helm = HelmClient(kube, timeout=group.helm_timeout, runs=group.max_helm_runs)
    holder = f"{socket.gethostname()}/{os.getpid()}/{uuidutils.generate_uuid()[:8]}"
    return Ports(
        kube=kube,
        operations=Operations(kube, holder=holder, lease_duration=group.lease_duration),
        helm=helm,
        charts=chart_store.ChartStore(
            bundled=_BUNDLED,
            directory=pathlib.Path(group.chart_directory),
            helm=helm,
            repository=group.helm_chart_repo or None,
            name=group.helm_chart_name or None,
            default_version=group.default_helm_chart_version or None,
            allowed=group.allowed_charts,
            versions=group.allowed_chart_versions,
            copies=chart_store.Copies(kube),
        ),
        inspections=Inspections(datetime.timedelta(seconds=group.addon_check_interval)),
        controllers=Controllers(
            group.controller_leases, datetime.timedelta(seconds=group.controller_silence)
        ),
        watching=_watching(kube, group),
    )


def _watching(kube: kube_client.KubeClient, group: Any) -> informers.Watching | None:
    if not group.watch_staleness:
        return None
    prefix = f"{group.namespace_prefix}-"
    return informers.Watching(
        kube,
        staleness=group.watch_staleness,
        covers=lambda namespace: namespace.startswith(prefix),
    )


def _check(group: Any) -> None:
    lease = group.lease_duration
    for option, limit, why in (
        (
            "helm_timeout",
            lease - MARGIN,
            "a run of helm ends before its lock can be taken",
        ),
        ("management_breaker_pause", lease / 2, "a lock is renewed as soon as that can be done"),
    ):
        if group[option] >= limit:
            raise errors.Misconfigured(
                "This Magnum service cannot work on clusters because of its configuration. Ask its "
                "operator to look into the log.",
                f"[capi_helm] {option} is {group[option]:g}: it has to be below {limit:g} (because "
                f"lease_duration is {lease:g}), so that {why}.",
            )
    for one in group.controller_leases:
        if one.count("/") != 1 or not all(one.split("/")):
            raise errors.Misconfigured(
                "This Magnum service cannot work on clusters because of its configuration. Ask its "
                "operator to look into the log.",
                f"[capi_helm] controller_leases has '{one}': each is NAMESPACE/NAME of a Lease.",
            )
