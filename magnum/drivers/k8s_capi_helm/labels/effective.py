# SPDX-License-Identifier: Apache-2.0
"""The labels that make a cluster differ from the defaults, as texts."""

from __future__ import annotations

from typing import Any

from magnum.drivers.k8s_capi_helm.labels import registry
from magnum.drivers.k8s_capi_helm.labels.value_types import label as labels_label


def effective(labels: registry.Labels) -> dict[str, str]:
    """Texts by name of all labels whose value is not the driver's default, in their order.

    A site's defaults count like labels of the cluster. Reading the texts gives the same values.
    Labels that no release has are left out.
    """
    values = {label.name: getattr(labels, label.name) for label in registry.REGISTRY}
    return {
        label.name: value_text(label, values[label.name])
        for label in registry.REGISTRY
        if values[label.name] != label.default and not label.is_for_rollouts
    }


def value_text(label: labels_label.Label, value: Any) -> str:
    """A typed value as a text that reads the same; "" for none."""
    if value is None:
        return ""
    return (label.label_type.write or _text)(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
