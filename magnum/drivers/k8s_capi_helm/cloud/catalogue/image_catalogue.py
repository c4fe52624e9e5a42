# SPDX-License-Identifier: Apache-2.0
"""The images of a cloud, as its operator sees and offers them: list, create and change them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import pathlib
from typing import Any

from magnum.drivers.k8s_capi_helm.cloud.access.services import list_all, Services, translate_errors
from magnum.drivers.k8s_capi_helm.cloud.catalogue.images import read_image
from magnum.drivers.k8s_capi_helm.model import ListedImage

#: Fields of an image that are no properties
#: (https://docs.openstack.org/api-ref/image/v2/#show-image).
_FIELDS = frozenset(
    """
    checksum container_format created_at direct_url disk_format file id is_hidden locations location
    min_disk min_ram name os_hash_algo os_hash_value os_hidden owner owner_id properties protected
    schema self size status stores tags updated_at virtual_size visibility
    """.split()
)
_SHA512 = "sha512"


class ImageCatalogue:
    """The images of all projects, as Magnum's service user sees them.

    :param services: the OpenStack services as this person sees them.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    def list_all(self) -> list[ListedImage]:
        """All images, hidden ones after the others.

        :raises errors.DriverError: Glance cannot be asked.
        """
        glance = self._services.glance()
        # Images of the community are listed for those only who ask for all.
        shown = list_all("Glance", "images", lambda: glance.images(visibility="all"))
        hidden = list_all(
            "Glance", "hidden images", lambda: glance.images(visibility="all", is_hidden=True)
        )
        return [*map(_listed, shown), *map(_listed, hidden)]

    def create(self, name: str, path: pathlib.Path, fields: Mapping[str, Any]) -> str:
        """Create an image and upload its data; returns its id.

        Glance deletes nothing by itself where an upload breaks off: openstacksdk does then.

        :param fields: further fields of the image, and its properties.
        :raises errors.DriverError: Glance refuses, or does not answer.
        """
        # openstacksdk makes texts of everything but of this, and Glance wants a boolean here.
        meta = {"is_hidden": fields.get("is_hidden", False)}
        others = {field: value for field, value in fields.items() if field not in meta}
        with translate_errors("Glance", f"image '{name}'"):
            image = self._services.glance().create_image(
                name, filename=str(path), allow_duplicates=True, wait=True, meta=meta, **others
            )
            return str(image.id)

    def change(self, image_id: str, fields: Mapping[str, Any]) -> None:
        """Change fields and properties of an image; what is not named stays.

        :raises errors.DriverError: Glance refuses, or does not answer.
        """
        with translate_errors("Glance", f"image '{image_id}'"):
            # By its id: openstacksdk would patch away what only answers have, such as "stores".
            self._services.glance().update_image(image_id, **fields)


def _listed(image: Any) -> ListedImage:
    fields = image.to_dict(original_names=True)
    is_sha512 = fields.get("os_hash_algo") == _SHA512
    return ListedImage(
        image=read_image(image),
        name=str(fields.get("name") or ""),
        project_id=str(fields.get("owner") or ""),
        visibility=str(fields.get("visibility") or "private"),
        hidden=bool(fields.get("os_hidden")),
        min_disk=int(fields.get("min_disk") or 0),
        data_hash=str(fields.get("os_hash_value") or "") if is_sha512 else "",
        properties=dict(_properties({**fields, **(fields.get("properties") or {})}.items())),
    )


def _properties(items: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, str]]:
    for key, value in items:
        if key not in _FIELDS and value is not None:
            # Glance has texts only, of which openstacksdk reads some as booleans.
            yield key, str(value).lower() if isinstance(value, bool) else str(value)
