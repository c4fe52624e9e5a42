# SPDX-License-Identifier: Apache-2.0
"""A cloud for whole requests: the real port over services in memory, for a member and for Magnum.

What a test sets is in the project of the tests. A neighbour, whom nobody asked for, has the same
names for all of it, and Magnum's service user sees that as well.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable
import copy
import dataclasses
from typing import Any
import uuid

from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.cloud.access.services import Services
from magnum.drivers.k8s_capi_helm.cloud.catalogue.image_catalogue import ImageCatalogue
from magnum.drivers.k8s_capi_helm.cloud.resources.cluster_resources import ClusterResources
from magnum.drivers.k8s_capi_helm.cloud.resources.orphans import Orphans
from magnum.drivers.k8s_capi_helm.model import (
    ApplicationCredential,
    CloudCapability,
    CloudFacts,
    Flavor,
    Image,
    NOTHING,
    Quota,
    QuotaKey,
    ResolvedNames,
)
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.catalogue import FakeCatalogue
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.openstack import FakeOpenStack
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.views import (
    KINDS,
    OPERATOR,
    SERVICE,
    Things,
    Viewer,
)

SECRET_TEXT = "the-secret-of-the-credential"  # noqa: S105 - of a fake


def network_id(name: str) -> str:
    """Neutron's ids are UUIDs, and are asked for as such."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.networks.example.org"))


