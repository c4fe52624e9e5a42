# SPDX-License-Identifier: Apache-2.0
"""Notices about labels without effect that are not errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import difflib
import functools

from magnum.drivers.k8s_capi_helm.errors import column_limits
from magnum.drivers.k8s_capi_helm.labels import parser, registry, unsupported
from magnum.drivers.k8s_capi_helm.labels.value_types import label as labels_label

#: Labels that do something only while the other one is above zero.
_NEEDS_SIZE = {
    "boot_volume_type": "boot_volume_size",
    "boot_volume_availability_zone": "boot_volume_size",
    "etcd_blockdevice_type": "etcd_blockdevice_size",
    "etcd_blockdevice_volume_type": "etcd_blockdevice_size",
    "etcd_blockdevice_volume_az": "etcd_blockdevice_size",
}
#: Labels that do something only while the other one is on, or given.
_NEEDS = {
    **dict.fromkeys(("min_node_count", "max_node_count"), "auto_scaling_enabled"),
    **dict.fromkeys(
        ("audit_log_max_age", "audit_log_max_backup", "audit_log_max_size"), "audit_log_enabled"
    ),
    **dict.fromkeys(
        (
            "oidc_username_claim",
            "oidc_username_prefix",
            "oidc_groups_claim",
            "oidc_groups_prefix",
        ),
        "oidc_issuer_url",
    ),
    "oidc_issuer_url": "oidc_client_id",
    "oidc_client_id": "oidc_issuer_url",
    **dict.fromkeys(
        (
            "monitoring_retention_days",
            "monitoring_retention_size",
            "monitoring_interval_seconds",
            "monitoring_storage_class_name",
        ),
        "monitoring_enabled",
    ),
    **dict.fromkeys(
        (
            "cinder_csi_plugin_tag",
            "csi_attacher_tag",
            "csi_provisioner_tag",
            "csi_resizer_tag",
            "csi_snapshotter_tag",
            "csi_liveness_probe_tag",
            "csi_node_driver_registrar_tag",
            "csi_cinder_availability_zone",
            "csi_cinder_reclaim_policy",
            "csi_cinder_volume_binding_mode",
            "csi_cinder_fstype",
            "csi_cinder_allow_volume_expansion",
        ),
        "cinder_csi_enabled",
    ),
    **dict.fromkeys(
        (
            "etcd_snapshot_bucket",
            "etcd_snapshot_secret",
            "etcd_snapshot_schedule",
            "etcd_snapshot_keep_days",
        ),
        "etcd_snapshot_enabled",
    ),
    "manila_csi_share_type": "manila_csi_enabled",
    "manila_csi_share_network_id": "manila_csi_share_type",
    "manila_csi_plugin_tag": "manila_csi_enabled",
    "k8s_keystone_auth_tag": "keystone_auth_enabled",
    "node_problem_detector_tag": "npd_enabled",
}
#: Labels that are about one of the networks of pods.
_OF_CNI = {
    "calico_ipv4pool": "calico",
    "calico_tag": "calico",
    "kubeproxy_options": "calico",
    "cilium_ipv4pool": "cilium",
    "cilium_tag": "cilium",
    "cilium_hubble_ui_enabled": "cilium",
}
#: Every label about which there is something to say.
_KNOWN = frozenset(
    {
        *registry.BY_NAME,
        *unsupported.REFUSED,
        *unsupported.BUNDLED,
        *unsupported.OPERATORS,
        *unsupported.HEAT,
    }
)
#: Unknown labels that are named, and characters of a name: clusters from before labels had a bound
#: may have any number, of any length. No name that is longer is nearly one of those above.
_NAMED, _LONGEST = 50, 64
_CINDER_ONLY = ("etcd_blockdevice_volume_type", "etcd_blockdevice_volume_az")


@dataclasses.dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for the tenant.

    :ivar names: of the labels or fields that it is about.
    """

    names: tuple[str, ...]
    sentence: str


