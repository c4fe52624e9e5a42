# SPDX-License-Identifier: Apache-2.0
"""Labels about what runs in the cluster: storage classes, monitoring."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm.labels import forms
from magnum.drivers.k8s_capi_helm.labels.declaring import label


@dataclasses.dataclass(frozen=True, kw_only=True)
class AddonLabels:
    """Labels about what runs in the cluster."""

    monitoring_enabled: bool = label(
        forms.SWITCH,
        False,
        "true",
        "Whether the cluster gets Prometheus, Grafana and Loki. They keep their data on "
        "Cinder volumes.",
    )
    csi_cinder_availability_zone: str = label(
        forms.ZONE,
        "nova",
        "az-storage",
        "Cinder availability zone of the volumes that storage classes make.",
        settled=True,
    )
    csi_cinder_reclaim_policy: str = label(
        forms.choice("Retain", "Delete"),
        "Retain",
        "Delete",
        "What happens to a Cinder volume when its PersistentVolumeClaim is deleted.",
        settled=True,
    )
    csi_cinder_volume_binding_mode: str = label(
        forms.choice("WaitForFirstConsumer", "Immediate"),
        "WaitForFirstConsumer",
        "Immediate",
        "Whether a volume is made when the first pod needs it, or at once.",
        settled=True,
    )
    csi_cinder_fstype: str = label(
        forms.FILESYSTEM,
        "ext4",
        "xfs",
        "Filesystem that is made on new volumes.",
        settled=True,
    )
    csi_cinder_allow_volume_expansion: bool = label(
        forms.SWITCH,
        True,
        "false",
        "Whether a volume grows when its PersistentVolumeClaim asks for more.",
        settled=True,
    )
