# SPDX-License-Identifier: Apache-2.0
"""All fields of Magnum's templates, clusters and nodegroups, and their effect.

The table is documentation and test case: a field of Magnum that is not in it fails the test, and so
does one that is said to have an effect and has none.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import enum


class Effect(enum.StrEnum):
    """The effect of a field's value."""

    #: It decides about the cluster.
    HONOURED = "honoured"
    #: Any value but "no" is refused in a sentence, when a cluster is made or upgraded.
    REFUSED = "refused"
    #: It has no effect, and that is as it should be, or the cluster's notice says so.
    HARMLESS = "no effect"
    #: It is Magnum's own: identity, status, or what Magnum copies to where it has its effect.
    MAGNUM = "Magnum's"


class FieldOwner(enum.StrEnum):
    """Whose field it is."""

    TEMPLATE = "cluster template"
    CLUSTER = "cluster"
    NODE_GROUP = "nodegroup"


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """A field of Magnum's.

    :ivar help: full sentences for tenants.
    """

    owner: FieldOwner
    name: str
    effect: Effect
    help: str


_HONOURED, _REFUSED = Effect.HONOURED, Effect.REFUSED
_HARMLESS, _MAGNUM = Effect.HARMLESS, Effect.MAGNUM
_UPGRADE = "An upgrade takes the new template's."
_KEPT = "A cluster keeps what it was made with."

