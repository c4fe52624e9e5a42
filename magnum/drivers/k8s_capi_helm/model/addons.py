# SPDX-License-Identifier: Apache-2.0
"""Addon objects: whether the addon provider has handled the current spec, also without its text.

What the addon provider has worked through is in an annotation that its framework, kopf, keeps
(https://kopf.readthedocs.io, "Diff-base configuration").
"""

from __future__ import annotations

import json

from magnum.drivers.k8s_capi_helm.model import conditions, Json, names

_HANDLED = f"{names.ADDONS_GROUP}/last-handled-configuration"
#: Fields of an addon's spec that are read; the others are compared only.
_READ = ("paused", "targetNamespace")


def is_spec_handled(addon: Json) -> bool:
    """Whether the spec is the one that the addon provider has handled last."""
    return bool(
        json_object(conditions.object_annotations(addon).get(_HANDLED)).get("spec")
        == addon.get("spec")
    )


def without_long_specs(addon: Json) -> Json:
    """An addon for which :func:`is_spec_handled` is the same, without the two specs it compares.

    They have the templates of everything that the addon installs. The result of the comparison is
    kept as two short specs, which are equal if these are; fields that are read remain.
    """
    spec = addon.get("spec")
    if not isinstance(spec, dict) or _HANDLED not in conditions.object_annotations(addon):
        return addon
    short = {key: spec[key] for key in _READ if key in spec}
    handled = json.dumps({"spec": short if is_spec_handled(addon) else None})
    short_annotations = {**conditions.object_annotations(addon), _HANDLED: handled}
    metadata = {**conditions.metadata(addon), "annotations": short_annotations}
    return {**addon, "metadata": metadata, "spec": short}


def json_object(text: object) -> Json:
    """The JSON object in an annotation, an empty one for anything else."""
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    return conditions.mapping(value)
