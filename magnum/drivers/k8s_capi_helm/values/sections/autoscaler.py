# SPDX-License-Identifier: Apache-2.0
"""Values of the cluster autoscaler, which runs on the management cluster.

Its image, its limits and its rights are the operator's. No label and no field of Magnum's reaches
a key below ``autoscaler``; what older drivers have written there for a tenant goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from magnum.drivers.k8s_capi_helm.model import Json
from magnum.drivers.k8s_capi_helm.values.tree import merge

KEY = "autoscaler"
#: Keys of its image that say what runs; the third one, ``pullPolicy``, does not.
IMAGE_KEYS = ("repository", "tag")
#: Files of a chart that make it.
TEMPLATES = "templates/autoscaler"
#: With these a pod of the contract's charts is ``restricted`` by Kubernetes' Pod Security
#: Standards, and ends itself rather than the host. Charts from 1.3.0 on have them.
_GUARDS: Json = {
    "resources": {
        "requests": {"cpu": "20m", "memory": "128Mi"},
        "limits": {"cpu": "1", "memory": "1Gi"},
    },
    "podSecurityContext": {
        "runAsNonRoot": True,
        "runAsUser": 1001,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    },
}
_PREFIX = "imageRegistryPrefix"
#: How this project's charts 1.1.0 and 1.2.0 put the tenants' registry before the image.
_BEFORE_THE_IMAGE = (
    f"{{{{- with (.Values.global | default dict).{_PREFIX} -}}}}\n{{{{ . }}}}/\n{{{{- end -}}}}\n"
)


def with_image(values: Mapping[str, Any], image: Mapping[str, str], *, is_restricted: bool) -> Json:
    """The values of a release with the autoscaler as the operator has it.

    :param image: ``repository`` and ``tag``; what is left out is the chart's own.
    :param is_restricted: whether the chart restricts and limits the pod itself. If not, the values
        do; what an overlay has said of that stays.
    :returns: new values; those given are left alone.
    """
    current = values.get(KEY) or {}
    settings = {key: value for key, value in current.items() if key != "image"}
    deployed_image = current.get("image") or {}
    image_settings = {key: text for key, text in deployed_image.items() if key not in IMAGE_KEYS}
    autoscaler: Json = settings if is_restricted else merge.merge(_GUARDS, settings)
    if image_settings or image:
        autoscaler = {"image": {**image_settings, **image}, **autoscaler}
    others = {key: value for key, value in values.items() if key != KEY}
    return {**others, KEY: autoscaler} if autoscaler else others


def names_image(values: Mapping[str, Any]) -> bool:
    """Whether values say which image of the autoscaler runs."""
    return bool(((values.get(KEY) or {}).get("image") or {}).keys() & set(IMAGE_KEYS))


def has_prefix(values: Mapping[str, Any]) -> bool:
    """Whether values put a registry before the names of images."""
    return bool((values.get("global") or {}).get(_PREFIX))


def takes_prefix(template: str) -> bool:
    """Whether a template of the autoscaler takes its image from the registry of the tenants."""
    return _PREFIX in template


def without_prefix(template: str) -> str:
    """An autoscaler template without the tenants' registry prefix, for known templates."""
    return template.replace(_BEFORE_THE_IMAGE, "")
