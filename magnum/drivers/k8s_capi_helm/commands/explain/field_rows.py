# SPDX-License-Identifier: Apache-2.0
"""Explanations of the fields of Magnum's template, cluster and nodegroups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from magnum.drivers.k8s_capi_helm.commands.explain import effects
from magnum.drivers.k8s_capi_helm.commands.explain.effects import ValueEffect
from magnum.drivers.k8s_capi_helm.commands.explain.explanation import (
    CLUSTER,
    ExplainedCluster,
    Explanation,
)
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.magnum_objects.validation.fields import (
    Effect,
    Field,
    FieldOwner,
    FIELDS,
)
from magnum.drivers.k8s_capi_helm.model import NodeGroupRequest
from magnum.drivers.k8s_capi_helm.values.sections import nodegroups as values_nodegroups

TEMPLATE = "cluster template"
_LABELS = "labels"
#: Fields of a cluster that Magnum takes from the template where they are not set, and their names
#: there.
_COPIES = {
    "keypair": "keypair_id",
    **{
        name: name
        for name in (
            "fixed_network",
            "fixed_subnet",
            "master_lb_enabled",
            "floating_ip_enabled",
            "docker_volume_size",
        )
    },
}


def field_rows(subject: ExplainedCluster, name: str = "") -> Iterator[Explanation]:
    """All fields that decide about the cluster, and others that there is a notice about.

    :param name: of a single field, which is subject whatever it does.
    """
    sentences, cluster = subject.sentences(), subject.cluster
    for field in FIELDS:
        is_shown = field.effect is Effect.HONOURED or field.name in sentences
        if field.name != name if name else not is_shown:
            continue
        if field.name == _LABELS:
            continue  # each has its own row
        if field.owner is FieldOwner.TEMPLATE:
            yield _row(subject, field, cluster.cluster_template, sentences)
        elif field.owner is FieldOwner.CLUSTER:
            yield _row(subject, field, cluster, sentences)
        else:
            yield from _nodegroup_rows(subject, field)


def _row(
    subject: ExplainedCluster, field: Field, owner: Any, sentences: Mapping[str, str]
) -> Explanation:
    """A field of the template or of the cluster."""
    effect = effects.field_effects().get((str(field.owner), field.name), effects.NONE)
    raw = getattr(owner, field.name, None)
    value, source = _effective(subject, field, raw)
    notice = sentences.get(field.name, "")
    if field.effect is not Effect.HONOURED:
        notice = notice or field.help
    return Explanation(
        field.name,
        TEMPLATE if field.owner is FieldOwner.TEMPLATE else CLUSTER,
        _text(value),
        source,
        str(field.change_time or ""),
        subject.rolls(effect, field.change_time),
        notice,
        effect,
        is_in_force=field.name not in sentences,
    )


def _effective(subject: ExplainedCluster, field: Field, raw: Any) -> tuple[Any, str]:
    """The value of a field that is in force, and where it comes from."""
    request, conf = subject.request, subject.settings
    template, source = subject.cluster.cluster_template, str(field.owner)
    if field.owner is FieldOwner.CLUSTER and field.name in _COPIES:
        is_copy = raw and raw == getattr(template, _COPIES[field.name], None)
        source = f"{TEMPLATE}, copied by Magnum" if is_copy else source
    if field.name == "keypair" and conf.capi_helm.ignore_keypairs:
        return None, "option [capi_helm] ignore_keypairs"
    if field.name == "floating_ip_enabled":
        is_label = "master_lb_floating_ip_enabled" in request.given_labels
        source = "label master_lb_floating_ip_enabled" if is_label else source
    computed = {
        "dns_nameserver": request.dns_nameservers,
        "network_driver": request.cni,
        "insecure_registry": request.insecure_registry,
        "no_proxy": request.no_proxy,
        "master_lb_enabled": request.load_balancer,
        "floating_ip_enabled": request.floating_ip,
    }
    value = computed.get(field.name, raw) if field.effect is Effect.HONOURED else raw
    if value != raw and field.name in ("network_driver", "master_lb_enabled"):
        source = "the driver"
    return value, source if _text(value) else "default"


def _nodegroup_rows(subject: ExplainedCluster, field: Field) -> Iterator[Explanation]:
    """A field of each nodegroup; of the control plane those that it has."""
    effect = effects.field_effects().get((str(field.owner), field.name), effects.NONE)
    entry_names = reader.entry_names_of(subject.cluster.nodegroups)
    requests = {
        one.name: one for one in (subject.request.control_plane, *subject.request.node_groups)
    }
    for nodegroup in subject.cluster.nodegroups:
        request = requests.get(entry_names[nodegroup.name])
        if request is None:
            continue  # it is being deleted, or was never created
        is_master = nodegroup.role == reader.MASTER
        own = _of_nodegroup(effect, is_master=is_master)
        if is_master and effect.values and not own.values:
            continue
        value, source = _nodegroup_value(subject, field, nodegroup, request)
        yield Explanation(
            field.name,
            f"nodegroup {nodegroup.name}",
            _text(value),
            source if _text(value) else "default",
            str(field.change_time or ""),
            subject.rolls(own, field.change_time, () if is_master else (request,)),
            "" if field.effect is Effect.HONOURED else field.help,
            own,
        )


def _nodegroup_value(
    subject: ExplainedCluster, field: Field, nodegroup: Any, request: NodeGroupRequest
) -> tuple[Any, str]:
    raw, cluster_labels = getattr(nodegroup, field.name, None), subject.request.labels
    counts = values_nodegroups.nodegroup_counts(request, cluster_labels)
    by_label = request.is_default and request.maximum is None and "autoscale" in counts
    if field.name == "docker_volume_size" and not raw:
        return request.docker_volume or None, CLUSTER
    if field.name == "image_id" and request.image is None:
        return subject.request.image, TEMPLATE
    if field.name in ("min_node_count", "max_node_count"):
        bound = "machineCountMin" if field.name.startswith("min") else "machineCountMax"
        return counts.get(bound), f"label {field.name}" if by_label else "nodegroup"
    return raw, "nodegroup"


def _of_nodegroup(effect: ValueEffect, *, is_master: bool) -> ValueEffect:
    """What a field of the control plane, or of a nodegroup of workers, moves."""
    if not is_master:
        return ValueEffect(
            tuple(path for path in effect.values if path.startswith("nodeGroup")),
            tuple(one for one in effect.objects if not one.endswith(" control-plane")),
        )
    return ValueEffect(
        tuple(path for path in effect.values if path.startswith("controlPlane.")),
        tuple(one for one in effect.objects if one.endswith(" control-plane")),
    )


def _text(value: Any) -> str:
    if value is None or value in ("", (), [], {}):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ",".join(f"{key}={value[key]}" for key in sorted(value))
    if isinstance(value, (list, tuple)):
        return ",".join(_text(item) for item in value)
    return str(value)
