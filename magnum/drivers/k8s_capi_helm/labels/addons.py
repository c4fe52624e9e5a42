# SPDX-License-Identifier: Apache-2.0
"""Labels about what runs in the cluster: storage classes, monitoring."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm.labels import text_types, types
from magnum.drivers.k8s_capi_helm.labels.label import label


@dataclasses.dataclass(frozen=True, kw_only=True)
class AddonLabels:
    """Labels about what runs in the cluster."""

    monitoring_enabled: bool = label(
        types.SWITCH,
        False,
        "true",
        "Whether the cluster gets Prometheus, Grafana and Loki. They keep their data on "
        "Cinder volumes.",
    )
    monitoring_retention_days: int | None = label(
        text_types.SOME,
        None,
        "14",
        "Days for which Prometheus keeps what it has measured. Without it the chart's, 90.",
    )
    monitoring_retention_size: int | None = label(
        text_types.SOME,
        None,
        "20",
        "Size in GiB of Prometheus' volume, of which it fills the most part. Without it the "
        "chart's, 10.",
    )
    monitoring_interval_seconds: int | None = label(
        text_types.SOME,
        None,
        "60",
        "Seconds between two measurements of Prometheus.",
    )
    monitoring_storage_class_name: str | None = label(
        text_types.OBJECT,
        None,
        "fast",
        "Storage class of the volumes of Prometheus and Alertmanager. Without it the cluster's "
        "default one.",
    )
    metrics_server_enabled: bool = label(
        types.SWITCH,
        True,
        "false",
        "Whether the cluster gets metrics-server, which kubectl top and autoscaling of pods need.",
    )
    npd_enabled: bool = label(
        types.SWITCH,
        True,
        "false",
        "Whether node-problem-detector tells faults of kernel, disk and container runtime.",
    )
    kube_dashboard_enabled: bool = label(
        types.SWITCH,
        False,
        "true",
        "Whether the cluster gets a web page of its own: Headlamp, which took the place of the "
        "Kubernetes dashboard. Users sign in with a token.",
    )
    ingress_controller: str = label(
        types.choice("none", "traefik", "nginx"),
        "none",
        "traefik",
        "Ingress controller of the cluster. Its load balancer goes with the cluster where the "
        "management cluster runs cluster-api-janitor-openstack. nginx is no longer developed.",
    )
    cilium_hubble_ui_enabled: bool = label(
        types.SWITCH,
        False,
        "true",
        "Whether cilium gets Hubble's relay and web page. Has no effect with calico.",
    )
    cinder_csi_enabled: bool = label(
        types.SWITCH,
        True,
        "false",
        "Whether the cluster gets the driver for Cinder volumes and its storage classes.",
    )
    manila_csi_enabled: bool = label(
        types.SWITCH,
        False,
        "true",
        "Whether the cluster gets the drivers for Manila shares over NFS.",
        requires_bundled_chart=True,
    )
    manila_csi_share_type: str | None = label(
        types.NAME,
        None,
        "nfs-shares",
        "Manila share type of the storage class csi-manila. Without it there is no such class.",
        requires_bundled_chart=True,
    )
    manila_csi_share_network_id: str | None = label(
        text_types.ID,
        None,
        "5c6d1b8c-8f27-4d0c-9a44-3c1a5d2f7e10",
        "Manila share network of the shares of that class. Needs manila_csi_share_type.",
        requires_bundled_chart=True,
    )
    csi_cinder_availability_zone: str = label(
        types.ZONE,
        "nova",
        "az-storage",
        "Cinder availability zone of the volumes that storage classes make.",
        immutable=True,
    )
    csi_cinder_reclaim_policy: str = label(
        types.choice("Retain", "Delete"),
        "Retain",
        "Delete",
        "What happens to a Cinder volume when its PersistentVolumeClaim is deleted.",
        immutable=True,
    )
    csi_cinder_volume_binding_mode: str = label(
        types.choice("WaitForFirstConsumer", "Immediate"),
        "WaitForFirstConsumer",
        "Immediate",
        "Whether a volume is made when the first pod needs it, or at once.",
        immutable=True,
    )
    csi_cinder_fstype: str = label(
        types.FILESYSTEM,
        "ext4",
        "xfs",
        "Filesystem that is made on new volumes.",
        immutable=True,
    )
    csi_cinder_allow_volume_expansion: bool = label(
        types.SWITCH,
        True,
        "false",
        "Whether a volume grows when its PersistentVolumeClaim asks for more.",
        immutable=True,
    )
