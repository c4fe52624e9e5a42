# SPDX-License-Identifier: Apache-2.0
"""Labels of machines: image, size, zone, disks, auto healing, autoscaling."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm.labels.value_types import types
from magnum.drivers.k8s_capi_helm.labels.value_types.label import EVERYWHERE, label


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeLabels:
    """Labels about machines; also of a single nodegroup where ``scopes`` says so."""

    kube_tag: str | None = label(
        types.KUBE_TAG,
        None,
        "v1.36.3",
        "Kubernetes version of the nodes. Required only if the image has no property "
        "kube_version; if both are set, they must be equal. After an upgrade it is the new "
        "template's, or removed.",
    )
    auto_healing_enabled: bool = label(
        types.SWITCH,
        True,
        "false",
        "Whether Cluster API replaces nodes that stay unhealthy, with a MachineHealthCheck on the "
        "control plane and on every nodegroup.",
        scopes=EVERYWHERE,
    )
    auto_scaling_enabled: bool = label(
        types.SWITCH,
        False,
        "true",
        "Whether the cluster autoscaler sets the size of each nodegroup whose maximum is above "
        "its minimum.",
    )
    min_node_count: int | None = label(
        types.FEWEST,
        None,
        "0",
        "Lower bound of the autoscaler for the default worker nodegroup, until the nodegroup has "
        "a minimum of its own. The default is 1.",
    )
    max_node_count: int | None = label(
        types.MOST,
        None,
        "5",
        "Upper bound of the autoscaler for the default worker nodegroup, until the nodegroup has "
        "a maximum of its own.",
    )
    boot_volume_size: int = label(
        types.GIBIBYTES,
        0,
        "40",
        "Size in GiB of the Cinder volume from which each node boots. With 0 nodes boot from the "
        "flavor's disk.",
        scopes=EVERYWHERE,
    )
    boot_volume_type: str | None = label(
        types.NAME,
        None,
        "fast",
        "Cinder volume type of the volume from which each node boots. Has an effect only with "
        "boot_volume_size.",
        scopes=EVERYWHERE,
    )
    boot_volume_availability_zone: str | None = label(
        types.VOLUME_ZONE,
        None,
        "az-storage",
        "Cinder availability zone of the volume from which each node boots. The default is the "
        "zone of the node. Has an effect only with boot_volume_size.",
        scopes=EVERYWHERE,
    )
    docker_volume_type: str | None = label(
        types.NAME,
        None,
        "fast",
        "Cinder volume type of the volume for images and containers. Has an effect only with the "
        "field docker_volume_size.",
        scopes=EVERYWHERE,
    )
    availability_zone: str | None = label(
        types.ZONE,
        None,
        "az-2",
        "Nova availability zone of all nodes. By default Nova selects a zone for each node.",
        scopes=EVERYWHERE,
    )
    server_group_policies: str = label(
        types.choice("soft-anti-affinity", "anti-affinity", "soft-affinity", "affinity", "none"),
        "soft-anti-affinity",
        "none",
        "Policy of the Nova server groups of the control plane and of each nodegroup: nodes run "
        "on different hosts (anti-affinity) or on the same host (affinity), as a preference "
        "(soft-) or as a requirement. none creates no server groups.",
        scopes=EVERYWHERE,
        immutable=True,
    )
    extra_network_names: tuple[str, ...] = label(
        types.NAMES,
        (),
        "storage backup",
        "Names or ids of additional Neutron networks on which each worker gets a port.",
        scopes=EVERYWHERE,
        aliases=("extra_network_name",),
        immutable=True,
    )
    node_annotations: tuple[tuple[str, str], ...] = label(
        types.ANNOTATIONS,
        (),
        "node.cluster.x-k8s.io/team=blue,node.cluster.x-k8s.io/cost-centre=42",
        "Annotations of the workers' Nodes. Cluster API syncs those below node.cluster.x-k8s.io; "
        "any other key must be allowed by the cloud's operator.",
        scopes=EVERYWHERE,
    )
