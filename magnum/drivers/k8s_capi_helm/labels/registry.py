# SPDX-License-Identifier: Apache-2.0
"""The registry of all labels, from the files that declare them."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm.labels.topics.addons import AddonLabels
from magnum.drivers.k8s_capi_helm.labels.topics.api_server import ApiServerLabels
from magnum.drivers.k8s_capi_helm.labels.topics.control_plane import ControlPlaneLabels
from magnum.drivers.k8s_capi_helm.labels.topics.image_tags import TagLabels
from magnum.drivers.k8s_capi_helm.labels.topics.maintenance import MaintenanceLabels
from magnum.drivers.k8s_capi_helm.labels.topics.network import NetworkLabels
from magnum.drivers.k8s_capi_helm.labels.topics.nodes import NodeLabels
from magnum.drivers.k8s_capi_helm.labels.value_types.label import Label


@dataclasses.dataclass(frozen=True, kw_only=True)
class Labels(
    TagLabels,
    AddonLabels,
    ApiServerLabels,
    ControlPlaneLabels,
    MaintenanceLabels,
    NetworkLabels,
    NodeLabels,
):
    """The labels of a cluster as typed values; ``Labels()`` is a cluster without any label."""

    @property
    def load_balancer_method(self) -> str:
        """Octavia's name of the pool algorithm: the one asked for, else the provider's usual."""
        default = "SOURCE_IP_PORT" if self.octavia_provider == "ovn" else "ROUND_ROBIN"
        return self.octavia_lb_algorithm or default

    @property
    def control_plane_zones(self) -> tuple[str, ...]:
        """Nova availability zones of the control plane; () where Nova chooses."""
        if self.control_plane_availability_zones:
            return self.control_plane_availability_zones
        return (self.availability_zone,) if self.availability_zone else ()


REGISTRY: tuple[Label, ...] = tuple(
    dataclasses.replace(field.metadata["label"], name=field.name)
    for field in dataclasses.fields(Labels)
)
#: Every name under which a label may come, old ones too.
BY_NAME: dict[str, Label] = {
    name: label for label in REGISTRY for name in (label.name, *label.aliases)
}
