# SPDX-License-Identifier: Apache-2.0
"""Find Glance images by name or id, as a member of the project sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from openstack import exceptions as sdk_exceptions
from oslo_utils import uuidutils

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.access.services import Services, translate_errors
from magnum.drivers.k8s_capi_helm.cloud.catalogue import visibility
from magnum.drivers.k8s_capi_helm.model import Image

_GIBIBYTE = 1024**3


def images(services: Services, references: Iterable[str], project_id: str) -> Mapping[str, Image]:
    """Images by the texts, names or ids, that they are asked for with; what is missing is left out.

    :param project_id: whose request it is; what it cannot see is missing, whoever asks.
    :raises errors.CloudRefused: several have a name.
    :raises errors.CloudUnreachable: Glance does not answer.
    """
    resolved = {}
    for name in sorted(set(references)):
        with translate_errors("Glance", f"image '{name}'"):
            image = _find(services, name, project_id)
            if image is not None:
                resolved[name] = read_image(image)
    return resolved


def _find(services: Services, name: str, project_id: str) -> Any:
    """One request where the id or a visible name is right; the library's own way takes two more."""
    if uuidutils.is_uuid_like(name):
        try:
            image = services.glance().get_image(name)
        except sdk_exceptions.NotFoundException:
            pass
        else:
            if visibility.shows_image(services, image, project_id):
                return image
    matches = _named(services, project_id, name=name)
    matches = matches or _named(services, project_id, name=name, is_hidden=True)
    if len(matches) > 1:
        ids = ", ".join(sorted(str(image_of_name.id) for image_of_name in matches))
        raise errors.CloudRefused(
            f"The name of the image is not unique. {len(matches)} images are named '{name}' "
            f"({ids}). Use a cluster template that gives the id."
        )
    return matches[0] if matches else None


def _named(services: Services, project_id: str, **query: Any) -> list[Any]:
    if not services.is_admin:
        return list(services.glance().images(**query))
    # Of the project's own images, those for the community are only shown to who asks for all.
    visible = services.glance().images(visibility="all", **query)
    return [image for image in visible if visibility.lists_image(services, image, project_id)]


def read_image(image: Any) -> Image:
    """What the driver reads of an image.

    :param image: as openstacksdk has it.
    """
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
