# SPDX-License-Identifier: Apache-2.0
"""Leases as they are changed: read and replaced until nobody came in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import copy
import random

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.lease import capacity, codec
from magnum.drivers.k8s_capi_helm.model import Json, names, ReleaseRecord

# Of many requests at once that change a Lease each time one alone is through, and a server that is
# slow makes the turns long.
_TURNS = 200
_BETWEEN = 0.1
_LAST_LOOK = 2.0


class LeaseUpdates:
    """The Leases of all releases.

    :param pause: waits so many seconds.
    """

    def __init__(self, kube: KubeClient, pause: Callable[[float], None]) -> None:
        self._kube = kube
        self._pause = pause

    def listed(self, namespace: str) -> Iterator[tuple[str, ReleaseRecord]]:
        """Releases of a namespace and what their Leases say.

        :raises errors.DriverError: the management cluster cannot be used.
        """
        for one in self._kube.list(names.LEASE, namespace):
            release = (one["metadata"].get("labels") or {}).get(names.LABEL_CLUSTER_NAME)
            if release:
                yield release, codec.record(one)

    def change(self, namespace: str, release: str, change: Callable[[Json], None]) -> ReleaseRecord:
        """Read, change and replace the Lease of a release until nobody came in between.

        :param change: of the Lease; to change it twice is to change it once.
        :raises errors.Conflict: there is no Lease, or others were always faster.
        :raises errors.RecordFull: it would hold more than it may.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        for _ in range(_TURNS):
            found = self._kube.get(names.LEASE, namespace, names.lease(release))
            if found is None:
                raise codec.not_found(release)
            changed = _changed(found, change)
            if changed == found:
                return codec.record(found)
            try:
                return codec.record(self._kube.replace(names.LEASE, changed))
            except errors.Conflict:
                self.rest()
            except errors.ManagementUnreachable:
                if (found := self._arrived(namespace, release, change)) is None:
                    raise
                return codec.record(found)
        raise codec.too_large(release, _TURNS)

    def _arrived(self, namespace: str, release: str, change: Callable[[Json], None]) -> Json | None:
        """The Lease, if a change is in it that nobody has confirmed; None if not, or unknown."""
        # Also for whoever does not wait any more: what is on record is not to be called refused.
        with deadline.at_least(_LAST_LOOK), contextlib.suppress(errors.DriverError):
            found = self._kube.get(names.LEASE, namespace, names.lease(release))
            if found is not None and _changed(found, change) == found:
                return found
        return None

    def rest(self) -> None:
        """Let others write."""
        self._pause(_BETWEEN * random.uniform(0.1, 1.0))  # noqa: S311 - not for secrets


def _changed(found: Json, change: Callable[[Json], None]) -> Json:
    changed = copy.deepcopy(found)
    change(changed)
    if changed != found:
        capacity.make_room(changed)
    return changed
