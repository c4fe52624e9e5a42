# SPDX-License-Identifier: Apache-2.0
"""The clients of this process, created from CONF on first use.

Loading the driver must touch neither kubeconfig nor helm nor network, because magnum-api loads it
too and has none of them; and conductors fork workers, which must not share a connection with their
parent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
import dataclasses
import datetime
import math
import os
import pathlib
import re
import threading
import time
from typing import Any

import certifi
from oslo_concurrency import lockutils

from magnum.drivers import k8s_capi_helm
from magnum.drivers.k8s_capi_helm import chart_store, errors, kube_client
from magnum.drivers.k8s_capi_helm.cloud import Cloud, ServiceClients, Services
from magnum.drivers.k8s_capi_helm.cloud.access import endpoints
from magnum.drivers.k8s_capi_helm.conf import management_clusters
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.helm import END_MARGIN, HelmClient
from magnum.drivers.k8s_capi_helm.kube.watch.informers import CachedReader, Informers
from magnum.drivers.k8s_capi_helm.lease import holder, ReleaseLeases
from magnum.drivers.k8s_capi_helm.metrics.registry import process_metrics, ProcessMetrics
from magnum.drivers.k8s_capi_helm.model import clock, names
from magnum.drivers.k8s_capi_helm.model.management_cluster import (
    DEFAULT_MANAGEMENT,
    ManagementCluster,
)
from magnum.drivers.k8s_capi_helm.reconcile.process.addon_check import AddonCheck
from magnum.drivers.k8s_capi_helm.reconcile.process.caches import Cache, FinishedOnce, FirstSeen
from magnum.drivers.k8s_capi_helm.reconcile.process.controller_check import ControllerCheck
from magnum.drivers.k8s_capi_helm.reconcile.process.credential_check import CredentialCheck
from magnum.drivers.k8s_capi_helm.reconcile.process.evaluation_cache import EvaluationCache

#: The charts that come with the driver.
BUNDLED = pathlib.Path(k8s_capi_helm.__file__).parent / "charts"
_CERTIFICATE = re.compile(
    "-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL | re.ASCII
)
#: Seconds that the first passes of a process wait for the first lists of its watches.
_FIRST_LISTS = 30.0
#: By process: workers are forked while other threads may hold it.
_locks: dict[int, threading.Lock] = {}
_made: dict[int, Clients] = {}


def openstack(
    context: Any, service_clients: Callable[[Any], ServiceClients] = endpoints.MagnumClients
) -> Cloud:
    """OpenStack as the person (or the service user) of *context* sees it.

    :param service_clients: makes Magnum's clients of a context.
    """
    return Cloud(Services(service_clients(context), is_admin=bool(context.is_admin)))


def _until_the_end() -> Cache[str, bool]:
    """A cache of what this process knows until it ends."""
    return Cache(math.inf)


@dataclasses.dataclass(frozen=True, slots=True)
class Clients:
    """What the driver is given: one set per process and management cluster, for all threads.

    Sets have nothing in common but the metrics, so that a management cluster that does not respond
    costs the clusters of another one nothing: no lock, no turn with Helm, no watch, no cache.

    :ivar management: name of its management cluster.
    :ivar peers: the clients of this process by management cluster that is used.
    :ivar leases: of releases: locks and records.
    :ivar credential_check: whether Keystone accepts the clusters' credentials.
    :ivar addon_check: what of the addons is in tenants' clusters.
    :ivar controller_check: whether Cluster API's controllers renew their Leases.
    :ivar informers: watches of the management cluster, None in a process without periodic tasks.
    :ivar evaluations: what the last evaluations of clusters were made of, and what they said.
    :ivar finished_deletions: clusters whose deletion has been reported a moment ago.
    :ivar first_seen: since when this process has seen requests that no conductor carries on.
    :ivar verdict_locks: held, by uuid of the cluster, while its verdict is written; a forked
        process has its own, with clients of its own.
    :ivar release_lists: held while all releases of a namespace are read: one conductor that starts
        is one client of the management cluster, however many threads its passes have.
    :ivar namespace_refusal: whether it is said that namespaces of projects stay.
    :ivar metrics: of this process.
    :ivar cloud: OpenStack as the person, or the service user, of a context sees it.
    :ivar clock: the time of this host (aware, UTC).
    :ivar pause: waits so many seconds.
    :ivar release_name: a name for the release of a new cluster, by the name of the cluster.
    """

    kube: kube_client.KubeClient
    leases: ReleaseLeases
    helm: HelmClient
    charts: chart_store.ChartStore
    credential_check: CredentialCheck = dataclasses.field(default_factory=CredentialCheck)
    addon_check: AddonCheck = dataclasses.field(default_factory=AddonCheck)
    controller_check: ControllerCheck = dataclasses.field(default_factory=ControllerCheck)
    informers: Informers | None = None
    evaluations: EvaluationCache = dataclasses.field(default_factory=EvaluationCache)
    finished_deletions: FinishedOnce = dataclasses.field(default_factory=FinishedOnce)
    first_seen: FirstSeen = dataclasses.field(default_factory=FirstSeen)
    verdict_locks: lockutils.Semaphores = dataclasses.field(default_factory=lockutils.Semaphores)
    release_lists: threading.Lock = dataclasses.field(default_factory=threading.Lock)
    namespace_refusal: Cache[str, bool] = dataclasses.field(default_factory=_until_the_end)
    metrics: ProcessMetrics = dataclasses.field(default_factory=process_metrics)
    cloud: Callable[[Any], Cloud] = openstack
    clock: Callable[[], datetime.datetime] = clock.utc_now
    pause: Callable[[float], None] = time.sleep
    release_name: Callable[[str], str] = names.release
    management: str = DEFAULT_MANAGEMENT
    peers: Mapping[str, Clients] = dataclasses.field(default_factory=dict, repr=False)

    def at(self, management: str) -> Clients:
        """The clients of a management cluster.

        :raises errors.ManagementRefused: none of this name is configured.
        """
        if management == self.management:
            return self
        if management not in self.peers:
            raise errors.ManagementRefused(
                "The management cluster of this cluster is not configured. Ask the operator to add "
                f"'{management}' to [capi_helm] management_clusters.",
                f"configured are {', '.join(sorted({*self.peers, self.management}))}",
            )
        return self.peers[management]

    def all_clients(self) -> list[Clients]:
        """The clients of each management cluster that is used."""
        found = [self if name == self.management else one for name, one in self.peers.items()]
        return found or [self]

    def reader(self) -> CachedReader:
        """The management cluster for a look that may be a moment old."""
        if self.informers is None:
            return CachedReader(self.kube, {})
        return self.informers.view()


def of_process(conf: Settings) -> Clients:
    """The clients of this process. No I/O happens here: each connects when it is used."""
    pid = os.getpid()
    with _locks.setdefault(pid, threading.Lock()):
        if pid not in _made:
            _made.clear()
            _made[pid] = build(conf)
        return _made[pid]


def ca_bundle(conf: Settings) -> str:
    """PEM text with which the cloud's endpoints are verified: the operator's, else Mozilla's.

    Of Mozilla's, only the certificates: a quarter of its text explains them, and each cluster's
    Secret has it (https://www.rfc-editor.org/rfc/rfc7468, section 2: readers ignore such text).

    :raises errors.InvalidConfiguration: the operator's file cannot be read.
    """
    own = conf.drivers.openstack_ca_file
    path = own or certifi.where()
    try:
        text = pathlib.Path(path).read_text()
        certificates = [] if own else _CERTIFICATE.findall(text)
        return "".join(f"{certificate}\n" for certificate in certificates) or text
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InvalidConfiguration(
            "This Magnum service cannot create clusters because of its configuration. Ask its "
            "operator to look into the log.",
            f"[drivers] openstack_ca_file is {path}: {error}",
        ) from None


def build(conf: Settings, charts: pathlib.Path = BUNDLED) -> Clients:
    """A new set of clients of the default management cluster, with those of the others.

    :param charts: directory of the charts that come with the driver.

    :raises errors.InvalidConfiguration: options contradict each other.
    """
    options = conf.capi_helm
    check_options(options)
    default = ManagementCluster(DEFAULT_MANAGEMENT, options.kubeconfig_file)
    peers: dict[str, Clients] = {}
    for one in (default, *management_clusters.read_management_clusters(conf)):
        if one.name not in peers:
            peers[one.name] = _build(options, charts, one, peers)
    if not management_clusters.is_default_used(conf):
        # It has no clusters: nothing is watched there, and no Lease is looked for.
        return dataclasses.replace(peers.pop(DEFAULT_MANAGEMENT), informers=None)
    return peers[DEFAULT_MANAGEMENT]


def _build(
    options: Any, charts: pathlib.Path, management: ManagementCluster, peers: Mapping[str, Clients]
) -> Clients:
    kube = kube_client.KubeClient(
        management,
        connect_timeout=options.management_connect_timeout,
        read_timeout=options.management_read_timeout,
        breaker_failures=options.management_breaker_failures,
        breaker_pause=options.management_breaker_pause,
    )
    helm = HelmClient(kube, timeout=options.helm_timeout, runs=options.max_helm_runs)
    return Clients(
        kube=kube,
        leases=ReleaseLeases(
            kube, holder=holder.holder_identity(), lease_duration=options.lease_duration
        ),
        helm=helm,
        charts=_chart_store(kube, helm, options, charts),
        addon_check=AddonCheck(datetime.timedelta(seconds=options.addon_check_interval)),
        controller_check=ControllerCheck(
            options.controller_leases, datetime.timedelta(seconds=options.controller_silence)
        ),
        informers=_informers(kube, options, management),
        management=management.name,
        peers=peers,
    )


def _chart_store(
    kube: kube_client.KubeClient, helm: HelmClient, options: Any, charts: pathlib.Path
) -> chart_store.ChartStore:
    return chart_store.ChartStore(
        bundled_charts=charts,
        directory=pathlib.Path(options.chart_directory),
        helm=helm,
        choice=chart_store.ChartChoice(
            repository=options.helm_chart_repo or None,
            name=options.helm_chart_name or None,
            default_version=options.default_helm_chart_version or None,
            allowed_sources=options.allowed_charts,
            versions=options.allowed_chart_versions,
        ),
        copies=chart_store.ChartConfigMaps(kube),
    )


def _informers(
    kube: kube_client.KubeClient, options: Any, management: ManagementCluster
) -> Informers | None:
    if not options.watch_staleness:
        return None
    prefix = f"{options.namespace_prefix}-"
    return Informers(
        kube,
        staleness=options.watch_staleness,
        covers=lambda namespace: namespace.startswith(prefix),
        first_lists=_FIRST_LISTS,
        management=management.metrics_label,
    )


def check_options(options: Any) -> None:
    lease = options.lease_duration
    for option, limit, purpose in (
        (
            "helm_timeout",
            lease - END_MARGIN,
            "a Helm run ends before another conductor can take over its lock",
        ),
        ("management_breaker_pause", lease / 2, "a lock is renewed in time after an outage"),
    ):
        if options[option] >= limit:
            raise errors.InvalidConfiguration(
                "This Magnum service cannot manage clusters because of its configuration. Ask its "
                "operator to look into the log.",
                f"[capi_helm] {option} is {options[option]:g}: it must be below {limit:g} (because "
                f"lease_duration is {lease:g}), so that {purpose}.",
            )
    for lease_name in options.controller_leases:
        if lease_name.count("/") != 1 or not all(lease_name.split("/")):
            raise errors.InvalidConfiguration(
                "This Magnum service cannot manage clusters because of its configuration. Ask its "
                "operator to look into the log.",
                f"[capi_helm] controller_leases has '{lease_name}': each is NAMESPACE/NAME of a "
                "Lease.",
            )
