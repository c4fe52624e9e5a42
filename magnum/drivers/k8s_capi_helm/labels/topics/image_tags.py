# SPDX-License-Identifier: Apache-2.0
"""Labels for versions of components and for the image registry."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm.labels.value_types import network_types, types
from magnum.drivers.k8s_capi_helm.labels.value_types.label import label


def _tag(oldest: str, example: str, component: str) -> str | None:
    """A label for the version of a program that comes in the chart's version without it."""
    help = f"Version of {component}. Without it the one that the chart has."
    return label(types.tag(oldest, component), None, example, help)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TagLabels:
    """Labels about versions and images."""

    container_infra_prefix: str | None = label(
        network_types.PREFIX,
        None,
        "registry.example.org/mirror/",
        "A registry and path that are put before the whole name of every system image that the "
        "cluster's machines run: "
        "with registry.example.org, registry.k8s.io/pause becomes "
        "registry.example.org/registry.k8s.io/pause.",
        requires_bundled_chart=True,
    )
    calico_tag: str | None = _tag("v3.29.0", "v3.31.4", "Calico (and of its chart)")
    cilium_tag: str | None = _tag("v1.16.0", "v1.19.2", "Cilium (and of its chart)")
    cloud_provider_tag: str | None = _tag("v1.31.0", "v1.35.0", "the OpenStack cloud controller")
    cinder_csi_plugin_tag: str | None = _tag("v1.31.0", "v1.35.0", "the Cinder CSI driver")
    csi_attacher_tag: str | None = _tag("v4.0.0", "v4.9.0", "csi-attacher")
    csi_provisioner_tag: str | None = _tag("v5.0.0", "v5.2.0", "csi-provisioner")
    csi_resizer_tag: str | None = _tag("v1.10.0", "v1.13.0", "csi-resizer")
    csi_snapshotter_tag: str | None = _tag("v8.0.0", "v8.3.0", "csi-snapshotter")
    csi_liveness_probe_tag: str | None = _tag("v2.12.0", "v2.16.0", "livenessprobe")
    csi_node_driver_registrar_tag: str | None = _tag(
        "v2.10.0", "v2.14.0", "csi-node-driver-registrar"
    )
    manila_csi_plugin_tag: str | None = _tag("v1.31.0", "v1.35.0", "the Manila CSI driver")
    k8s_keystone_auth_tag: str | None = _tag("v1.31.0", "v1.35.0", "k8s-keystone-auth")
    node_problem_detector_tag: str | None = _tag("v0.8.19", "v0.8.21", "node-problem-detector")
