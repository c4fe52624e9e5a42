# SPDX-License-Identifier: Apache-2.0
"""All fields of Magnum's templates, clusters and nodegroups, and their effect.

The table is documentation and test case: a field of Magnum that is not in it fails the test, and so
does one that is said to have an effect and has none.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import enum

from magnum.drivers.k8s_capi_helm.labels import ChangeTime


class Effect(str, enum.Enum):
    """The effect of a field's value."""

    __str__ = str.__str__

    #: It decides about the cluster.
    HONOURED = "honoured"
    #: Any value but "no" is refused when a cluster is created or upgraded.
    REFUSED = "refused"
    #: It has no effect, as intended, or with a notice of the cluster.
    HARMLESS = "no effect"
    #: It is Magnum's own: identity, status, or what Magnum copies to where it has its effect.
    MAGNUM = "Magnum's"


class FieldOwner(str, enum.Enum):
    """Whose field it is."""

    __str__ = str.__str__

    TEMPLATE = "cluster template"
    CLUSTER = "cluster"
    NODE_GROUP = "nodegroup"


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """A field of Magnum's.

    :ivar help: full sentences for tenants.
    :ivar change_time: of one that is honoured, when what exists can be given another value.
    """

    owner: FieldOwner
    name: str
    effect: Effect
    help: str
    change_time: ChangeTime | None = None


_REFUSED, _HARMLESS, _MAGNUM = Effect.REFUSED, Effect.HARMLESS, Effect.MAGNUM
_NEVER, _UPGRADE, _ANY = ChangeTime.NEVER, ChangeTime.UPGRADE, ChangeTime.ANY
#: How the help of fields of templates and clusters ends, but for some that say it themselves.
_ENDINGS = {
    _NEVER: " Existing clusters keep their value.",
    _UPGRADE: " An upgrade applies the new template's value.",
}
_WITHOUT_ENDING = ("cluster_distro", "create_timeout", "labels")