def notices(
    texts: Mapping[str, str], defaults: Mapping[str, str] | None = None, cni: str | None = None
) -> tuple[str, ...]:
    """Sentences about labels that are unknown, old, unusable or without effect; never an error.

    :param texts: the cluster's labels as Magnum keeps them, valid or not.
    :param defaults: texts of the site's defaults.
    :param cni: the cluster's network of pods, None if it does not matter.
    :returns: sentences in a stable order, () if there is nothing to say.
    """
    return tuple(notice.sentence for notice in named_notices(texts, defaults, cni))


def named_notices(
    texts: Mapping[str, str], defaults: Mapping[str, str] | None = None, cni: str | None = None
) -> tuple[Notice, ...]:
    """The same, each with the labels that it is about."""
    typed = parser.parse(texts, defaults or {}, running_labels=texts)
    return (
        *_unknown(texts),
        *_unavailable(texts),
        *_unusable(texts),
        *_old_names(texts),
        *_without_effect(texts, typed),
        *_of_other_cni(texts, typed, cni),
    )


def nodegroup_notices(
    labels_by_nodegroup: Mapping[str, Mapping[str, str]], cluster: Mapping[str, str]
) -> Iterator[str]:
    """Sentences about labels of single nodegroups that do nothing; a copy of the cluster's is none.

    :param labels_by_nodegroup: labels as Magnum keeps them, valid or not, by nodegroup.
    :param cluster: labels of the cluster.
    """
    affected: dict[tuple[str, str], list[str]] = {}
    unknown: set[str] = set()
    for nodegroup, own in labels_by_nodegroup.items():
        for name in sorted(name for name in own if own[name] != cluster.get(name)):
            if name not in _KNOWN and name not in unknown:
                if len(unknown) == _NAMED:
                    continue
                unknown.add(name)
            if reason := why_without_effect(name, own[name], is_nodegroup=True):
                affected.setdefault((name, reason), []).append(f"'{nodegroup}'")
    for (name, reason), nodegroups in affected.items():
        ending = "s" if len(nodegroups) > 1 else ""
        yield f"Label '{name}' of nodegroup{ending} {_joined(nodegroups)} has no effect: {reason}"
    if len(unknown) == _NAMED:
        yield f"Only the first {_NAMED} unknown labels of nodegroups are named."


def why_without_effect(name: str, text: str, *, is_nodegroup: bool = False) -> str:
    """Why a label does nothing, as an ending of a sentence; "" if it does or asks for nothing.

    :param is_nodegroup: whether it is a nodegroup's own.
    """
    label = registry.BY_NAME.get(name)
    if label is None and name in unsupported.REFUSED:
        return unsupported.REFUSED[name] if unsupported.has_effect(name, text) else ""
    if label is None and name in unsupported.BUNDLED:
        return "the charts and Kubernetes have their own versions."
    if label is None and name in unsupported.OPERATORS:
        return unsupported.OPERATORS[name]
    if label is None and name in unsupported.HEAT:
        return "it is for Magnum's former Heat driver."
    if label is None:
        similar = _similar_name(name)
        return f"it is unknown, did you mean '{similar}'?" if similar else "it is unknown here."
    if not text.strip():
        return ""
    if is_nodegroup and labels_label.LabelScope.NODEGROUP not in label.scopes:
        return "it applies to whole clusters."
    expected = parser.invalid_label(label, text)
    return f"its value '{text}' should be {expected}." if expected else ""


@functools.lru_cache(maxsize=1024)
def _similar_name(name: str) -> str | None:
    """The label that was probably meant; looking for it takes half a millisecond."""
    if len(name) > _LONGEST:
        return None
    matches = difflib.get_close_matches(name.lower(), registry.BY_NAME, n=1, cutoff=0.85)
    return matches[0] if matches else None


def _unknown(texts: Mapping[str, str]) -> Iterator[Notice]:
    unknown = sorted(texts.keys() - _KNOWN)
    similar = {
        name: similar_name for name in unknown[:_NAMED] if (similar_name := _similar_name(name))
    }
    for name, similar_name in similar.items():
        sentence = f"Label '{name}' is unknown and has no effect: did you mean '{similar_name}'?"
        yield Notice((name,), sentence)
    if others := [name for name in unknown if name not in similar]:
        yield Notice(
            tuple(others),
            f"These labels are unknown to this driver and have no effect: {_joined(others)}.",
        )


