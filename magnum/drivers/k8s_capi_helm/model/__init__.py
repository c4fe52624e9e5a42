# SPDX-License-Identifier: Apache-2.0
"""Frozen dataclasses that travel: what was asked for, what is so, what runs, what was judged.

They hold plain values only; nothing here does I/O or knows Magnum's objects. Kubernetes objects
travel as the JSON the API server sent (:data:`Json`).
"""

from magnum.drivers.k8s_capi_helm.model.asked import (
    ClusterRequest,
    NodeGroupRequest,
    Operation,
    Owed,
    Record,
    Retired,
    Revisions,
    Target,
    Verb,
)
from magnum.drivers.k8s_capi_helm.model.found import (
    ApplicationCredential,
    Chart,
    CloudFacts,
    Flavor,
    FloatingIp,
    Grants,
    Image,
    LiveRelease,
    Network,
    NOTHING,
    Offer,
    Quota,
    QuotaKey,
    Resolved,
    Resource,
    Subnet,
)
from magnum.drivers.k8s_capi_helm.model.judged import GroupState, GroupVerdict, MagnumState, Verdict
from magnum.drivers.k8s_capi_helm.model.seen import (
    Inside,
    Json,
    Missing,
    Observed,
    present,
    Silence,
    Thing,
)

__all__ = [
    "NOTHING",
    "ApplicationCredential",
    "Chart",
    "CloudFacts",
    "ClusterRequest",
    "Flavor",
    "FloatingIp",
    "Grants",
    "GroupState",
    "GroupVerdict",
    "Image",
    "Inside",
    "Json",
    "LiveRelease",
    "MagnumState",
    "Missing",
    "Network",
    "NodeGroupRequest",
    "Observed",
    "Offer",
    "Operation",
    "Owed",
    "Quota",
    "QuotaKey",
    "Record",
    "Resolved",
    "Resource",
    "Retired",
    "Revisions",
    "Silence",
    "Subnet",
    "Target",
    "Thing",
    "Verb",
    "Verdict",
    "present",
]
