# SPDX-License-Identifier: Apache-2.0
"""What a tenant should know about labels that are no error and yet do nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import difflib

from oslo_utils import strutils

from magnum.drivers.k8s_capi_helm.labels import reading, registry

#: Labels that do something only while the other one is above zero.
_NEEDS_SIZE = {
    "boot_volume_type": "boot_volume_size",
    "boot_volume_availability_zone": "boot_volume_size",
    "etcd_blockdevice_type": "etcd_blockdevice_size",
    "etcd_blockdevice_volume_type": "etcd_blockdevice_size",
    "etcd_blockdevice_volume_az": "etcd_blockdevice_size",
}
_CINDER_ONLY = ("etcd_blockdevice_volume_type", "etcd_blockdevice_volume_az")


def notices(texts: Mapping[str, str], defaults: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Sentences about labels that are unknown, old or without effect; never an error.

    :param texts: the cluster's labels as Magnum keeps them, valid or not.
    :param defaults: texts of the site's defaults.
    :returns: sentences in a stable order, () if there is nothing to say.
    """
    everything = {**(defaults or {}), **texts}
    return (
        *_unknown(texts),
        *_unreadable(texts),
        *_old_names(texts),
        *_without_effect(texts, everything),
    )


def _unknown(texts: Mapping[str, str]) -> Iterator[str]:
    strange = sorted(set(texts) - set(registry.BY_NAME) - reading.NOT_YET)
    for name in list(strange):
        if close := difflib.get_close_matches(name.lower(), registry.BY_NAME, n=1, cutoff=0.85):
            strange.remove(name)
            yield f"Label '{name}' is unknown and has no effect: did you mean '{close[0]}'?"
    if strange:
        yield f"These labels are unknown to this driver and have no effect: {', '.join(strange)}."


def _unreadable(texts: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(set(texts) - set(reading.readable(texts))):
        yield (
            f"Label '{name}' has the value '{texts[name]}', expected "
            f"{registry.BY_NAME[name].form.expected}: it has no effect."
        )


def _old_names(texts: Mapping[str, str]) -> Iterator[str]:
    for label in registry.REGISTRY:
        names = [name for name, _ in reading.given(label, texts)]
        for old in names:
            if old == label.name:
                continue
            if old == names[0]:
                yield f"Label '{old}' is an old name: use '{label.name}'."
            else:
                yield f"Label '{old}' has no effect, because '{names[0]}' is set."


def _without_effect(texts: Mapping[str, str], everything: Mapping[str, str]) -> Iterator[str]:
    sizes = {name: _is_above_zero(name, everything) for name in set(_NEEDS_SIZE.values())}
    for name, size in _NEEDS_SIZE.items():
        if _is_given(name, texts) and not sizes[size]:
            yield f"Label '{name}' has no effect without a '{size}' above 0."
    if _is_true("auto_scaling_enabled", texts) and not _is_given("max_node_count", everything):
        yield (
            "Label 'auto_scaling_enabled' has no effect on nodegroups without a maximum: set "
            "'max_node_count' or the nodegroup's own maximum."
        )
    disk = everything.get("etcd_blockdevice_type", "").strip().casefold()
    if disk == "local" and sizes["etcd_blockdevice_size"]:
        for name in _CINDER_ONLY:
            if _is_given(name, texts):
                yield f"Label '{name}' has no effect while 'etcd_blockdevice_type' is local."


def _is_given(name: str, texts: Mapping[str, str]) -> bool:
    return any(reading.given(registry.BY_NAME[name], texts))


def _is_true(name: str, texts: Mapping[str, str]) -> bool:
    return strutils.bool_from_string(texts.get(name, "").strip())


def _is_above_zero(name: str, texts: Mapping[str, str]) -> bool:
    text = next((text for _, text in reading.given(registry.BY_NAME[name], texts)), "0")
    return text.strip("0 \t") != ""
