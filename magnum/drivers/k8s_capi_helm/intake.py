# SPDX-License-Identifier: Apache-2.0
"""Magnum Cluster, NodeGroup, ClusterTemplate, CONF -> ClusterRequest / MagnumState.

Everything that can be refused from Magnum's own rows is refused here, before anything is touched;
what this version of the driver does not do yet is refused in a sentence and never ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import datetime
from typing import Any

from magnum.drivers.k8s_capi_helm import change, errors, labels, names
from magnum.drivers.k8s_capi_helm import conf as conf_module
from magnum.drivers.k8s_capi_helm.model import (
    CloudFacts,
    ClusterRequest,
    Flavor,
    GroupState,
    Json,
    LiveRelease,
    MagnumState,
    NodeGroupRequest,
    Record,
)
from magnum.drivers.k8s_capi_helm.status import addons

DISTROS = ("ubuntu",)
CNIS = ("calico", "cilium")
_MASTER = "master"
#: Rows in these states ask to be taken away.
_LEAVING = ("DELETE_IN_PROGRESS", "DELETE_COMPLETE", "DELETE_FAILED")
#: Rows in these states ask for nothing: the group failed to be made, or is on its way out.
_NOT_RENDERED = ("CREATE_FAILED", *_LEAVING)


def cluster_request(
    cluster: Any, nodegroups: Iterable[Any], conf: Any, *, release: str | None = None
) -> ClusterRequest:
    """What Magnum's rows ask for.

    Fields that only matter when a cluster or group is made are refused by
    :func:`validate_new_cluster` and :func:`validate_new_nodegroup`, so that a cluster that runs can
    always be resized and deleted.

    :param cluster: ``magnum.objects.Cluster``; its template is read through it.
    :param nodegroups: the cluster's ``magnum.objects.NodeGroup`` rows, fresh from the database.
    :param conf: oslo.config with the driver's options registered.
    :param release: of a cluster whose row has none yet.
    :raises errors.InvalidLabel: a label's text does not have the label's form.
    """
    template, rows = cluster.cluster_template, list(nodegroups)
    texts = dict(cluster.labels or {})
    typed = labels.parse(texts, conf_module.label_defaults(conf))
    masters = [row for row in rows if row.role == _MASTER]
    if len(masters) != 1:
        raise errors.InvalidRequest(
            f"The cluster has {len(masters)} nodegroups of role '{_MASTER}'; exactly one is "
            "supported."
        )
    workers = [row for row in rows if row.role != _MASTER and row.status not in _NOT_RENDERED]
    return ClusterRequest(
        uuid=cluster.uuid,
        name=cluster.name,
        release=release or cluster.stack_id or "",
        namespace=namespace(cluster, conf),
        project_id=cluster.project_id,
        user_id=cluster.user_id,
        labels=typed,
        control_plane=_group_request(masters[0]),
        node_groups=tuple(_group_request(row) for row in workers),
        deleted_groups=tuple(row.name for row in rows if row.status in _LEAVING),
        image=template.image_id,
        external_network=template.external_network_id or "",
        cni=_cni(template.network_driver),
        keypair=cluster.keypair or None,
        fixed_network=cluster.fixed_network or None,
        fixed_subnet=cluster.fixed_subnet or None,
        dns_nameservers=_nameservers(template.dns_nameserver),
        load_balancer=bool(cluster.master_lb_enabled) or masters[0].node_count > 1,
        floating_ip=_floating_ip(cluster, texts, typed),
        server_start_timeout=conf.capi_helm.server_start_timeout,
    )


def namespace(cluster: Any, conf: Any) -> str:
    """The namespace in which everything of a cluster lives."""
    return names.namespace(conf.capi_helm.namespace_prefix, cluster.project_id)


def notices(cluster: Any, conf: Any) -> tuple[str, ...]:
    """What the tenant should know about labels and fields that have no effect here."""
    found = list(labels.notices(cluster.labels or {}, conf_module.label_defaults(conf)))
    driver = cluster.cluster_template.network_driver
    if driver and driver not in CNIS:
        found.append(
            f"network_driver '{driver}' is not available; the cluster uses '{_cni(driver)}'."
        )
    return tuple(found)


def validate_new_cluster(cluster: Any, nodegroups: Iterable[Any], conf: Any) -> None:
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
        "docker_volume_size",
    ):
        if getattr(template, field, None):
            _not_yet("cluster template", field, getattr(template, field))
    if cluster.docker_volume_size:
        _not_yet("cluster", "docker_volume_size", cluster.docker_volume_size)
    if template.volume_driver not in (None, "", "cinder"):
        _not_yet("cluster template", "volume_driver", template.volume_driver)
    if template.server_type not in (None, "vm"):
        _not_yet("cluster template", "server_type", template.server_type)
    if not template.external_network_id:
        raise errors.InvalidRequest(
            "The cluster template names no external network. Create one with --external-network."
        )
    for row in nodegroups:
        if row.role == _MASTER and row.node_count % 2 == 0:
            raise errors.InvalidRequest(
                f"master_count is {row.node_count}: etcd needs an odd number of nodes."
            )
    labels.parse(cluster.labels or {}, conf_module.label_defaults(conf), template.labels or {})
    for row in nodegroups:
        validate_new_nodegroup(row, cluster)


def validate_new_nodegroup(row: Any, cluster: Any) -> None:
    """Refuse what a new nodegroup asks for and this version cannot do.

    :raises errors.InvalidRequest: naming group, field and value.
    """
    if not names.is_node_group(row.name):
        raise errors.InvalidRequest(
            f"Nodegroup name '{row.name}' cannot be used: expected lower-case letters, digits and "
            "hyphens, beginning and ending with a letter or digit, at most 63 characters."
        )
    if not row.flavor_id:
        raise errors.InvalidRequest(
            f"Nodegroup '{row.name}' has no flavor. Name one of 'openstack flavor list', with "
            "--flavor and --master-flavor."
        )
    if row.image_id and row.image_id != cluster.cluster_template.image_id:
        _not_yet(f"nodegroup '{row.name}'", "image_id", row.image_id)
    if row.docker_volume_size:
        _not_yet(f"nodegroup '{row.name}'", "docker_volume_size", row.docker_volume_size)
    for field in ("node_labels", "node_taints"):
        if row.obj_attr_is_set(field) and getattr(row, field):
            _not_yet(f"nodegroup '{row.name}'", field, getattr(row, field))
    labels.check_node_group(row.labels or {}, cluster.labels or {})
    least, most = row.min_node_count or 0, row.max_node_count
    if most is not None and not least <= row.node_count <= most:
        raise errors.InvalidRequest(
            f"Nodegroup '{row.name}' has node_count {row.node_count}, outside of its bounds "
            f"{least} to {most}. Change the count or the bounds."
        )


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
    for counts in change.sizes(live, request)["nodeGroups"]:
        if counts["name"] == name and counts.get("autoscale"):
            raise errors.InvalidRequest(
                f"Nodegroup '{name}' is sized by the autoscaler, between "
                f"{counts['machineCountMin']} and {counts['machineCountMax']} nodes; this version "
                "of the driver cannot set its node count."
            )


def check_facts(request: ClusterRequest, facts: CloudFacts, conf: Any) -> None:
    """Refuse what the cloud's answers make impossible.

    :raises errors.InvalidRequest: wrong distribution or flavor, or an unknown version.
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
    for label in ("boot_volume_type", "etcd_blockdevice_volume_type"):
        kind = getattr(request.labels, label)
        if kind and kind not in facts.volume_types:
            raise errors.InvalidLabel(
                label, kind, f"one of this cloud's volume types ({', '.join(facts.volume_types)})"
            )
    check_flavors(facts.flavors, conf)


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


