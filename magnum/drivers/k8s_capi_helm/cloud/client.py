# SPDX-License-Identifier: Apache-2.0
"""The OpenStack client of the driver: queries, and creation of credentials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import datetime

from openstack import exceptions as sdk_exceptions

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.access import service_check
from magnum.drivers.k8s_capi_helm.cloud.access.services import Services, translate_errors
from magnum.drivers.k8s_capi_helm.cloud.catalogue import capabilities, images, networks, quotas
from magnum.drivers.k8s_capi_helm.cloud.catalogue import compute as cloud_compute
from magnum.drivers.k8s_capi_helm.cloud.catalogue import facts as cloud_facts
from magnum.drivers.k8s_capi_helm.cloud.catalogue.image_catalogue import ImageCatalogue
from magnum.drivers.k8s_capi_helm.cloud.preflight import message as preflight_message
from magnum.drivers.k8s_capi_helm.cloud.preflight import networks as preflight_networks
from magnum.drivers.k8s_capi_helm.cloud.resources.app_credentials import (
    credential_expiries,
    credential_names,
    is_valid,
)
from magnum.drivers.k8s_capi_helm.cloud.resources.cluster_resources import ClusterResources
from magnum.drivers.k8s_capi_helm.cloud.resources.orphans import Orphans
from magnum.drivers.k8s_capi_helm.model import (
    ApplicationCredential,
    CloudFacts,
    ClusterRequest,
    Flavor,
    Image,
    NodeGroupRequest,
    NOTHING,
    Quota,
    QuotaKey,
    ResolvedNames,
)


class Cloud:
    """The cloud as one person (or Magnum's service user) sees it.

    What a request names is what a member of its project finds under that name, whoever asks.

    :param services: the OpenStack services as this person sees them.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self.belongings = ClusterResources(self._services)
        self.remains = Orphans(self._services)
        self.image_catalogue = ImageCatalogue(self._services)

    # Facts for a render ---------------------------------------------------------------------------
    def facts(
        self,
        request: ClusterRequest,
        *,
        interface: str = "public",
        new: bool = False,
        lookup: ResolvedNames = NOTHING,
    ) -> CloudFacts:
        """Everything that one render needs to know, each thing asked for once.

        What the labels name is looked for too: Cluster API's OpenStack provider says little or
        nothing of a zone, network or load balancer provider that does not exist. What is missing
        is missing in the facts, so that :func:`preflight.problems` tells all of it at once.

        :param new: the cluster is being made and its user asks, so that the keypair, which belongs
            to the user, is looked for as well, and the floating IP, which has to be free.
        :param lookup: what names stood for when they were looked up; these are not looked
            for again.
        :raises errors.CloudRefused: Glance or Nova says no to a plain question.
        :raises errors.CloudUnreachable: a service does not answer.
        """
        refused: list[str] = []
        facts = cloud_facts.of_cluster(self._services, request, lookup, refused)
        facts = dataclasses.replace(facts, auth_url=self.auth_url(interface))
        if new and request.keypair:
            has_keypair = cloud_facts.answer_or_refusal(
                refused, cloud_compute.has_keypair, self._services, request.keypair
            )
            facts = dataclasses.replace(facts, has_keypair=has_keypair)
        if new and (address := request.labels.api_server_floating_ip):
            floating_ips = cloud_facts.answer_or_refusal(
                refused, networks.floating_ips, self._services, address
            )
            facts = dataclasses.replace(facts, floating_ips=floating_ips)
        return dataclasses.replace(facts, refusals=tuple(refused))

    def has_keypair(self, name: str) -> bool:
        """Whether the requesting user has a keypair of that name; keypairs belong to users.

        :raises errors.CloudRefused: Nova says no.
        :raises errors.CloudUnreachable: Nova does not answer.
        """
        return cloud_compute.has_keypair(self._services, name)

    def software(
        self,
        request: ClusterRequest,
        *,
        interface: str = "public",
        lookup: ResolvedNames = NOTHING,
    ) -> CloudFacts:
        """What an upgrade needs to know: the image, and what the labels name.

        Flavors, networks and images of single nodegroups are not asked for: an upgrade leaves them
        as they are.

        :param lookup: as of :meth:`facts`.
        :raises errors.CloudRefused: Glance says no.
        :raises errors.CloudUnreachable: a service does not answer.
        """
        refused: list[str] = []
        facts = cloud_facts.of_software(self._services, request, lookup, refused)
        url = self.auth_url(interface)
        return dataclasses.replace(facts, auth_url=url, refusals=tuple(refused))

    def nodegroup_facts(
        self,
        request: ClusterRequest,
        nodegroup: NodeGroupRequest,
        *,
        lookup: ResolvedNames = NOTHING,
    ) -> CloudFacts:
        """What is to be known of a new nodegroup of a running cluster: what it has of its own.

        :param lookup: the networks that the cluster has had under some names since it was
            made.
        :raises errors.CloudRefused: Glance or Nova says no.
        :raises errors.CloudUnreachable: a service does not answer.
        """
        refused: list[str] = []
        facts = cloud_facts.of_new_nodegroup(self._services, request, nodegroup, lookup, refused)
        return dataclasses.replace(facts, refusals=tuple(refused))

    def flavors(self, project_id: str, references: Iterable[str]) -> Mapping[str, Flavor]:
        """Flavors that a project can use by the texts, names or ids, that they are asked for with.

        :raises errors.CloudRefused: one of them is not there.
        :raises errors.CloudUnreachable: Nova does not answer.
        """
        texts = sorted(set(references))
        return capabilities.complete(
            "flavor", texts, cloud_compute.flavors(self._services, texts, project_id)
        )

    def named_images(self, project_id: str, references: Iterable[str]) -> Mapping[str, Image]:
        """Images that a project sees by the texts, names or ids, that they are asked for with.

        :raises errors.CloudRefused: one of them is not there.
        :raises errors.CloudUnreachable: Glance does not answer.
        """
        texts = sorted(set(references))
        return capabilities.complete(
            "image", texts, images.images(self._services, texts, project_id)
        )

    def extra_networks(self, project_id: str, references: Iterable[str]) -> Mapping[str, str]:
        """Ids of the networks that a project means by the texts of a label.

        :raises errors.DoesNotFit: one of them is not there, or there are several.
        :raises errors.DriverError: Neutron cannot be asked.
        """
        texts = {reference: reference for reference in references}
        visible = networks.networks(self._services, texts, project_id)
        network_ids = preflight_networks.matches(texts, visible, project_id)
        preflight_message.refuse(
            list(preflight_networks.extra_network_problems(texts, network_ids))
        )
        return {text: network_id for text, (network_id,) in (network_ids or {}).items()}

    def existing_flavors(self, project_id: str, references: Iterable[str]) -> Mapping[str, Flavor]:
        """Flavors as :meth:`flavors`, without those that are not there.

        :raises errors.DriverError: Nova cannot be asked.
        """
        return cloud_compute.flavors(self._services, references, project_id)

    def quotas(self, project_id: str, usage: Mapping[QuotaKey, int]) -> Mapping[QuotaKey, Quota]:
        """Those quotas of the project of which something more is needed.

        Nothing is raised: a quota that cannot be read is left out and logged.
        """
        return quotas.quotas(self._services, project_id, usage)

    def auth_url(self, interface: str) -> str:
        """Keystone's v3 URL on one of its interfaces (``public``, ``internal``, ``admin``).

        :raises errors.InvalidConfiguration: options and catalogue leave it open.
        """
        with translate_errors("Keystone", "its endpoint"):
            url = self._services.identity_url(interface)
        base = url.rstrip("/")
        return base if base.endswith("/v3") else f"{base}/v3"

    def region(self) -> str | None:
        """The region that clusters are in, None in a cloud without regions.

        :raises errors.InvalidConfiguration: options and catalogue leave it open.
        """
        with translate_errors("Keystone", "its catalogue"):
            return self._services.region()

    def service_errors(self) -> Iterator[tuple[str, errors.DriverError | None]]:
        """What keeps each service that clusters need from an answer, None where it gives one."""
        return service_check.service_errors(self._services)

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
            with translate_errors("Keystone", f"application credential '{name}'"):
                credential = keystone.client.create_application_credential(
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
        return ApplicationCredential(credential.id, credential.secret, credential.name)

    def delete_credential(self, user_id: str, credential_id: str) -> None:
        """Delete an application credential; one that is gone already is success."""
        keystone = self._services.keystone()
        with translate_errors("Keystone", f"application credential '{credential_id}'"):
            with contextlib.suppress(sdk_exceptions.NotFoundException):
                keystone.client.delete_application_credential(
                    user_id, credential_id, ignore_missing=True
                )

    def credential_names(self, user_id: str, project_id: str) -> Mapping[str, str]:
        """Names of a user's application credentials in a project, by id; none of one who is gone.

        :raises errors.DriverError: Keystone does not tell this person, or does not answer.
        """
        return credential_names(self._services, user_id, project_id)

    def credential_expiries(
        self, user_id: str, project_id: str
    ) -> Mapping[str, datetime.datetime | None]:
        """When a user's application credentials in a project end, None for never, by id.

        :raises errors.DriverError: Keystone does not tell this person, or does not answer.
        """
        return credential_expiries(self._services, user_id, project_id)

    def accepts(self, credential: ApplicationCredential) -> bool:
        """Whether Keystone lets an application credential in; who else asks makes no difference.

        :raises errors.CloudUnreachable: Keystone does not answer.
        """
        return is_valid(self._services, credential)

    # Faults ---------------------------------------------------------------------------------------
    def server_faults(self, server_ids: Iterable[str]) -> Mapping[str, str]:
        """Nova's own words on servers in ERROR, by id; servers that are gone are left out."""
        compute, faults = self._services.nova(), {}
        for server_id in server_ids:
            with translate_errors("Nova", f"server '{server_id}'"):
                try:
                    server = compute.get_server(server_id)
                except sdk_exceptions.NotFoundException:
                    continue
                message = ((server.fault or {}).get("message") or "").strip()
            if message:
                faults[server_id] = message
        return faults

    def is_balancer_failed(self, name: str, project_id: str) -> bool:
        """Whether Octavia has a project's load balancer of that name in ERROR.

        :raises errors.DriverError: Octavia cannot be asked.
        """
        return self.remains.is_balancer_failed(name, project_id)
