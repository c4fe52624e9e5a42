# SPDX-License-Identifier: Apache-2.0
"""Magnum Cluster, NodeGroup, ClusterTemplate, CONF -> ClusterRequest / MagnumState.

Everything that can be refused from Magnum's own rows is refused here, before anything is touched,
in a sentence; nothing is ignored.
"""

from magnum.drivers.k8s_capi_helm.intake.agreement import check_chart, check_new_cluster
from magnum.drivers.k8s_capi_helm.intake.nodegroups import (
    check_annotations,
    check_disks,
    check_images,
    image_problems,
    validate_chart,
    validate_details,
    validate_disk,
    validate_new_labels,
    validate_new_nodegroup,
    validate_taints,
    with_own_images,
)
from magnum.drivers.k8s_capi_helm.intake.notices import notices
from magnum.drivers.k8s_capi_helm.intake.refusals import (
    check_flavors,
    terms,
    validate_labels,
    validate_new_cluster,
    validate_place,
    validate_resize,
    validate_upgrade,
)
from magnum.drivers.k8s_capi_helm.intake.requests import (
    cluster_request,
    entries,
    MASTER,
    may_be_unchecked,
    namespace,
    own_images,
    target,
)
from magnum.drivers.k8s_capi_helm.intake.states import deadline, magnum_state
from magnum.drivers.k8s_capi_helm.intake.templates import CNIS, DISTROS, SERVER_TYPES

__all__ = [
    "CNIS",
    "DISTROS",
    "MASTER",
    "SERVER_TYPES",
    "check_annotations",
    "check_chart",
    "check_disks",
    "check_flavors",
    "check_images",
    "check_new_cluster",
    "cluster_request",
    "deadline",
    "entries",
    "image_problems",
    "magnum_state",
    "may_be_unchecked",
    "namespace",
    "notices",
    "own_images",
    "target",
    "terms",
    "validate_chart",
    "validate_details",
    "validate_disk",
    "validate_labels",
    "validate_new_cluster",
    "validate_new_labels",
    "validate_new_nodegroup",
    "validate_place",
    "validate_resize",
    "validate_taints",
    "validate_upgrade",
    "with_own_images",
]