def _joined(names: Sequence[str]) -> str:
    """The first of them, each as long as it can be read, and how many more there are."""
    shown = ", ".join(column_limits.shorten(name, _LONGEST) for name in names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown


def _unavailable(texts: Mapping[str, str]) -> Iterator[Notice]:
    """Labels of other drivers; refused ones are those of a cluster that was there before."""
    for name in sorted(texts.keys() & unsupported.REFUSED.keys()):
        if unsupported.has_effect(name, texts[name]):
            yield Notice((name,), f"Label '{name}' has no effect. {unsupported.REFUSED[name]}")
    if bundled := sorted(unsupported.BUNDLED & set(texts)):
        yield Notice(
            tuple(bundled),
            "The charts and Kubernetes have their own versions, so these labels have no "
            f"effect: {', '.join(bundled)}.",
        )
    for name in sorted(unsupported.OPERATORS.keys() & set(texts)):
        yield Notice((name,), f"Label '{name}' has no effect: {unsupported.OPERATORS[name]}")
    if heat := sorted(unsupported.HEAT & set(texts)):
        yield Notice(
            tuple(heat),
            "These labels are for Magnum's former Heat driver and have no effect: "
            f"{', '.join(heat)}.",
        )


def _unusable(texts: Mapping[str, str]) -> Iterator[Notice]:
    """Labels of a cluster that was there before, which nobody would be allowed today."""
    for label in registry.REGISTRY:
        for name, text in parser.given_labels(label, texts):
            if expected := parser.invalid_label(label, text):
                yield Notice(
                    (name,),
                    f"Label '{name}' has the value '{text}' and no effect, because it should be "
                    f"{expected}.",
                )


def _old_names(texts: Mapping[str, str]) -> Iterator[Notice]:
    for label in registry.REGISTRY:
        names = [name for name, _ in parser.given_labels(label, texts)]
        for old in names:
            if old == label.name:
                continue
            if old == names[0]:
                yield Notice((old,), f"Label '{old}' is an old name: use '{label.name}'.")
            else:
                sentence = f"Label '{old}' has no effect, because '{names[0]}' is set."
                yield Notice((old,), sentence)


def _without_effect(texts: Mapping[str, str], typed: registry.Labels) -> Iterator[Notice]:
    for name, size in _NEEDS_SIZE.items():
        if _is_given(name, texts) and not getattr(typed, size):
            yield Notice((name,), f"Label '{name}' has no effect without a '{size}' above 0.")
    for name, required in _NEEDS.items():
        if _is_given(name, texts) and not getattr(typed, required):
            yield Notice((name,), f"Label '{name}' has no effect without '{required}'.")
    if (
        _is_given("auto_scaling_enabled", texts)
        and typed.auto_scaling_enabled
        and typed.max_node_count is None
    ):
        yield Notice(
            ("auto_scaling_enabled",),
            "Label 'auto_scaling_enabled' has no effect on nodegroups without a maximum: set "
            "'max_node_count' or the nodegroup's own maximum.",
        )
    if typed.etcd_snapshot_enabled and not (
        typed.etcd_snapshot_bucket and typed.etcd_snapshot_secret
    ):
        yield Notice(
            ("etcd_snapshot_enabled",),
            "Label 'etcd_snapshot_enabled' has no effect without 'etcd_snapshot_bucket' and "
            "'etcd_snapshot_secret'.",
        )
    if typed.etcd_blockdevice_type == "local" and typed.etcd_blockdevice_size:
        for name in _CINDER_ONLY:
            if _is_given(name, texts):
                sentence = f"Label '{name}' has no effect while 'etcd_blockdevice_type' is local."
                yield Notice((name,), sentence)


def _of_other_cni(
    texts: Mapping[str, str], typed: registry.Labels, cni: str | None
) -> Iterator[Notice]:
    for name, required_cni in _OF_CNI.items():
        if cni not in (None, required_cni) and _is_given(name, texts) and getattr(typed, name):
            yield Notice((name,), f"Label '{name}' has no effect with the network driver {cni}.")


def _is_given(name: str, texts: Mapping[str, str]) -> bool:
    return any(parser.given_labels(registry.BY_NAME[name], texts))
