# SPDX-License-Identifier: Apache-2.0
"""The labels themselves: one typed field each, with default, example and help."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, cast, TypeVar

from magnum.drivers.k8s_capi_helm.labels import forms

T = TypeVar("T")
D = TypeVar("D")


class Site(enum.StrEnum):
    """Where a label may be set to have an effect."""

    TEMPLATE = "template"
    CLUSTER = "cluster"


@dataclasses.dataclass(frozen=True, slots=True)
class Label:
    """A label as documentation, configuration and tests see it.

    :ivar default: typed value without any text; None or () where nothing is the default.
    :ivar example: a text that is valid and asks for something else than the default.
    :ivar help: full sentences for people.
    :ivar sites: where it has an effect.
    :ivar aliases: old names that are still understood.
    :ivar settled: it is about something that is made with the cluster and cannot be changed in one
        that runs: an upgrade keeps the cluster's value.
    """

    name: str
    form: forms.Form[Any]
    default: Any
    example: str
    help: str
    sites: tuple[Site, ...] = (Site.TEMPLATE, Site.CLUSTER)
    aliases: tuple[str, ...] = ()
    settled: bool = False


def _label(
    form: forms.Form[T],
    default: D,
    example: str,
    help: str,
    *,
    sites: tuple[Site, ...] = (Site.TEMPLATE, Site.CLUSTER),
    aliases: tuple[str, ...] = (),
    settled: bool = False,
) -> T | D:
    """A field of :class:`Labels`; the attribute's own name becomes the label's."""
    about = Label("", form, default, example, help, sites, aliases, settled)
    return cast("T | D", dataclasses.field(default=default, metadata={"label": about}))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The labels of a cluster as typed values; ``Labels()`` is a cluster without any label."""

    kube_tag: str | None = _label(
        forms.KUBE_TAG,
        None,
        "v1.34.4",
        "Kubernetes version of the nodes. Needed only if the image has no property kube_version; "
        "where both are there, they have to be the same.",
    )
    auto_healing_enabled: bool = _label(
        forms.SWITCH,
        True,
        "false",
        "Whether Cluster API replaces nodes that stay unhealthy, with a MachineHealthCheck on the "
        "control plane and on every nodegroup.",
    )
    auto_scaling_enabled: bool = _label(
        forms.SWITCH,
        False,
        "true",
        "Whether the cluster autoscaler sets the size of each nodegroup whose maximum is above its "
        "minimum.",
    )
    min_node_count: int | None = _label(
        forms.FEWEST,
        None,
        "0",
        "Lower bound of the autoscaler for the default worker nodegroup, as long as the nodegroup "
        "has no maximum of its own. Without it one worker stays.",
    )
    max_node_count: int | None = _label(
        forms.MOST,
        None,
        "5",
        "Upper bound of the autoscaler for the default worker nodegroup, as long as the nodegroup "
        "has no maximum of its own.",
    )
    boot_volume_size: int = _label(
        forms.GIBIBYTES,
        0,
        "40",
        "Size in GiB of the Cinder volume from which each node boots. With 0 nodes boot from the "
        "flavor's own disk.",
    )
    boot_volume_type: str | None = _label(
        forms.NAME,
        None,
        "fast",
        "Cinder volume type of the volume from which each node boots. Has an effect together with "
        "boot_volume_size.",
    )
    fixed_subnet_cidr: str = _label(
        forms.SUBNET,
        "10.0.0.0/24",
        "10.20.0.0/24",
        "IPv4 range of the network that is made for the nodes. Not used if the cluster has a fixed "
        "network or subnet.",
        settled=True,
    )
    octavia_provider: str = _label(
        forms.PROVIDER,
        "amphora",
        "ovn",
        "Octavia provider of the Kubernetes API's load balancer and of those for Services.",
        settled=True,
    )
    octavia_lb_algorithm: str | None = _label(
        forms.choice("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT"),
        None,
        "LEAST_CONNECTIONS",
        "How load balancers of Services choose a node. Without it, SOURCE_IP_PORT with the "
        "provider ovn, which has no other, and ROUND_ROBIN with all others.",
    )
    octavia_lb_healthcheck: bool = _label(
        forms.SWITCH,
        True,
        "false",
        "Whether load balancers of Services watch with a health monitor which nodes answer.",
    )
    master_lb_floating_ip_enabled: bool = _label(
        forms.SWITCH,
        True,
        "false",
        "Whether the load balancer of the Kubernetes API gets a floating IP. Where the label is "
        "not given, the cluster's own floating_ip_enabled has to be true as well.",
        settled=True,
    )
    api_master_lb_allowed_cidrs: tuple[str, ...] = _label(
        forms.CIDRS,
        (),
        "192.0.2.0/24,2001:db8::/32",
        "Networks that may reach the Kubernetes API, with commas or spaces between them. The "
        "management cluster has to be in one of them. Without it everybody may.",
    )
    availability_zone: str | None = _label(
        forms.ZONE,
        None,
        "az-2",
        "Nova availability zone of all nodes. Without it Nova chooses a zone for each node.",
    )
    keystone_auth_enabled: bool = _label(
        forms.SWITCH,
        False,
        "true",
        "Whether the Kubernetes API accepts Keystone tokens, through k8s-keystone-auth.",
    )
    monitoring_enabled: bool = _label(
        forms.SWITCH,
        False,
        "true",
        "Whether the cluster gets Prometheus, Grafana and Loki. They keep their data on "
        "Cinder volumes.",
    )
    csi_cinder_availability_zone: str = _label(
        forms.ZONE,
        "nova",
        "az-storage",
        "Cinder availability zone of the volumes that storage classes make.",
        settled=True,
    )
    csi_cinder_reclaim_policy: str = _label(
        forms.choice("Retain", "Delete"),
        "Retain",
        "Delete",
        "What happens to a Cinder volume when its PersistentVolumeClaim is deleted.",
        settled=True,
    )
    csi_cinder_volume_binding_mode: str = _label(
        forms.choice("WaitForFirstConsumer", "Immediate"),
        "WaitForFirstConsumer",
        "Immediate",
        "Whether a volume is made when the first pod needs it, or at once.",
        settled=True,
    )
    csi_cinder_fstype: str = _label(
        forms.FILESYSTEM,
        "ext4",
        "xfs",
        "Filesystem that is made on new volumes.",
        settled=True,
    )
    csi_cinder_allow_volume_expansion: bool = _label(
        forms.SWITCH,
        True,
        "false",
        "Whether a volume grows when its PersistentVolumeClaim asks for more.",
        settled=True,
    )
    etcd_blockdevice_size: int = _label(
        forms.GIBIBYTES,
        0,
        "10",
        "Size in GiB of a separate disk for etcd on each control plane node. With 0 etcd is on the "
        "boot disk.",
        aliases=("etcd_volume_size",),
    )
    etcd_blockdevice_type: str = _label(
        forms.choice("volume", "local"),
        "volume",
        "local",
        "Whether etcd's disk is a Cinder volume, or an ephemeral disk of the flavor.",
    )
    etcd_blockdevice_volume_type: str | None = _label(
        forms.NAME,
        None,
        "fast",
        "Cinder volume type of etcd's disk.",
        aliases=("etcd_volume_type",),
    )
    etcd_blockdevice_volume_az: str | None = _label(
        forms.ZONE,
        None,
        "az-storage",
        "Cinder availability zone of etcd's disk.",
    )
    extra_network_names: tuple[str, ...] = _label(
        forms.NAMES,
        (),
        "storage backup",
        "Names of further Neutron networks on which each worker gets a port.",
        aliases=("extra_network_name",),
        settled=True,
    )
    capi_helm_chart_version: str | None = _label(
        forms.VERSION,
        None,
        "1.1.0",
        "Version of the cluster chart for new clusters, instead of the cloud's default one. Can "
        "only be set by a cluster template.",
        sites=(Site.TEMPLATE,),
    )

    @property
    def load_balancer_method(self) -> str:
        """Octavia's name of the pool algorithm: the one asked for, else the provider's usual."""
        usual = "SOURCE_IP_PORT" if self.octavia_provider == "ovn" else "ROUND_ROBIN"
        return self.octavia_lb_algorithm or usual


REGISTRY: tuple[Label, ...] = tuple(
    dataclasses.replace(field.metadata["label"], name=field.name)
    for field in dataclasses.fields(Labels)
)
#: Every name under which a label may come, old ones too.
BY_NAME: dict[str, Label] = {
    name: label for label in REGISTRY for name in (label.name, *label.aliases)
}
