# SPDX-License-Identifier: Apache-2.0
"""What is asked of OpenStack, and the credentials that are made there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import contextlib
from typing import Any

from openstack import exceptions as sdk_exceptions

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.belongings import Belongings
from magnum.drivers.k8s_capi_helm.cloud.services import asking, Clients, Services
from magnum.drivers.k8s_capi_helm.labels import Labels
from magnum.drivers.k8s_capi_helm.model import (
    ApplicationCredential,
    CloudFacts,
    ClusterRequest,
    Flavor,
    Image,
)


class Cloud:
    """The cloud as one person (or Magnum's service user) sees it."""

    def __init__(self, clients: Clients) -> None:
        self._services = Services(clients)
        self.belongings = Belongings(self._services)

    # Facts for a render ---------------------------------------------------------------------------
    def facts(self, request: ClusterRequest, *, interface: str = "public") -> CloudFacts:
        """Everything that one render needs to know, each thing asked for once.

        What the labels name is looked for too: Cluster API's OpenStack provider says little or
        nothing of a zone, network or load balancer provider that does not exist.

        :raises errors.CloudRefused: an image, flavor, network, zone or provider is not there.
        :raises errors.CloudUnreachable: a service does not answer.
        """
        image = self._image(request.image)
        self._check_labels(request)
        wanted = {request.control_plane.flavor, *(group.flavor for group in request.node_groups)}
        return CloudFacts(
            image_id=image.id,
            kubernetes_version=image.kubernetes_version,
            os_distro=image.os_distro,
            flavors=self.flavors(wanted),
            images=self.named_images(group.image for group in request.node_groups if group.image),
            auth_url=self.auth_url(interface),
            external_network_id=self._network(request.external_network, request, external=True),
            fixed_network_id=self._network(request.fixed_network, request),
            fixed_subnet_id=self._subnet(request.fixed_subnet, request),
            volume_types=self._volume_types(),
        )

    def software(self, request: ClusterRequest, *, interface: str = "public") -> CloudFacts:
        """What an upgrade needs to know: the image, and what the labels name.

        Flavors, networks and images of single nodegroups are not asked for: an upgrade leaves them
        as they are.

        :raises errors.CloudRefused: the image, or what a label names, is not there.
        :raises errors.CloudUnreachable: a service does not answer.
        """
        image = self._image(request.image)
        self._check_labels(request)
        groups = (request.control_plane, *request.node_groups)
        return CloudFacts(
            image_id=image.id,
            kubernetes_version=image.kubernetes_version,
            os_distro=image.os_distro,
            flavors={one.flavor: Flavor("", one.flavor, 0, 0, 0) for one in groups},
            auth_url=self.auth_url(interface),
            volume_types=self._volume_types(),
        )

    def flavors(self, wanted: Iterable[str]) -> Mapping[str, Flavor]:
        """Flavors by the texts, names or ids, that they are asked for with.

        :raises errors.CloudRefused: one of them is not there.
        :raises errors.CloudUnreachable: Nova does not answer.
        """
        found: dict[str, Flavor] = {}
        compute = self._services.nova()
        for name in sorted(set(wanted)):
            with asking("Nova", f"flavor '{name}'"):
                flavor = compute.find_flavor(name, ignore_missing=True)
            if flavor is None:
                raise errors.CloudRefused(
                    f"Flavor '{name}' does not exist or is not visible to this project. "
                    "Choose one that 'openstack flavor list' shows."
                )
            found[name] = Flavor(flavor.id, flavor.name, flavor.vcpus, flavor.ram, flavor.disk)
        return found

    def named_images(self, wanted: Iterable[str]) -> Mapping[str, Image]:
        """Images by the texts, names or ids, that they are asked for with.

        :raises errors.CloudRefused: one of them is not there.
        :raises errors.CloudUnreachable: Glance does not answer.
        """
        return {name: self._image(name) for name in sorted(set(wanted))}

    def auth_url(self, interface: str) -> str:
        """Keystone's v3 URL on one of its interfaces (``public``, ``internal``, ``admin``)."""
        with asking("Keystone", "its endpoint"):
            url = self._services.url_of("identity", interface)
        base = url.rstrip("/")
        return base if base.endswith("/v3") else f"{base}/v3"

    def _check_labels(self, request: ClusterRequest) -> None:
        """Refuse a cluster whose labels name what the cloud does not have."""
        labels = request.labels
        if labels.availability_zone:
            with asking("Nova", "the availability zones"):
                zones = {one.name for one in self._services.nova().availability_zones()}
            _choose("availability_zone", labels.availability_zone, zones)
        # The default is no wish: where it is not there, CAPO takes the cloud's own default, and
        # clouds have relied on that.
        if request.load_balancer and labels.octavia_provider != Labels().octavia_provider:
            with asking("Octavia", "the load balancer providers"):
                known = {one.name for one in self._services.octavia().providers()}
            _choose("octavia_provider", labels.octavia_provider, known)
        for name in labels.extra_network_names:
            self._network(name, request)

    def _image(self, name: str) -> Image:
        with asking("Glance", f"image '{name}'"):
            image = self._services.glance().find_image(name, ignore_missing=True)
        if image is None:
            raise errors.CloudRefused(
                f"Image '{name}' does not exist or is not visible to this project. "
                "Choose one that 'openstack image list' shows."
            )
        properties = image.to_dict()
        properties.update(properties.pop("properties", None) or {})
        version = str(properties.get("kube_version") or "").strip().lstrip("v")
        return Image(str(image.id), version, str(properties.get("os_distro") or ""))

    def _network(
        self, name: str | None, request: ClusterRequest, *, external: bool = False
    ) -> str | None:
        if not name:
            return None
        network = self._services.neutron()
        query: dict[str, Any] = {"is_router_external": True} if external else {}
        kind = "External network" if external else "Network"
        with asking("Neutron", f"network '{name}'"):
            by_id = list(network.networks(id=name, **query))
            found = by_id or list(network.networks(name=name, **query))
        return self._one(kind, name, found, request)

    def _subnet(self, name: str | None, request: ClusterRequest) -> str | None:
        if not name:
            return None
        network = self._services.neutron()
        with asking("Neutron", f"subnet '{name}'"):
            found = list(network.subnets(id=name)) or list(network.subnets(name=name))
        return self._one("Subnet", name, found, request)

    @staticmethod
    def _one(kind: str, name: str, found: list[Any], request: ClusterRequest) -> str:
        """The one of that name; the project's own wins over one that is merely visible."""
        own = [item for item in found if item.project_id == request.project_id] or found
        if len(own) == 1:
            return str(own[0].id)
        if not own:
            raise errors.CloudRefused(
                f"{kind} '{name}' does not exist. Give the name or id of one."
            )
        raise errors.CloudRefused(
            f"{kind} '{name}' is not unique: {len(own)} have it. Give its id."
        )

    def _volume_types(self) -> tuple[str, ...]:
        with asking("Cinder", "volume types"):
            return tuple(kind.name for kind in self._services.cinder().types())

    # Application credentials ----------------------------------------------------------------------
    def create_credential(
        self, user_id: str, name: str, description: str, roles: Sequence[str]
    ) -> ApplicationCredential:
        """A new application credential of the person whose request this is, with some of its roles.

        It is restricted: it can make no further credentials.

        Keystone gives one only to the user itself, so this works inside the user's request and
        nowhere else (https://docs.openstack.org/keystone/latest/user/application_credentials.html).

        :raises errors.CloudRefused: Keystone does not give one, e.g. because the request itself
            came with an application credential.
        """
        keystone = self._services.keystone()
        try:
            with asking("Keystone", f"application credential '{name}'"):
                made = keystone.client.create_application_credential(
                    user=user_id,
                    name=name,
                    description=description,
                    roles=[{"name": role} for role in roles],
                    unrestricted=False,
                )
        except errors.CloudRefused as error:
            raise errors.CloudRefused(
                f"{error} If you have logged in with an application credential yourself, log in "
                "with your password, and send the request again.",
                error.detail,
            ) from error
        return ApplicationCredential(made.id, made.secret, made.name)

    def delete_credential(self, user_id: str, credential_id: str) -> None:
        """Delete an application credential; one that is gone already is success."""
        keystone = self._services.keystone()
        with asking("Keystone", f"application credential '{credential_id}'"):
            with contextlib.suppress(sdk_exceptions.NotFoundException):
                keystone.client.delete_application_credential(
                    user_id, credential_id, ignore_missing=True
                )

    # Faults ---------------------------------------------------------------------------------------
    def server_faults(self, server_ids: Iterable[str]) -> Mapping[str, str]:
        """Nova's own words on servers in ERROR, by id; servers that are gone are left out."""
        compute, found = self._services.nova(), {}
        for server_id in server_ids:
            with asking("Nova", f"server '{server_id}'"):
                try:
                    server = compute.get_server(server_id)
                except sdk_exceptions.NotFoundException:
                    continue
            message = ((server.fault or {}).get("message") or "").strip()
            if message:
                found[server_id] = message
        return found


def _choose(label: str, value: str, known: set[str]) -> None:
    if value not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise errors.CloudRefused(
            f"Label '{label}' has the value '{value}', which this cloud does not have. "
            f"It has: {listed}."
        )