def magnum_state(
    cluster: Any,
    nodegroups: Iterable[Any],
    record: Record | None,
    live: LiveRelease | None,
    *,
    applied: bool,
    refusal: str = "",
    waiting: errors.DriverError | None = None,
) -> MagnumState:
    """What the database and the operation record say, for the judge."""
    operations = record.operations if record else ()
    deadlines = [op.deadline for op in operations if op.deadline]
    values, reason = live.values if live else {}, cluster.status_reason or ""
    if cluster.status.endswith("_FAILED") and not reason.startswith(f"{errors.Cause.TIMEOUT}:"):
        # A missed deadline heals when things come good; a refusal stays until the next request.
        refusal = refusal or reason
    return MagnumState(
        release=cluster.stack_id or "",
        status=cluster.status,
        status_reason=cluster.status_reason,
        groups=tuple(_group_state(row, values) for row in nodegroups),
        applied=applied,
        kubernetes_version=str(values.get("kubernetesVersion", "")).lstrip("v"),
        started=min((op.started for op in operations), default=None),
        deadline=max(deadlines) if deadlines else None,
        first_look=record.first_look if record else "",
        refusal=refusal,
        health_reason=dict(cluster.health_status_reason or {}),
        waiting=str(waiting or ""),
        waiting_cause=None if waiting is None or waiting.passing else waiting.cause,
        without_addons=addons.switched_off(values),
    )


def deadline(now: datetime.datetime, minutes: int | None) -> datetime.datetime | None:
    """When an operation that starts now has to be through; 0 or None is no limit."""
    return now + datetime.timedelta(minutes=minutes) if minutes else None


def _group_state(row: Any, values: Mapping[str, Any]) -> GroupState:
    live: dict[str, Any] = next(
        (g for g in values.get("nodeGroups", ()) if g.get("name") == row.name), {}
    )
    autoscaled = bool(live.get("autoscale"))
    return GroupState(
        name=row.name,
        status=row.status or "",
        count=row.node_count,
        is_control_plane=row.role == _MASTER,
        autoscaled=autoscaled,
        minimum=live.get("machineCountMin", 0) if autoscaled else row.min_node_count or 0,
        maximum=live.get("machineCountMax") if autoscaled else row.max_node_count,
        reason=row.status_reason,
    )


def _group_request(row: Any) -> NodeGroupRequest:
    return NodeGroupRequest(
        name=row.name,
        flavor=row.flavor_id or "",
        count=row.node_count,
        minimum=row.min_node_count or 0,
        maximum=row.max_node_count,
        is_default=bool(row.is_default),
    )


def _not_yet(where: str, field: str, value: Any) -> None:
    raise errors.InvalidRequest(
        f"Field '{field}' of the {where} has the value '{value}', which this version of the driver "
        "does not support. Leave the field out."
    )


def _cni(driver: str | None) -> str:
    # Magnum writes 'flannel' into every template that names no network driver.
    return driver if driver in CNIS else CNIS[0]


def _nameservers(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _floating_ip(cluster: Any, texts: Mapping[str, str], typed: labels.Labels) -> bool:
    """The label where it was given, else Magnum's own field."""
    if texts.get("master_lb_floating_ip_enabled", "").strip():
        return typed.master_lb_floating_ip_enabled
    return bool(cluster.floating_ip_enabled) and typed.master_lb_floating_ip_enabled
