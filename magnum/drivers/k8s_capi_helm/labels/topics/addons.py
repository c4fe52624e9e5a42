# SPDX-License-Identifier: Apache-2.0
"""Labels of addons: storage classes, monitoring, ingress."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm.labels.value_types import network_types, schedule, types
from magnum.drivers.k8s_capi_helm.labels.value_types.label import label


@dataclasses.dataclass(frozen=True, kw_only=True)
class AddonLabels:
    """Labels of addons."""

    monitoring_enabled: bool = label(
        types.SWITCH,
        False,
        "true",
        "Whether the cluster gets Prometheus, Grafana and Loki. They store their data on Cinder "
        "volumes.",
    )
    monitoring_retention_days: int | None = label(
        types.SOME,
        None,
        "14",
        "Days for which Prometheus keeps its metrics. The chart's default is 90.",
    )
    monitoring_retention_size: int | None = label(
        types.SOME,
        None,
        "20",
        "Size in GiB of Prometheus' volume, most of which it uses. The chart's default is 10.",
    )
    monitoring_interval_seconds: int | None = label(
        types.SOME,
        None,
        "60",
        "Scrape interval of Prometheus, in seconds.",
    )
    monitoring_storage_class_name: str | None = label(
        network_types.OBJECT,
        None,
        "fast",
        "Storage class of the volumes of Prometheus and Alertmanager. The default is the "
        "cluster's default storage class.",
    )
    metrics_server_enabled: bool = label(
        types.SWITCH,
        True,
        "false",
        "Whether the cluster gets metrics-server, which kubectl top and autoscaling of pods "
        "require.",
    )
    npd_enabled: bool = label(
        types.SWITCH,
        True,
        "false",
        "Whether the cluster gets node-problem-detector, which reports faults of kernel, disk and "
        "container runtime.",
    )
    kube_dashboard_enabled: bool = label(
        types.SWITCH,
        False,
        "true",
        "Whether the cluster gets a web dashboard: Headlamp, the successor of the Kubernetes "
        "Dashboard. Users sign in with a token.",
    )
    ingress_controller: str = label(
        types.choice("none", "traefik", "nginx"),
        "none",
        "traefik",
        "Ingress controller of the cluster. Its load balancer is deleted with the cluster if the "
        "management cluster runs cluster-api-janitor-openstack. nginx is no longer developed.",
    )
    cilium_hubble_ui_enabled: bool = label(
        types.SWITCH,
        False,
        "true",
        "Whether cilium gets Hubble's relay and web page. Has no effect with calico.",
    )
    etcd_snapshot_enabled: bool = label(
        types.SWITCH,
        False,
        "true",
        "Whether snapshots of the cluster's etcd, with all its Secrets, are copied to object "
        "storage. Requires etcd_snapshot_bucket and etcd_snapshot_secret.",
        requires_bundled_chart=True,
    )
    etcd_snapshot_bucket: str | None = label(
        schedule.BUCKET,
        None,
        "snapshots",
        "Bucket of S3, or container of Swift, of the snapshots. They are in a directory with the "
        "name of the cluster's stack_id.",
        requires_bundled_chart=True,
    )
    etcd_snapshot_secret: str | None = label(
        network_types.OBJECT,
        None,
        "etcd-snapshot",
        "Secret in the cluster's namespace kube-system with the credential for the object storage, "
        "as variables of rclone. You create it yourself.",
        requires_bundled_chart=True,
    )
    etcd_snapshot_schedule: str | None = label(
        schedule.SCHEDULE,
        None,
        "0 */6 * * *",
        "When snapshots are taken, as cron has it, in UTC. The chart's default is half past one "
        "each night.",
        requires_bundled_chart=True,
    )
    etcd_snapshot_keep_days: int | None = label(
        types.SOME,
        None,
        "30",
        "Days after which a snapshot is deleted, once a newer one exists. The chart's default is "
        "14.",
        requires_bundled_chart=True,
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
        "Manila share type of the storage class csi-manila. If it is not set, there is no such "
        "class.",
        requires_bundled_chart=True,
    )
    manila_csi_share_network_id: str | None = label(
        types.ID,
        None,
        "5c6d1b8c-8f27-4d0c-9a44-3c1a5d2f7e10",
        "Manila share network of the shares of the storage class csi-manila. Requires "
        "manila_csi_share_type.",
        requires_bundled_chart=True,
    )
    csi_cinder_availability_zone: str = label(
        types.ZONE,
        "nova",
        "az-storage",
        "Cinder availability zone of the volumes of storage classes.",
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
        "Whether a volume is created when the first pod uses it, or at once.",
        immutable=True,
    )
    csi_cinder_fstype: str = label(
        types.FILESYSTEM,
        "ext4",
        "xfs",
        "Filesystem that is created on new volumes.",
        immutable=True,
    )
    csi_cinder_allow_volume_expansion: bool = label(
        types.SWITCH,
        True,
        "false",
        "Whether a volume can be expanded by its PersistentVolumeClaim.",
        immutable=True,
    )
