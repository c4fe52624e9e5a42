# SPDX-License-Identifier: Apache-2.0
"""The context of one reconciliation: clients, configuration, and objects read so far."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import datetime

from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.model import LiveRelease, Observed, ReleaseRecord
from magnum.drivers.k8s_capi_helm.model.management_cluster import management_of
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients


@dataclasses.dataclass(frozen=True, slots=True)
class Reconciliation:
    """The clients, the settings, the cloud and the time of one reconciliation.

    :ivar cloud: the cloud as the person who asks, or Magnum's service user, sees it; called only
        when something has to be asked there.
    :ivar now: its time (aware, UTC).
    """

    clients: Clients
    settings: Settings
    cloud: Callable[[], Cloud]
    now: datetime.datetime

    def of_cluster(self, stack_id: str | None) -> Reconciliation:
        """The same, at the management cluster of the cluster with this stack id.

        :raises errors.ManagementRefused: it is not configured.
        """
        return dataclasses.replace(self, clients=self.clients.at(management_of(stack_id)))


@dataclasses.dataclass(frozen=True, slots=True)
class ReleaseSnapshot:
    """Record, deployed release and objects, read in this order.

    It is read again after the lock was taken, and before Magnum's objects are written.

    :ivar record: None where there is no Lease.
    :ivar live: None where Helm has no release.
    :ivar observed: what an evaluation needs, objects out of the informers' cache among it; None
        where it was not observed yet.
    :ivar objects: Cluster API's objects, as the API server had them in this reconciliation after
        the last write, perhaps with what the cloud has said of them; None where they were not read.
    :ivar is_kept: record and release were not read now, but a while ago.
    :ivar is_changed: record and release are as they are after something was applied.
    """

    record: ReleaseRecord | None
    live: LiveRelease | None
    observed: Observed | None = None
    objects: Observed | None = None
    is_kept: bool = False
    is_changed: bool = False

    def with_release(
        self, record: ReleaseRecord | None, live: LiveRelease | None
    ) -> ReleaseSnapshot:
        """Record and release as they were read now, with objects of the same revision."""
        if live is None or self.live is None or live.revision != self.live.revision:
            return ReleaseSnapshot(record, live)
        is_kept = self.is_kept and record is self.record and live is self.live
        return ReleaseSnapshot(record, live, self.observed, self.objects, is_kept=is_kept)


@dataclasses.dataclass(frozen=True, slots=True)
class AppliedRelease:
    """A release that Helm has applied.

    :ivar objects: Cluster API's objects after that; None where Helm had nothing to do.
    """

    live: LiveRelease
    objects: Observed | None = None


#: Nothing was read yet.
UNKNOWN = ReleaseSnapshot(None, None)
