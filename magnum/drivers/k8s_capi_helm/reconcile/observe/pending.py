# SPDX-License-Identifier: Apache-2.0
"""Whether a release is what Magnum's objects ask for."""

from __future__ import annotations

from magnum.drivers.k8s_capi_helm.model import ClusterRequest, LiveRelease, ReleaseRecord
from magnum.drivers.k8s_capi_helm.model import operation as model_operation
from magnum.drivers.k8s_capi_helm.reconcile.nodegroups import autoscaling, lost_request
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import upgrade
from magnum.drivers.k8s_capi_helm.values import change


def is_deployed(
    live: LiveRelease | None, request: ClusterRequest, record: ReleaseRecord | None
) -> bool:
    """Whether Helm has deployed everything that the rows ask for."""
    if live is None or live.status != "deployed":
        return False
    return not change.pending_changes(live.values, request, record.operations if record else ())


def is_applied(
    live: LiveRelease | None, request: ClusterRequest, record: ReleaseRecord | None
) -> bool:
    """Whether the release is as it was asked for, an upgrade and numbers of machines included."""
    operation = upgrade.pending_upgrade(record)
    is_begun = operation is None or operation.is_accepted
    return is_begun and not autoscaling.is_due(record) and is_deployed(live, request, record)


def is_joining(
    live: LiveRelease | None, request: ClusterRequest, record: ReleaseRecord | None
) -> bool:
    """Whether a release lacks nothing but nodegroups whose requests are still being checked.

    Their conductor may have died; the groups beside them do not wait until that is known.
    """
    return live is not None and is_applied(live, validated_request(request, record, live), record)


def is_pending(
    request: ClusterRequest, record: ReleaseRecord | None, live: LiveRelease | None
) -> bool:
    """Whether there is something to apply, besides the steps of an upgrade."""
    now = validated_request(request, record, live)
    return not is_deployed(live, now, record) or autoscaling.is_due(record)


def validated_request(
    request: ClusterRequest, record: ReleaseRecord | None, live: LiveRelease | None
) -> ClusterRequest:
    """What the rows ask for without nodegroups whose own requests are still being checked."""
    request = model_operation.without_deleted(request, record)
    if live is None:
        return request
    operations = record.operations if record else ()
    return lost_request.without_unvalidated(request, operations, live.values)
