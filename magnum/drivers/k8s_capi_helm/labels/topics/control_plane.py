# SPDX-License-Identifier: Apache-2.0
"""Labels of the control plane: Keystone authentication, etcd, chart."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm.labels.value_types import types
from magnum.drivers.k8s_capi_helm.labels.value_types.label import label, LabelScope


@dataclasses.dataclass(frozen=True, kw_only=True)
class ControlPlaneLabels:
    """Labels about the Kubernetes API, etcd and the chart."""

    keystone_auth_enabled: bool = label(
        types.SWITCH,
        False,
        "true",
        "Whether the Kubernetes API accepts Keystone tokens, through k8s-keystone-auth.",
    )
    control_plane_availability_zones: tuple[str, ...] = label(
        types.ZONES,
        (),
        "az-1,az-2,az-3",
        "Nova availability zones over which the control plane nodes are distributed. The default "
        "is availability_zone.",
    )
    etcd_blockdevice_size: int = label(
        types.GIBIBYTES,
        0,
        "10",
        "Size in GiB of a separate disk for etcd on each control plane node. With 0 etcd uses the "
        "boot disk.",
        aliases=("etcd_volume_size",),
    )
    etcd_blockdevice_type: str = label(
        types.choice("volume", "local"),
        "volume",
        "local",
        "Whether etcd's disk is a Cinder volume or an ephemeral disk of the flavor.",
    )
    etcd_blockdevice_volume_type: str | None = label(
        types.NAME,
        None,
        "fast",
        "Cinder volume type of etcd's disk.",
        aliases=("etcd_volume_type",),
    )
    etcd_blockdevice_volume_az: str | None = label(
        types.VOLUME_ZONE,
        None,
        "az-storage",
        "Cinder availability zone of etcd's disk.",
    )
    capi_helm_chart_version: str | None = label(
        types.VERSION,
        None,
        "1.1.0",
        "Version of the cluster chart for new clusters, instead of the cloud's default. Can only "
        "be set by a cluster template.",
        scopes=(LabelScope.TEMPLATE,),
    )
    capi_helm_chart_name: str | None = label(
        types.CHART,
        None,
        "my-cluster",
        "Name of the cluster chart for new clusters, instead of the cloud's default, if the "
        "operator allows it. Can only be set by a cluster template.",
        scopes=(LabelScope.TEMPLATE,),
    )
    capi_helm_chart_repo: str | None = label(
        types.REPOSITORY,
        None,
        "https://charts.example.org",
        "Repository of the cluster chart for new clusters, instead of the cloud's default, if the "
        "operator allows it; 'bundled' for the charts that are bundled with the driver. Can only "
        "be set by a cluster template.",
        scopes=(LabelScope.TEMPLATE,),
    )
    capi_helm_overlay: str | None = label(
        types.OVERLAY,
        None,
        "gpu",
        "Name of an overlay: values of the chart that the cloud's operator provides under this "
        "name. Can only be set by a cluster template. Other labels and Magnum's fields take "
        "precedence over it.",
        scopes=(LabelScope.TEMPLATE,),
    )
