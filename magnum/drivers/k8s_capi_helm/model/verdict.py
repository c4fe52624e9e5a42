# SPDX-License-Identifier: Apache-2.0
"""The current state that Magnum shows, and the verdict after a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import datetime

from magnum.drivers.k8s_capi_helm.errors import Cause


@dataclasses.dataclass(frozen=True, slots=True)
class GroupState:
    """A nodegroup's row: what it wants and what Magnum shows of it.

    :ivar status: Magnum's word, e.g. ``UPDATE_IN_PROGRESS``.
    :ivar reason: the row's ``status_reason`` now.
    :ivar version: wanted Kubernetes version without ``v``, "" if unknown.
    :ivar waits_for_control_plane: it is to be upgraded, and waits for the control plane.
    :ivar scale_pending: ``count`` was asked for, and the autoscaler's group was not given it yet.
    :ivar ready_fingerprint: fingerprint of the earlier look that found the group in place, "" for
        none.
    """

    name: str
    status: str
    count: int
    is_control_plane: bool = False
    is_autoscaled: bool = False
    minimum: int = 0
    maximum: int | None = None
    reason: str | None = None
    version: str = ""
    waits_for_control_plane: bool = False
    scale_pending: bool = False
    ready_fingerprint: str = ""

    @property
    def is_deleting(self) -> bool:
        """Whether its row says that it is to go."""
        return self.status.startswith("DELETE_")


@dataclasses.dataclass(frozen=True, slots=True)
class MagnumState:
    """What Magnum has in its database for one cluster, and what the driver has promised.

    :ivar release: the release's name, "" before it has one.
    :ivar is_applied: the live release carries everything that the rows ask for, so what is seen can
        be compared with what is wanted. While False the cluster is never COMPLETE.
    :ivar only_new_nodegroups_missing: all that the live release lacks are new nodegroups whose
        requests are still being checked. The other groups can be COMPLETE.
    :ivar kubernetes_version: wanted, without ``v``, from the live release; "" if unknown.
    :ivar started_at: when the running operation began; None when that is not known.
    :ivar deadline: when the running operation has to be through; None for no limit.
    :ivar ready_fingerprint: fingerprint of the earlier look that found everything in place, "" for
        none.
    :ivar applied_generations: generations of objects, by uid, when Helm had written them last; a
        look that has older ones is older than what was asked for.
    :ivar refusal: user sentence of what stopped the running operation for good, "" for none.
    :ivar health_reason: what the row's ``health_status_reason`` says now, so that the time since
        when something is wrong can be kept.
    :ivar waiting_reason: why the live release is not what the rows ask for yet, "" if unknown;
        ``waiting_cause`` is who has to move, None when it is only a matter of time.
    :ivar without_addons: core addons that the live release switches off, e.g. ``csi-cinder``.
    """

    release: str
    status: str
    status_reason: str | None
    groups: tuple[GroupState, ...]
    is_applied: bool
    kubernetes_version: str = ""
    started_at: datetime.datetime | None = None
    deadline: datetime.datetime | None = None
    ready_fingerprint: str = ""
    applied_generations: Mapping[str, int] = dataclasses.field(default_factory=dict)
    refusal: str = ""
    health_reason: Mapping[str, str] = dataclasses.field(default_factory=dict)
    waiting_reason: str = ""
    waiting_cause: Cause | None = None
    without_addons: frozenset[str] = frozenset()
    only_new_nodegroups_missing: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class GroupVerdict:
    """What a nodegroup's row should say; ``is_deleted`` means that its row can be
    destroyed.

    :ivar node_count: None where the row's own count holds.
    :ivar addresses: None when nobody could read them.
    :ivar fingerprint: of a look that found the group in place, to be kept as its
        ``ready_fingerprint``.
    """

    name: str
    status: str
    reason: str | None
    node_count: int | None = None
    addresses: tuple[str, ...] | None = None
    is_deleted: bool = False
    fingerprint: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What Magnum should say about a cluster after one look.

    :ivar status: Magnum's status word; equal to the state's when nothing changes.
    :ivar fingerprint: of a look that found everything in place, to be kept as the next look's
        ``ready_fingerprint``; "" when not everything is in place.
    :ivar health_reason: texts only, keys as magnum-capi-helm has them.
    :ivar certificate_expiry: when the first certificate of the control plane expires (aware), None
        if that is not known.
    """

    status: str
    reason: str | None
    groups: tuple[GroupVerdict, ...]
    health: str
    health_reason: Mapping[str, str]
    fingerprint: str = ""
    api_address: str | None = None
    coe_version: str | None = None
    certificate_expiry: datetime.datetime | None = None