class FakeCloud:
    """OpenStack in memory, with Cloud's methods; ``refusal`` is raised by every question.

    :ivar viewer: who asks; :meth:`seen_by` gives the same cloud as somebody else sees it.
    :ivar neighbours: what a neighbour has under the same names, of :data:`views.KINDS`.
    :ivar asked: what was looked for, whoever asked; the newest of it.
    """

    def __init__(self) -> None:
        self.viewer = Viewer()
        self.neighbours: tuple[str, ...] = KINDS
        self.asked: collections.deque[str] = collections.deque(maxlen=1000)
        self.refusal: Exception | None = None
        #: The region that clusters are in.
        self.home: str | None = "RegionOne"
        self.credentials: dict[str, str] = {}
        #: Roles by id of every credential that there ever was.
        self.roles: dict[str, list[str]] = {}
        self.distro = "ubuntu"
        #: Id and Kubernetes version by name of the image.
        self.images = {"ubuntu-kube": ("image-1", builders.VERSION)}
        #: Distribution by name of the image, where it is another.
        self.distros: dict[str, str] = {}
        #: Fields and properties by name of the image, where they are others.
        self.image_fields: dict[str, dict[str, Any]] = {}
        #: Names of images that are hidden.
        self.hidden: tuple[str, ...] = ()
        self.volume_types: tuple[str, ...] = ("fast",)
        #: Id and size by name of the flavor.
        self.flavor_sizes: dict[str, dict[str, Any]] = {
            name: {"id": f"id-{name}", "vcpus": 2, "ram": 4096, "disk": 20}
            for name in ("small", "large")
        }
        #: Id of the external network, and the others by name.
        self.external = "net-1"
        self.networks: dict[str, str] = {
            name: network_id(name) for name in ("other", "dual", "san", "storage", "backup")
        }
        self.faults: dict[str, str] = {}
        #: Why a service gives no answer, by its name.
        self.service_problems: dict[str, Exception] = {}
        self.failed_balancers: set[tuple[str, str]] = set()
        #: What the driver makes in the project, by the real port over proxies in memory.
        self.openstack = FakeOpenStack()
        #: What goes between the port and the proxies; tests may watch there.
        self.between: Callable[[Any], Any] = lambda clients: clients
        #: Ids of credentials that Keystone accepts no more.
        self.dead: set[str] = set()
        #: When credentials end, by id; and why Keystone does not tell.
        self.ends: dict[str, Any] = {}
        self.ends_refusal: Exception | None = None
        self.keypairs: tuple[str, ...] = ("mine",)
        self.limits: dict[QuotaKey, Quota] = {}
        #: Flavors that are not there.
        self.gone: tuple[str, ...] = ()

    def seen_by(self, context: Any) -> FakeCloud:
        """The same cloud as the person, or the service user, of a context sees it."""
        other = copy.copy(self)
        other.viewer = SERVICE if context.is_admin else Viewer(context.project_id)
        return other

    @property
    def belongings(self) -> ClusterResources:
        return ClusterResources(self._made())

    @property
    def remains(self) -> Orphans:
        return Orphans(self._made())

    @property
    def image_catalogue(self) -> ImageCatalogue:
        return self._port().image_catalogue

    def _made(self) -> Services:
        clients = self.openstack.seen_by(self.viewer) if self.viewer.everything else self.openstack
        return Services(self.between(clients), is_admin=self.viewer.everything)

    # What is there --------------------------------------------------------------------------------
    def things(self) -> Things:
        """Everything that a request can name, of all projects."""
        found = Things(
            images=[self._image(name, *one) for name, one in self.images.items()],
            flavors=[
                {"name": name, **size}
                for name, size in self.flavor_sizes.items()
                if name not in self.gone
            ],
            volume_types=[{"id": f"t-{name}", "name": name} for name in self.volume_types],
            networks=[
                self._network("public", self.external, OPERATOR, external=True),
                *(self._network(name, one, "p1") for name, one in self.networks.items()),
            ],
            rbac=[
                {
                    "object_id": self.external,
                    "action": "access_as_external",
                    "target_tenant": "*",
                }
            ],
        )
        if self.neighbours:
            found.add_neighbour(self.neighbours)
        return found

    def _image(self, name: str, image_id: str, version: str) -> dict[str, Any]:
        return {
            "id": image_id,
            "name": name,
            "owner": OPERATOR,
            "visibility": "public",
            "os_hidden": name in self.hidden,
            "status": "active",
            "kube_version": version,
            "os_distro": self.distros.get(name, self.distro),
            **self.image_fields.get(name, {}),
        }

    def _save_image(self, image: dict[str, Any]) -> None:
        name = image["name"]
        self.images[name] = (image["id"], image.get("kube_version", ""))
        self.image_fields[name] = image

    @staticmethod
    def _network(name: str, one: str, project: str, *, external: bool = False) -> dict[str, Any]:
        return {
            "id": one,
            "name": name,
            "project_id": project,
            "router:external": external,
            "subnets": [f"sub-of-{one}"],
        }

    # What is asked --------------------------------------------------------------------------------
    def _port(self) -> Cloud:
        if self.refusal:
            raise self.refusal
        clients = FakeCatalogue(
            self.things(),
            self.viewer,
            self.asked,
            auth_url="http://keystone/v3",
            keypairs=self.keypairs,
            addresses=self.openstack.neutron().ips,
            save_image=self._save_image,
        )
        return Cloud(Services(clients, is_admin=self.viewer.everything))

    def facts(
        self,
        request: Any,
        *,
        interface: str = "public",
        new: bool = False,
        lookup: ResolvedNames = NOTHING,
    ) -> CloudFacts:
        found = self._port().facts(request, interface=interface, new=new, lookup=lookup)
        return self._of_types_only(found)

    def software(
        self, request: Any, *, interface: str = "public", lookup: ResolvedNames = NOTHING
    ) -> CloudFacts:
        found = self._port().software(request, interface=interface, lookup=lookup)
        return self._of_types_only(found)

    def nodegroup_facts(
        self, request: Any, nodegroup: Any, *, lookup: ResolvedNames = NOTHING
    ) -> CloudFacts:
        return self._of_types_only(self._port().nodegroup_facts(request, nodegroup, lookup=lookup))

    @staticmethod
    def _of_types_only(found: CloudFacts) -> CloudFacts:
        """Zones and load balancers are nobody's question here."""
        types = {
            key: known
            for key, known in found.capabilities.items()
            if key is CloudCapability.VOLUME_TYPE
        }
        return dataclasses.replace(found, capabilities=types)

    def existing_flavors(self, project_id: str, references: Iterable[str]) -> dict[str, Flavor]:
        return dict(self._port().existing_flavors(project_id, references))

    def flavors(self, project_id: str, references: Iterable[str]) -> dict[str, Flavor]:
        return dict(self._port().flavors(project_id, references))

    def named_images(self, project_id: str, references: Iterable[str]) -> dict[str, Image]:
        return dict(self._port().named_images(project_id, references))

    def extra_networks(self, project_id: str, wanted: Iterable[str]) -> dict[str, str]:
        return dict(self._port().extra_networks(project_id, wanted))

    def quotas(self, project_id: str, more: Any) -> dict[QuotaKey, Quota]:
        return {key: quota for key, quota in self.limits.items() if key in more}

    def has_keypair(self, name: str) -> bool:
        return name in self.keypairs

    def auth_url(self, interface: str) -> str:
        return "http://keystone/v3"

    def service_errors(self) -> Any:
        for service, error in self._port().service_errors():
            yield service, self.service_problems.get(service, error)

    # Credentials and faults -----------------------------------------------------------------------
    def region(self) -> str | None:
        return self.home

    def create_credential(
        self, user_id: str, name: str, text: str, roles: Any
    ) -> ApplicationCredential:
        if self.refusal:
            raise self.refusal
        self.credentials[f"id-{name}"] = user_id
        self.roles[f"id-{name}"] = list(roles)
        return ApplicationCredential(f"id-{name}", SECRET_TEXT, name)

    def delete_credential(self, user_id: str, credential_id: str) -> None:
        self.credentials.pop(credential_id, None)

    def credential_names(self, user_id: str, project_id: str) -> dict[str, str]:
        mine = (one for one, user in self.credentials.items() if user == user_id)
        return {one: one.removeprefix("id-") for one in mine}

    def credential_expiries(self, user_id: str, project_id: str) -> dict[str, Any]:
        if self.ends_refusal:
            raise self.ends_refusal
        return {one: self.ends.get(one) for one in self.credential_names(user_id, project_id)}

    def accepts(self, credential: ApplicationCredential) -> bool:
        if self.refusal:
            raise self.refusal
        return credential.id in self.credentials and credential.id not in self.dead

    def is_balancer_failed(self, name: str, project_id: str) -> bool:
        return (name, project_id) in self.failed_balancers

    def server_faults(self, server_ids: Any) -> dict[str, str]:
        return {one: self.faults[one] for one in server_ids if one in self.faults}
