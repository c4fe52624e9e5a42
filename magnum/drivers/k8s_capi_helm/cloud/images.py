# SPDX-License-Identifier: Apache-2.0
"""Glance's images, by name or id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from openstack import exceptions as sdk_exceptions
from oslo_utils import uuidutils

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.services import asking, Services
from magnum.drivers.k8s_capi_helm.model import Image

_GIBIBYTE = 1024**3


def images(services: Services, wanted: Iterable[str]) -> Mapping[str, Image]:
    """Images by the texts, names or ids, that they are asked for with; what is missing is left out.

    :raises errors.CloudRefused: several have a name.
    :raises errors.CloudUnreachable: Glance does not answer.
    """
    found = {}
    for name in sorted(set(wanted)):
        with asking("Glance", f"image '{name}'"):
            image = _find(services.glance(), name)
        if image is not None:
            found[name] = _read(image)
    return found


def _find(glance: Any, name: str) -> Any:
    """One request where the id or a visible name is right; the library's own way takes two more."""
    if uuidutils.is_uuid_like(name):
        try:
            return glance.get_image(name)
        except sdk_exceptions.NotFoundException:
            pass
    named = list(glance.images(name=name)) or list(glance.images(name=name, is_hidden=True))
    if len(named) > 1:
        raise errors.CloudRefused(
            f"Image '{name}' is not unique: {len(named)} have it. Use a cluster template that "
            "gives its id."
        )
    return named[0] if named else None


def _read(image: Any) -> Image:
    properties = image.to_dict()
    properties.update(properties.pop("properties", None) or {})
    size = max(properties.get("size") or 0, properties.get("virtual_size") or 0)
    return Image(
        id=str(image.id),
        kubernetes_version=str(properties.get("kube_version") or "").strip().lstrip("v"),
        os_distro=str(properties.get("os_distro") or ""),
        status=str(properties.get("status") or "active"),
        disk=max(properties.get("min_disk") or 0, -(-size // _GIBIBYTE)),
        ram=properties.get("min_ram") or 0,
    )
