# SPDX-License-Identifier: Apache-2.0
"""Read all releases of a namespace at once, where most of them are not cached.

A conductor that starts has none. Record and release of one cluster take three requests, and those
of all clusters of a project three lists.
"""

from __future__ import annotations

from magnum.drivers.k8s_capi_helm.model import conditions, names
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import ReleaseSnapshot
from magnum.drivers.k8s_capi_helm.reconcile.observe import evaluation_inputs
from magnum.drivers.k8s_capi_helm.reconcile.observe.evaluation_inputs import CacheKey
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients

#: Releases from which on the lists are fewer requests.
_MANY = 2


def cache_releases(clients: Clients, namespace: str, release: str, key: CacheKey) -> None:
    """Cache the deployed releases of a namespace, if *release* and most others are not cached.

    They are read as each of them would be, the records before the releases, and kept under the same
    rules. What is not deployed as it is recorded is left to the pass of its own cluster.

    :param key: of the cluster of *release*; nothing is read while something of it is in progress.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    if clients.informers is None or not (key.is_settled and key.is_lease_watched):
        return
    version = key.view.version(names.LEASE, namespace, names.lease(release))
    if not version or clients.evaluations.has_release(release, key.view.place, version):
        return
    if not clients.informers.is_whole(key.view):
        return
    # Passes of several clusters come at once: the first one reads for all of them.
    with clients.release_lists:
        missing = _missing(clients, namespace, key)
        if release not in missing or len(missing) < _MANY:
            return
        records = clients.leases.records(namespace)
        for name, live in clients.helm.deployed_releases(namespace).items():
            if name in missing:
                snapshot = ReleaseSnapshot(records.get(name), live)
                evaluation_inputs.keep_release(clients, name, key, snapshot)


def _missing(clients: Clients, namespace: str, key: CacheKey) -> frozenset[str]:
    """Releases of a namespace that are not cached; none while that is the smaller part of them."""
    versions: dict[str, str] = {}
    for lease in key.view.list(names.LEASE, namespace, None):
        metadata = conditions.metadata(lease)
        release = conditions.mapping(metadata.get("labels")).get(names.LABEL_CLUSTER_NAME)
        versions[str(release)] = str(metadata.get("resourceVersion"))
    missing = frozenset(
        release
        for release, version in versions.items()
        if not clients.evaluations.has_release(release, key.view.place, version)
    )
    return missing if 2 * len(missing) > len(versions) else frozenset()