_TEMPLATE: dict[str, tuple[Effect | ChangeTime, str]] = {
    "image_id": (_UPGRADE, "The image of the machines."),
    "cluster_distro": (
        _NEVER,
        "Magnum copies it from the image when the template is created. An image of another "
        "distribution is refused, and so is an upgrade to another distribution.",
    ),
    "coe": (_REFUSED, "Only kubernetes is supported."),
    "server_type": (
        _NEVER,
        "vm, or bm for bare metal flavors: their servers have more time to start before auto "
        "healing replaces them.",
    ),
    "driver": (_MAGNUM, "The driver of the clusters. An upgrade cannot change it."),
    "external_network_id": (
        _NEVER,
        "The network of floating IPs and of the router. Required.",
    ),
    "dns_nameserver": (
        _UPGRADE,
        "Addresses of the name servers of the network that is created for the cluster, separated "
        "by commas.",
    ),
    "network_driver": (
        _NEVER,
        "calico or cilium. For any other value, including Magnum's default flannel, calico is "
        "installed, and the cluster has a notice.",
    ),
    "apiserver_port": (
        _NEVER,
        "The port of the Kubernetes API, 6443 by default.",
    ),
    "http_proxy": (
        _UPGRADE,
        "The proxy of the machines: containerd, kubelet and apt use it. A URL with http:// or "
        "https:// and without a user.",
    ),
    "https_proxy": (
        _UPGRADE,
        "The proxy of the machines for https, which most registries use.",
    ),
    "no_proxy": (
        _UPGRADE,
        "Names, domains with a leading dot, addresses and networks, separated by commas, that "
        "bypass the proxy. Pods, services, Nova's metadata service and the network that is "
        "created for the cluster always bypass it.",
    ),
    "insecure_registry": (
        _UPGRADE,
        "One registry, such as registry.example.org:5000, from which the machines pull without "
        "verifying its certificate, or else without TLS. With the prefix https:// or http:// only "
        "that protocol is used.",
    ),
    "registry_enabled": (_REFUSED, "The driver does not support a registry in the cluster."),
    "tls_disabled": (_REFUSED, "Kubernetes serves its API with TLS only."),
    "volume_driver": (_REFUSED, "Only cinder is supported, which is always installed."),
    "docker_volume_size": (_MAGNUM, "Magnum copies it to clusters that do not set it."),
    "docker_storage_driver": (
        _HARMLESS,
        "containerd uses overlayfs; the cluster has a notice if the field has another value.",
    ),
    "labels": (_UPGRADE, "See the list of labels. A cluster has a copy of them."),
    "flavor_id": (_MAGNUM, "Magnum copies it to the default worker nodegroup."),
    "master_flavor_id": (_MAGNUM, "Magnum copies it to the nodegroup of the control plane."),
    "keypair_id": (_MAGNUM, "Magnum copies it to clusters that do not set a keypair."),
    "fixed_network": (_MAGNUM, "Magnum copies it to clusters that do not set it."),
    "fixed_subnet": (_MAGNUM, "Magnum copies it to clusters that do not set it."),
    "master_lb_enabled": (_MAGNUM, "Magnum copies it to clusters that do not set it."),
    "floating_ip_enabled": (_MAGNUM, "Magnum copies it to clusters that do not set it."),
    **dict.fromkeys(
        ("public", "hidden", "tags"), (_MAGNUM, "Visibility of the template, and tags.")
    ),
    **dict.fromkeys(("id", "uuid", "name", "project_id", "user_id"), (_MAGNUM, "Identity.")),
}
_CLUSTER: dict[str, tuple[Effect | ChangeTime, str]] = {
    "labels": (_UPGRADE, "See the list of labels."),
    "keypair": (
        _NEVER,
        "The Nova keypair on all machines, unless the cloud's operator has disabled keypairs; "
        "then the cluster has a notice.",
    ),
    "fixed_network": (
        _NEVER,
        "An existing network for the machines. By default a network is created.",
    ),
    "fixed_subnet": (_NEVER, "An existing subnet for the machines."),
    "master_lb_enabled": (
        _NEVER,
        "Whether the control plane has a load balancer. Without it there is one control plane "
        "machine, which needs a floating IP.",
    ),
    "floating_ip_enabled": (
        _NEVER,
        "Whether the Kubernetes API has a floating IP; the label master_lb_floating_ip_enabled "
        "takes precedence.",
    ),
    "docker_volume_size": (
        _NEVER,
        "Size in GiB of a Cinder volume for images and containers on each machine.",
    ),
    "create_timeout": (
        _NEVER,
        "Minutes after which an incomplete cluster is CREATE_FAILED. Cluster API continues, and a "
        "cluster that recovers later becomes CREATE_COMPLETE.",
    ),
    "discovery_url": (_HARMLESS, "etcd's members find each other without it."),
    "cluster_template": (_MAGNUM, "The template, read through the cluster."),
    "cluster_template_id": (_MAGNUM, "The template. An upgrade changes it."),
    "flavor_id": (_MAGNUM, "Magnum copies it to the default worker nodegroup."),
    "master_flavor_id": (_MAGNUM, "Magnum copies it to the nodegroup of the control plane."),
    **dict.fromkeys(
        ("id", "uuid", "name", "project_id", "user_id", "stack_id"), (_MAGNUM, "Identity.")
    ),
    **dict.fromkeys(
        ("ca_cert_ref", "magnum_cert_ref", "etcd_ca_cert_ref", "front_proxy_ca_cert_ref"),
        (_MAGNUM, "The cluster's certificate authorities, which Magnum creates and stores."),
    ),
    **dict.fromkeys(
        (
            "status",
            "status_reason",
            "health_status",
            "health_status_reason",
            "api_address",
            "coe_version",
            "container_version",
        ),
        (_MAGNUM, "The state of the cluster; read-only."),
    ),
}
_NODE_GROUP: dict[str, tuple[Effect | ChangeTime, str]] = {
    "flavor_id": (_NEVER, "The flavor of its machines."),
    "image_id": (
        _UPGRADE,
        "The image of its machines, if it differs from the cluster template's.",
    ),
    "node_count": (
        _ANY,
        "Number of its machines, or the initial number if it is autoscaled; an odd number for the "
        "control plane.",
    ),
    "min_node_count": (_ANY, "Lower bound of the autoscaler."),
    "max_node_count": (_ANY, "Upper bound of the autoscaler."),
    "docker_volume_size": (
        _NEVER,
        "Size in GiB of a Cinder volume for images and containers on each of its machines.",
    ),
    "labels": (_NEVER, "Labels that can be set on a nodegroup; others are refused."),
    "node_labels": (_ANY, "Labels of its Nodes."),
    "node_taints": (_ANY, "Taints of its Nodes."),
    "role": (
        _NEVER,
        "master is the control plane. Nodes of any other role except worker have the label "
        "node-role.kubernetes.io/ROLE.",
    ),
    "is_default": (_MAGNUM, "Whether it was created with the cluster."),
    **dict.fromkeys(
        ("id", "uuid", "name", "cluster_id", "project_id", "stack_id"), (_MAGNUM, "Identity.")
    ),
    **dict.fromkeys(
        ("status", "status_reason", "node_addresses", "version"),
        (_MAGNUM, "The state of the nodegroup; read-only."),
    ),
}


def _fields() -> Iterator[Field]:
    tables = {
        FieldOwner.TEMPLATE: _TEMPLATE,
        FieldOwner.CLUSTER: _CLUSTER,
        FieldOwner.NODE_GROUP: _NODE_GROUP,
    }
    for owner, table in tables.items():
        for name, (effect, help_text) in table.items():
            if isinstance(effect, Effect):
                yield Field(owner, name, effect, help_text)
                continue
            is_plain = owner is FieldOwner.NODE_GROUP or name in _WITHOUT_ENDING
            ending = "" if is_plain else _ENDINGS[effect]
            yield Field(owner, name, Effect.HONOURED, f"{help_text}{ending}", effect)


FIELDS: tuple[Field, ...] = tuple(_fields())
