# SPDX-License-Identifier: Apache-2.0
"""Magnum Cluster, NodeGroup, ClusterTemplate, CONF -> ClusterRequest / MagnumState.

Everything that can be refused from Magnum's own rows is refused here, before anything is touched;
what this version of the driver does not do yet is refused in a sentence and never ignored.
"""

from magnum.drivers.k8s_capi_helm.intake.refusals import (
    check_facts,
    check_flavors,
    check_software,
    DISTROS,
    validate_details,
    validate_new_cluster,
    validate_new_nodegroup,
    validate_place,
    validate_resize,
    validate_upgrade,
)
from magnum.drivers.k8s_capi_helm.intake.requests import (
    cluster_request,
    CNIS,
    entries,
    MASTER,
    namespace,
    notices,
    target,
)
from magnum.drivers.k8s_capi_helm.intake.states import deadline, magnum_state

__all__ = [
    "CNIS",
    "DISTROS",
    "MASTER",
    "check_facts",
    "check_flavors",
    "check_software",
    "cluster_request",
    "deadline",
    "entries",
    "magnum_state",
    "namespace",
    "notices",
    "target",
    "validate_details",
    "validate_new_cluster",
    "validate_new_nodegroup",
    "validate_place",
    "validate_resize",
    "validate_upgrade",
]