_TEMPLATE: dict[str, tuple[Effect, str]] = {
    "image_id": (_HONOURED, f"The image of the machines. {_UPGRADE}"),
    "cluster_distro": (
        _HONOURED,
        "Magnum takes it from the image when the template is made. An image of another "
        "distribution is refused, and so is an upgrade to another distribution.",
    ),
    "coe": (_REFUSED, "Only kubernetes can be had."),
    "server_type": (
        _HONOURED,
        "vm, or bm for flavors of bare metal: their servers may take longer to come up before they "
        "are replaced.",
    ),
    "driver": (_MAGNUM, "Which driver makes the clusters. An upgrade cannot change it."),
    "external_network_id": (
        _HONOURED,
        f"The network of floating IPs and of the router. Needed. {_KEPT}",
    ),
    "dns_nameserver": (
        _HONOURED,
        "Addresses of the name servers of the network that is made for the cluster, with commas "
        f"between them. {_UPGRADE}",
    ),
    "network_driver": (
        _HONOURED,
        "calico or cilium. Any other, also the flannel that Magnum writes where nobody chose, is "
        f"calico, and the cluster's notice says so. {_KEPT}",
    ),
    "apiserver_port": (
        _HONOURED,
        f"The port of the Kubernetes API, 6443 unless set. {_KEPT}",
    ),
    "http_proxy": (
        _HONOURED,
        "The proxy of the machines: containerd, kubelet and apt use it. A URL with http:// or "
        f"https:// and without a user. {_UPGRADE}",
    ),
    "https_proxy": (_HONOURED, f"The same for https, which most registries are. {_UPGRADE}"),
    "no_proxy": (
        _HONOURED,
        "Names, domains with a leading dot, addresses and networks, with commas between them, that "
        "are reached without the proxy. Pods, services, Nova's metadata and the network that is "
        f"made for the cluster are in any case. {_UPGRADE}",
    ),
    "insecure_registry": (
        _HONOURED,
        "One registry, like registry.example.org:5000, that the machines ask without checking its "
        "certificate, and then without TLS. With https:// or http:// before it only that is tried. "
        f"{_UPGRADE}",
    ),
    "registry_enabled": (_REFUSED, "The driver runs no registry in a cluster."),
    "tls_disabled": (_REFUSED, "Kubernetes serves its API with TLS only."),
    "volume_driver": (_REFUSED, "Only cinder, which is there anyway, can be had."),
    "docker_volume_size": (_MAGNUM, "Magnum copies it to clusters that name none."),
    "docker_storage_driver": (
        _HARMLESS,
        "containerd has overlayfs; the notice says so where the field asks for something else.",
    ),
    "labels": (_HONOURED, "See the list of labels. A cluster has a copy of them."),
    "flavor_id": (_MAGNUM, "Magnum copies it to the default worker nodegroup."),
    "master_flavor_id": (_MAGNUM, "Magnum copies it to the nodegroup of the control plane."),
    "keypair_id": (_MAGNUM, "Magnum copies it to clusters that name no keypair."),
    "fixed_network": (_MAGNUM, "Magnum copies it to clusters that name none."),
    "fixed_subnet": (_MAGNUM, "Magnum copies it to clusters that name none."),
    "master_lb_enabled": (_MAGNUM, "Magnum copies it to clusters that do not say."),
    "floating_ip_enabled": (_MAGNUM, "Magnum copies it to clusters that do not say."),
    **dict.fromkeys(("public", "hidden", "tags"), (_MAGNUM, "Who sees the template, and how.")),
    **dict.fromkeys(("id", "uuid", "name", "project_id", "user_id"), (_MAGNUM, "Identity.")),
}
_CLUSTER: dict[str, tuple[Effect, str]] = {
    "labels": (_HONOURED, "See the list of labels."),
    "keypair": (
        _HONOURED,
        "The Nova keypair on all machines, unless the cloud's operator has switched keypairs off; "
        f"then the notice says so. {_KEPT}",
    ),
    "fixed_network": (
        _HONOURED,
        f"An existing network for the machines. Without one a network is made. {_KEPT}",
    ),
    "fixed_subnet": (_HONOURED, f"An existing subnet for the machines. {_KEPT}"),
    "master_lb_enabled": (
        _HONOURED,
        "Whether a load balancer stands before the control plane. Without one there is one control "
        f"plane machine, which then needs a floating IP. {_KEPT}",
    ),
    "floating_ip_enabled": (
        _HONOURED,
        "Whether the Kubernetes API has a floating IP; the label master_lb_floating_ip_enabled "
        f"wins. {_KEPT}",
    ),
    "docker_volume_size": (
        _HONOURED,
        f"GiB of a Cinder volume for images and containers on each machine. {_KEPT}",
    ),
    "create_timeout": (
        _HONOURED,
        "Minutes after which a cluster that is not there is CREATE_FAILED. Cluster API goes on, "
        "and a cluster that comes good later is CREATE_COMPLETE after all.",
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
        (_MAGNUM, "The cluster's certificate authorities, which Magnum makes and keeps."),
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
        (_MAGNUM, "What is known of the cluster; nobody can set it."),
    ),
}
_NODE_GROUP: dict[str, tuple[Effect, str]] = {
    "flavor_id": (_HONOURED, "The flavor of its machines."),
    "image_id": (_HONOURED, "The image of its machines, where it is not the cluster template's."),
    "node_count": (
        _HONOURED,
        "How many machines it has, or begins with if the autoscaler sizes it; an odd number in the "
        "control plane.",
    ),
    "min_node_count": (_HONOURED, "Lower bound of the autoscaler."),
    "max_node_count": (_HONOURED, "Upper bound of the autoscaler."),
    "docker_volume_size": (_HONOURED, "The same of its machines alone."),
    "labels": (_HONOURED, "Its own, of those that a nodegroup can have; others are refused."),
    "node_labels": (_HONOURED, "Labels of its Nodes."),
    "node_taints": (_HONOURED, "Taints of its Nodes."),
    "role": (
        _HONOURED,
        "master is the control plane. Nodes of any other role but worker have the label "
        "node-role.kubernetes.io/ROLE.",
    ),
    "is_default": (_MAGNUM, "Whether it was made with the cluster."),
    **dict.fromkeys(
        ("id", "uuid", "name", "cluster_id", "project_id", "stack_id"), (_MAGNUM, "Identity.")
    ),
    **dict.fromkeys(
        ("status", "status_reason", "node_addresses", "version"),
        (_MAGNUM, "What is known of the nodegroup; nobody can set it."),
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
            yield Field(owner, name, effect, help_text)


FIELDS: tuple[Field, ...] = tuple(_fields())
