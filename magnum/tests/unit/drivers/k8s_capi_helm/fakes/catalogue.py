# SPDX-License-Identifier: Apache-2.0
"""Glance, Nova, Neutron and Cinder as far as requests name something there, for one viewer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence
import hashlib
import pathlib
import types
from typing import Any
import uuid

from openstack import exceptions
from openstack import exceptions as sdk_exceptions
from openstack.block_storage.v3 import type as volume_type
from openstack.compute.v2 import flavor
from openstack.image.v2 import image, member
from openstack.network.v2 import network, rbac_policy, subnet

from magnum.tests.unit.drivers.k8s_capi_helm.fakes.views import Json, Things, Viewer


class FakeCatalogue:
    """Clients of a viewer, with the resources that openstacksdk makes of the APIs' JSON.

    :param asked: gets the project of who asks, and what it was about, of every question.
    :param save_image: gets an image that is created or changed, as the API's JSON.
    :param addresses: answers questions about floating IPs.
    """

    def __init__(
        self,
        things: Things,
        viewer: Viewer,
        asked: MutableSequence[str],
        *,
        auth_url: str,
        keypairs: tuple[str, ...] = (),
        addresses: Callable[..., Iterable[Any]] = lambda **query: (),
        save_image: Callable[[Json], None] = lambda image: None,
    ) -> None:
        self._things, self._viewer = things, viewer
        self._auth_url, self._keypairs = auth_url, keypairs
        self._asked = asked
        self._addresses = addresses
        self._save_image = save_image
        self._session = types.SimpleNamespace(timeout=None)

    def keystone(self) -> Any:
        return types.SimpleNamespace(session=self._session)

    def identity_url(self, interface: str) -> str:
        return self._auth_url

    def region(self) -> str | None:
        return None

    def glance(self) -> Any:
        return types.SimpleNamespace(
            get_image=self._get_image,
            images=self._images,
            members=self._members,
            create_image=self._create_image,
            update_image=self._update_image,
        )

    def nova(self) -> Any:
        return types.SimpleNamespace(
            flavors=self._flavors,
            get_flavor_access=lambda one: self._access("tenant_id", one),
            availability_zones=lambda: (),
            get_keypair=self._keypair,
        )

    def neutron(self) -> Any:
        return types.SimpleNamespace(
            networks=lambda **query: self._listed("networks", network.Network, query),
            subnets=lambda **query: self._listed("subnets", subnet.Subnet, query),
            get_network=lambda one: self._one("networks", network.Network, one),
            get_subnet=lambda one: self._one("subnets", subnet.Subnet, one),
            rbac_policies=lambda **query: self._listed("rbac", rbac_policy.RBACPolicy, query),
            ips=self._addresses,
        )

    def cinder(self) -> Any:
        return types.SimpleNamespace(
            types=self._types,
            get_type_access=lambda one: self._access("project_id", one),
            availability_zones=lambda: (),
        )

    def octavia(self) -> Any:
        nothing = tuple[Any, ...]
        return types.SimpleNamespace(providers=nothing, flavors=nothing, availability_zones=nothing)

    def _ask(self, what: str) -> None:
        self._asked.append(f"{self._viewer.project}: {what}")

    def _get_image(self, image_id: str) -> Any:
        self._ask(f"image {image_id}")
        found = self._things.image(self._viewer, image_id)
        if found is None:
            raise sdk_exceptions.NotFoundException("no such image", http_status=404)
        return image.Image.existing(**found)

    def _images(self, *, is_hidden: bool = False, **query: str) -> Iterator[Any]:
        self._ask(f"images {query.get('name')}")
        wanted = {**query, "os_hidden": str(is_hidden)}
        for one in self._things.listed_images(self._viewer, wanted):
            yield image.Image.existing(**one)

    def _create_image(
        self,
        name: str,
        *,
        filename: str,
        meta: Mapping[str, Any],
        allow_duplicates: bool,
        wait: bool,
        **fields: Any,
    ) -> Any:
        """As openstacksdk does; Glance hashes what is uploaded."""
        self._ask(f"create image {name}")
        data = pathlib.Path(filename).read_bytes()
        created = {
            "id": str(uuid.uuid4()),
            "name": name,
            "status": "active",
            "size": len(data),
            "os_hash_algo": "sha512",
            "os_hash_value": hashlib.sha512(data).hexdigest(),
            **_json({**fields, **meta}),
        }
        self._save_image(created)
        return image.Image.existing(**created)

    def _update_image(self, image_id: str, **fields: Any) -> Any:
        self._ask(f"update image {image_id}")
        changed = {**(self._things.image(self._viewer, image_id) or {}), **_json(fields)}
        self._save_image(changed)
        return image.Image.existing(**changed)

    def _members(self, image_id: str) -> Iterator[Any]:
        self._ask(f"members {image_id}")
        for one in self._things.listed_members(self._viewer, image_id) or ():
            yield member.Member.existing(**one)

    def _flavors(self, *, is_public: str | None = None) -> Iterator[Any]:
        self._ask("flavors")
        for one in self._things.listed_flavors(self._viewer, is_public):
            yield flavor.Flavor.existing(**one)

    def _types(self, *, is_public: str | None = None) -> Iterator[Any]:
        self._ask("types")
        for one in self._things.listed_types(self._viewer, is_public):
            yield volume_type.Type.existing(**one)

    def _access(self, key: str, one: Any) -> list[Json]:
        self._ask(f"access {getattr(one, 'id', one)}")
        listed = self._things.access.get(getattr(one, "id", one), ())
        return [{key: project} for project in listed]

    def _keypair(self, name: str) -> Any:
        if name not in self._keypairs:
            raise sdk_exceptions.NotFoundException("no such keypair", http_status=404)
        return types.SimpleNamespace(name=name)

    def _one(self, kind: str, resource: Any, obj_id: str) -> Any:
        """Network or subnet with an id, as the person sees it."""
        for found in self._listed(kind, resource, {"id": obj_id}):
            return found
        raise exceptions.NotFoundException(f"No {kind} {obj_id}")

    def _listed(self, kind: str, resource: Any, query: dict[str, Any]) -> Iterator[Any]:
        self._ask(f"{kind} {query}")
        wanted = {
            key: list(values) if isinstance(values, (list, tuple)) else [values]
            for key, values in query.items()
        }
        found = getattr(self._things, f"listed_{kind}")(self._viewer, wanted)
        yield from (resource.existing(**one) for one in found)


def _json(fields: Mapping[str, Any]) -> Json:
    """Fields of openstacksdk as the API has them."""
    return {"os_hidden" if name == "is_hidden" else name: value for name, value in fields.items()}
