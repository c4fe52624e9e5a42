# SPDX-License-Identifier: Apache-2.0
"""Whether KubeadmControlPlane and its Machines have the desired state.

Source: the Cluster API book, "KubeadmControlPlane" status and conditions.
"""

from __future__ import annotations

from packaging.version import Version

from magnum.drivers.k8s_capi_helm.labels.value_types import versions
from magnum.drivers.k8s_capi_helm.model import conditions, GroupState, Json, Missing, Observed
from magnum.drivers.k8s_capi_helm.status.objects import machines
from magnum.drivers.k8s_capi_helm.status.texts.issue import Issue

_COUNTERS = ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")
_UNKNOWN = Version("0")
_SETTLED = ("Initialized", "Available", "ScalingUp", "ScalingDown")


def missing(nodegroup: GroupState, observed: Observed, version: str) -> Issue | None:
    """What the control plane still lacks, None when it is in place.

    :param version: wanted Kubernetes version without ``v``, "" to take the object's own.
    """
    owner = observed.control_plane
    if owner is Missing.UNREADABLE or isinstance(observed.machines, Missing):
        return Issue("the control plane cannot be read")
    if isinstance(owner, Missing):
        return Issue("the control plane does not exist yet")
    version = version or versions.plain(conditions.at_path(owner, "spec", "version"))
    own_machines = machines.of_control_plane(observed.machines)
    return (
        _spec_issue(nodegroup, owner, version)
        or machines.count_issue(own_machines, nodegroup.count, version, "control plane")
        or _status_issue(nodegroup, owner)
        or machines.server_issue(own_machines, observed.servers)
    )


def running_version(owner: Json | Missing) -> str | None:
    """The lowest Kubernetes version that it runs, as ``v1.36.3``; None while unknown."""
    if isinstance(owner, Missing):
        return None
    text = conditions.at_path(owner, "status", "version")
    if not text:
        reported = conditions.at_path(owner, "status", "versions")
        texts = [conditions.mapping(item).get("version") for item in reported or ()]
        reported = [str(item) for item in texts if item]
        text = min(reported, key=lambda item: versions.parse(item) or _UNKNOWN, default="")
    return f"v{versions.plain(text)}" if text else None


def _spec_issue(nodegroup: GroupState, owner: Json, version: str) -> Issue | None:
    if conditions.is_terminating(owner):
        return Issue("the control plane is being deleted")
    if conditions.condition(owner, "Paused").bad:
        return Issue("the control plane is paused on the management cluster")
    if conditions.at_path(owner, "spec", "replicas") != nodegroup.count:
        return Issue(f"the control plane is not set to {nodegroup.count} machines yet")
    if versions.plain(conditions.at_path(owner, "spec", "version")) != version:
        return Issue(f"the control plane is not set to version {version} yet")
    return None


def _status_issue(nodegroup: GroupState, owner: Json) -> Issue | None:
    if not conditions.generation_seen(owner):
        return Issue("Cluster API has not processed the change of the control plane yet")
    # Cluster API 1.9 says instead that the machines are up to date; later ones say both.
    rolling = conditions.condition(owner, "RollingOut")
    rollout_condition = "RollingOut" if rolling.present else "MachinesUpToDate"
    for kind in (rollout_condition, *_SETTLED):
        if not conditions.condition(owner, kind).good:
            return Issue(f"the control plane is not stable yet ({kind})")
    if {conditions.counter(owner, key) for key in _COUNTERS} != {nodegroup.count}:
        return Issue("not all control plane machines are ready and up to date yet")
    return None
