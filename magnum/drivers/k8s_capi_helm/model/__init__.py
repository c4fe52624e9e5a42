# SPDX-License-Identifier: Apache-2.0
"""Frozen dataclasses that travel: what was asked for, what is so, what runs, what was judged.

They hold plain values only; nothing here does I/O or knows Magnum's objects. Kubernetes objects
travel as the JSON the API server sent (:data:`Json`).
"""

from magnum.drivers.k8s_capi_helm.model.cloud import (
    CloudFacts,
    Flavor,
    FloatingIp,
    Image,
    Network,
    NOTHING,
    Offer,
    Quota,
    QuotaKey,
    Resolved,
    Resource,
    Subnet,
)
from magnum.drivers.k8s_capi_helm.model.observed import (
    Inside,
    Json,
    Missing,
    Observed,
    present,
    Silence,
    Thing,
)
from magnum.drivers.k8s_capi_helm.model.operation import (
    Operation,
    Owed,
    Record,
    Retired,
    Revisions,
    Verb,
)
from magnum.drivers.k8s_capi_helm.model.release import (
    ApplicationCredential,
    Chart,
    Grants,
    LiveRelease,
)
from magnum.drivers.k8s_capi_helm.model.request import ClusterRequest, NodeGroupRequest, Target
from magnum.drivers.k8s_capi_helm.model.verdict import (
    GroupState,
    GroupVerdict,
    MagnumState,
    Verdict,
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
