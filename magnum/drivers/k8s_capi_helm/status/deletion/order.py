# SPDX-License-Identifier: Apache-2.0
"""The order of a deletion: its next step, and what blocks it; unreadable never counts as deleted.

The order is Cluster API's: the Cluster object first, whose controller takes machines, control
plane and infrastructure away in order; only then what they need while they go, the Secrets with the
credential. Source: the Cluster API book, "Quick start", clean up; magnum-capi-helm deletes in the
same order.
"""

from __future__ import annotations

import dataclasses
import enum

from magnum.drivers.k8s_capi_helm.model import conditions, Json, Missing, names, Observed
from magnum.drivers.k8s_capi_helm.status.deletion import progress as deletion_progress

#: Why a cluster is not given up when nothing shows that this is its management cluster.
NO_PROOF_SENTENCE = (
    "management: nothing on this management cluster proves that it ever had the cluster, neither "
    "a Lease nor a credential Secret. The cluster may be on another one, so it does not count as "
    "deleted. Ask the operator to check which management cluster the driver's kubeconfig names."
)


_UNREACHABLE = "management: the management cluster cannot be reached"
_UNINSTALLING = "waiting: the Helm release is being uninstalled"
_DELETING_SECRETS = "waiting: deletion of the Secrets and the application credential"


class DeletionAction(str, enum.Enum):
    """What to do next."""

    __str__ = str.__str__

    DELETE_CLUSTER = "delete the Cluster object"
    UNINSTALL = "uninstall the release"
    WAIT = "wait"
    REMOVE_SECRETS = "remove Secrets and application credential"
    BURY = "turn the Lease into a tombstone"
    DONE = "done"
    NO_PROOF = "no proof"


#: Actions after which a pass has nothing more to do now.
STOPS = frozenset({DeletionAction.WAIT, DeletionAction.DONE, DeletionAction.NO_PROOF})


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectToDelete:
    """An object to delete; ``uid`` keeps a namesake that was made meanwhile from being hit."""

    kind: names.Kind
    name: str
    uid: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class DeletionStep:
    """The next step of a deletion.

    :ivar reason: for the tenant: what is waited for, or why nothing is done.
    :ivar targets: for DELETE_CLUSTER, what to delete, in this order.
    """

    action: DeletionAction
    reason: str = ""
    targets: tuple[ObjectToDelete, ...] = ()


def next_step(
    observed: Observed,
    *,
    proof: bool,
    release_present: bool | None,
    secrets_present: bool | None,
    has_tombstone: bool = False,
) -> DeletionStep:
    """What to do next to take a cluster away; each step is safe to repeat.

    :param proof: something that only this driver wrote for this very cluster is there (its Lease;
        for an adopted one its credential Secret with the cluster's uuid).
    :param release_present: Helm has the release; None when that could not be read.
    :param secrets_present: the cluster's Secrets or its application credential are left; None when
        that could not be read.
    :param has_tombstone: the Lease is a tombstone: it says that everything was gone, so that a pass
        that comes after one that died does not look for a proof in vain.
    """
    if has_tombstone:
        return DeletionStep(DeletionAction.DONE)
    if observed.unreachable or release_present is None or secrets_present is None:
        return DeletionStep(DeletionAction.WAIT, _UNREACHABLE)
    if not proof:
        return DeletionStep(DeletionAction.NO_PROOF, NO_PROOF_SENTENCE)
    if start := _to_delete(observed):
        what = f"waiting: deletion of {start[0].kind.name} {start[0].name}"
        return DeletionStep(DeletionAction.DELETE_CLUSTER, what, start)
    waits = not (release_present or is_cluster_deleted(observed))
    if observed.cluster is Missing.UNREADABLE or waits:
        return DeletionStep(DeletionAction.WAIT, f"waiting: {deletion_progress.describe(observed)}")
    if release_present:
        return DeletionStep(DeletionAction.UNINSTALL, _UNINSTALLING)
    if secrets_present:
        return DeletionStep(DeletionAction.REMOVE_SECRETS, _DELETING_SECRETS)
    return DeletionStep(DeletionAction.BURY)


def is_cluster_deleted(observed: Observed) -> bool:
    """Nothing that stands for a resource in OpenStack is left, and all of it could be read."""
    return not observed.unreachable and not any(
        True for _ in deletion_progress.remaining_objects(observed)
    )


def _to_delete(observed: Observed) -> tuple[ObjectToDelete, ...]:
    """The Cluster; once it is gone, what it left behind because its controller never saw it."""
    if observed.cluster is Missing.UNREADABLE:
        return ()
    objects: list[tuple[names.Kind, Json | Missing]] = [(names.CLUSTER, observed.cluster)]
    if isinstance(observed.cluster, Missing):
        if not isinstance(observed.machine_deployments, Missing):
            objects = [(names.MACHINE_DEPLOYMENT, obj) for obj in observed.machine_deployments]
        objects.append((names.CONTROL_PLANE, observed.control_plane))
        objects.append((names.OPENSTACK_CLUSTER, observed.infrastructure))
    return tuple(
        ObjectToDelete(kind, conditions.name(obj), conditions.metadata(obj).get("uid"))
        for kind, obj in objects
        if not isinstance(obj, Missing) and not conditions.is_terminating(obj)
    )
