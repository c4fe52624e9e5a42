# SPDX-License-Identifier: Apache-2.0
"""What is refused before anything is touched, from the rows or from what the cloud says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from magnum.drivers.k8s_capi_helm import change, errors, helm_values, labels, names
from magnum.drivers.k8s_capi_helm import conf as conf_module
from magnum.drivers.k8s_capi_helm.intake import nodegroups
from magnum.drivers.k8s_capi_helm.intake.requests import cluster_request, entries, MASTER
from magnum.drivers.k8s_capi_helm.model import (
    CloudFacts,
    ClusterRequest,
    Flavor,
    Json,
)

DISTROS = ("ubuntu",)
#: What a cluster is made with for ever.
_KIND = ("coe", "server_type")


def validate_new_cluster(cluster: Any, rows: list[Any], conf: Any) -> None:
    """Refuse what a new cluster asks for and this version cannot do.

    :raises errors.InvalidRequest: naming field and value.
    """
    template = cluster.cluster_template
    for field in (
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "insecure_registry",
        "registry_enabled",
        "tls_disabled",
        "apiserver_port",
    ):
        if getattr(template, field, None):
            _not_yet("cluster template", field, getattr(template, field))
    if template.volume_driver not in (None, "", "cinder"):
        _not_yet("cluster template", "volume_driver", template.volume_driver)
    if template.server_type not in (None, "vm"):
        _not_yet("cluster template", "server_type", template.server_type)
    if not template.external_network_id:
        raise errors.InvalidRequest(
            "The cluster template names no external network. Create one with --external-network."
        )
    for row in rows:
        if row.role == MASTER and row.node_count % 2 == 0:
            raise errors.InvalidRequest(
                f"master_count is {row.node_count}: etcd needs an odd number of nodes."
            )
    labels.parse(cluster.labels or {}, conf_module.label_defaults(conf), template.labels or {})
    _refuse_no_address(cluster_request(cluster, rows, conf))
    for row in rows:
        nodegroups.validate_new_nodegroup(row, cluster, conf)


def _refuse_no_address(request: ClusterRequest) -> None:
    """Refuse a Kubernetes API that would have no address which outlives a machine."""
    if not request.load_balancer and not helm_values.has_floating_ip(request):
        raise errors.InvalidRequest(
            "The cluster has neither a load balancer nor a floating IP, so its Kubernetes API "
            "would lose its address with its machine. Create it with --master-lb-enabled, or with "
            "--floating-ip-enabled and without the label master_lb_floating_ip_enabled=false."
        )


def validate_place(row: Any, rows: Iterable[Any]) -> None:
    """Refuse a nodegroup whose place another one has, which magnum-capi-helm gave it.

    :param rows: all of the cluster.
    :raises errors.InvalidRequest: naming both.
    """
    rows = list(rows)
    older = {name: text for text, name in entries(rows).items() if text != row.name}
    if row.name in older:
        raise errors.InvalidRequest(
            f"Nodegroup name '{row.name}' is what nodegroup '{older[row.name]}' is called on the "
            "management cluster. Choose another name."
        )


def validate_upgrade(cluster: Any, template: Any) -> None:
    """Refuse a template that this cluster cannot follow.

    :raises errors.InvalidRequest: naming field and value.
    """
    old = cluster.cluster_template
    pairs = [(field, getattr(old, field), getattr(template, field)) for field in _KIND]
    if template.driver:
        pairs.append(("driver", names.DRIVER, template.driver))
    for field, have, wanted in pairs:
        if wanted != have:
            raise errors.InvalidRequest(
                f"Field '{field}' of template '{template.name}' is '{wanted}', and the cluster was "
                f"made with '{have}': it cannot be upgraded to this template."
            )
    if not template.image_id:
        raise errors.InvalidRequest(f"Template '{template.name}' names no image.")


def validate_resize(cluster: Any, request: ClusterRequest, name: str, live: Json) -> None:
    """Refuse a node count that cannot be, or that would have no effect.

    :param live: values of the live release, {} when nobody can read them.
    :raises errors.InvalidRequest: naming the group.
    """
    masters = request.control_plane
    if name == masters.name and masters.count > 1 and not cluster.master_lb_enabled:
        raise errors.InvalidRequest(
            f"{masters.count} control plane nodes need a load balancer before them, and this "
            "cluster was made without one (master_lb_enabled). Create a new cluster with one."
        )
    entries = change.node_groups(change.sizes(live, request))
    for group in request.node_groups:
        entry = entries[group.name]
        if group.name != name or not change.is_autoscaled(entry):
            continue
        least, most = change.bounds(entry)
        if not least <= group.count <= most:
            raise errors.InvalidRequest(
                f"Nodegroup '{name}' is sized by the autoscaler, between {least} and {most} nodes, "
                f"so it cannot be given {group.count}. Ask for a number between them, or change "
                "min_node_count and max_node_count of the nodegroup first."
            )


def check_facts(request: ClusterRequest, facts: CloudFacts, conf: Any) -> None:
    """Refuse what the cloud's answers make impossible.

    :raises errors.InvalidRequest: wrong distribution or flavor, or an unknown version.
    """
    check_software(request, facts)
    check_flavors(facts.flavors, conf)
    version = request.labels.kube_tag or facts.kubernetes_version
    nodegroups.check_images(request.node_groups, facts.images, version, facts.os_distro)


def check_software(request: ClusterRequest, facts: CloudFacts) -> None:
    """Refuse an image that nothing can be made of, and volume types that are not there.

    :raises errors.InvalidRequest: wrong distribution, or an unknown version.
    """
    if facts.os_distro not in DISTROS:
        raise errors.InvalidRequest(
            f"Image '{request.image}' has os_distro '{facts.os_distro}'; this version of the "
            f"driver supports {' and '.join(DISTROS)}."
        )
    if not (facts.kubernetes_version or request.labels.kube_tag):
        raise errors.InvalidRequest(
            f"Image '{request.image}' has no property 'kube_version', so it is not known which "
            "Kubernetes it holds. Set it on the image, for example kube_version=v1.34.4, choose "
            "another image, or set the label kube_tag."
        )
    asked = [request.labels, *(group.labels for group in request.node_groups if group.labels)]
    kinds = ("boot_volume_type", "docker_volume_type", "etcd_blockdevice_volume_type")
    for label, kind in ((label, getattr(one, label)) for one in asked for label in kinds):
        if kind and kind not in facts.volume_types:
            raise errors.InvalidLabel(
                label, kind, f"one of this cloud's volume types ({', '.join(facts.volume_types)})"
            )


def check_flavors(flavors: Mapping[str, Flavor], conf: Any) -> None:
    """Refuse flavors that are too small for a node.

    :raises errors.InvalidRequest: one is below the operator's minimum.
    """
    least_ram, least_cpu = conf.capi_helm.minimum_flavor_ram, conf.capi_helm.minimum_flavor_vcpus
    for flavor in flavors.values():
        if flavor.ram < least_ram or flavor.vcpus < least_cpu:
            raise errors.InvalidRequest(
                f"Flavor '{flavor.name}' has {flavor.ram} MiB of memory and {flavor.vcpus} vCPUs; "
                f"a Kubernetes node needs at least {least_ram} MiB and {least_cpu} vCPUs here."
            )


def _not_yet(where: str, field: str, value: Any) -> None:
    raise errors.InvalidRequest(
        f"Field '{field}' of the {where} has the value '{value}', which this version of the driver "
        "does not support. Leave the field out."
    )
