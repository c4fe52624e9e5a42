# SPDX-License-Identifier: Apache-2.0
"""Frozen dataclasses: requests, releases, cloud facts, snapshots, verdicts.

They hold plain values only; nothing here does I/O or knows Magnum's objects. Kubernetes objects
travel as the JSON the API server sent (:data:`Json`).
"""

from magnum.drivers.k8s_capi_helm.model.cloud import (
    CloudCapability,
    CloudCluster,
    CloudFacts,
    CloudResource,
    Flavor,
    FloatingIp,
    Image,
    ListedImage,
    Network,
    NOTHING,
    Quota,
    QuotaKey,
    QuotaResource,
    ResolvedNames,
    Subnet,
)
from magnum.drivers.k8s_capi_helm.model.observed import (
    AddonInventory,
    Json,
    Missing,
    Observed,
    present,
    StaleController,
    WorkloadObject,
)
from magnum.drivers.k8s_capi_helm.model.operation import (
    DeferredChange,
    Operation,
    ReleaseRecord,
    RetiredCredential,
    Revisions,
    Verb,
)
from magnum.drivers.k8s_capi_helm.model.release import (
    ApplicationCredential,
    Chart,
    CredentialRoles,
    LiveRelease,
)
from magnum.drivers.k8s_capi_helm.model.request import (
    ClusterRequest,
    NodeGroupRequest,
    UpgradeTarget,
)
from magnum.drivers.k8s_capi_helm.model.verdict import (
    GroupState,
    GroupVerdict,
    MagnumState,
    Verdict,
)

__all__ = [
    "NOTHING",
    "AddonInventory",
    "ApplicationCredential",
    "Chart",
    "CloudCapability",
    "CloudCluster",
    "CloudFacts",
    "CloudResource",
    "ClusterRequest",
    "CredentialRoles",
    "DeferredChange",
    "Flavor",
    "FloatingIp",
    "GroupState",
    "GroupVerdict",
    "Image",
    "Json",
    "ListedImage",
    "LiveRelease",
    "MagnumState",
    "Missing",
    "Network",
    "NodeGroupRequest",
    "Observed",
    "Operation",
    "Quota",
    "QuotaKey",
    "QuotaResource",
    "ReleaseRecord",
    "ResolvedNames",
    "RetiredCredential",
    "Revisions",
    "StaleController",
    "Subnet",
    "UpgradeTarget",
    "Verb",
    "Verdict",
    "WorkloadObject",
    "present",
]
