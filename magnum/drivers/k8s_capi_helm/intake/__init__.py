# SPDX-License-Identifier: Apache-2.0
"""Magnum Cluster, NodeGroup, ClusterTemplate, CONF -> ClusterRequest / MagnumState.

Everything that can be refused from Magnum's own rows is refused here, before anything is touched;
what this version of the driver does not do yet is refused in a sentence and never ignored.
"""

from magnum.drivers.k8s_capi_helm.intake.refusals import (
    check_facts,
    check_flavors,
    DISTROS,
    validate_new_cluster,
    validate_new_nodegroup,
    validate_resize,
)
from magnum.drivers.k8s_capi_helm.intake.requests import cluster_request, CNIS, namespace, notices
from magnum.drivers.k8s_capi_helm.intake.states import deadline, magnum_state

__all__ = [
    "CNIS",
    "DISTROS",
    "check_facts",
    "check_flavors",
    "cluster_request",
    "deadline",
    "magnum_state",
    "namespace",
    "notices",
    "validate_new_cluster",
    "validate_new_nodegroup",
    "validate_resize",
]
