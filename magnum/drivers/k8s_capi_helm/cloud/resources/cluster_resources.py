# SPDX-License-Identifier: Apache-2.0
"""Cloud resources that the driver creates in the tenant's project, found by name.

Nothing is written down anywhere: a conductor that dies between two requests leaves nothing that a
later one does not find. What is made, is made with the tenant's own token, and so in the tenant's
project and within its quotas; Magnum's service user, who can see all projects, takes it away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from openstack import exceptions as sdk_exceptions

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.access.services import (
    list_all,
    list_of_project,
    not_deleted,
    Services,
    translate_errors,
)
from magnum.drivers.k8s_capi_helm.model import Json, names

#: Since when Nova says whose a server group is.
_WITH_PROJECT = "2.13"


class ClusterResources:
    """Server groups and floating IPs of clusters."""

    def __init__(self, services: Services) -> None:
        self._services = services

    # Server groups (Nova) -------------------------------------------------------------------------
    def make_server_groups(self, release: str, policies: Mapping[str, str]) -> dict[str, str]:
        """Create a server group for each nodegroup, in the requesting user's project.

        One that is there already, because an earlier attempt has made it, is taken.

        :param policies: Nova's policy by name of the nodegroup.
        :returns: ids by name of the nodegroup.
        :raises errors.CloudRefused: Nova does not make one, e.g. because of a quota.
        :raises errors.CloudUnreachable: Nova does not answer.
        """
        if not policies:
            return {}
        compute, ids = self._services.nova(), {}
        with translate_errors("Nova", "the server groups"):
            existing_ids = {
                (server_group.name, _policy(server_group)): str(server_group.id)
                for server_group in compute.server_groups()
            }
        for nodegroup, policy in policies.items():
            name = names.server_group(release, nodegroup)
            existing = existing_ids.get((name, policy))
            ids[nodegroup] = existing or self._make_server_group(compute, name, nodegroup, policy)
        return ids

    def server_groups(
        self, release: str, project_id: str, policies: Mapping[str, str]
    ) -> dict[str, str]:
        """Ids of the server groups of a release by name of the nodegroup, as the service user sees.

        :param policies: Nova's policy by name of the nodegroup: where an attempt with another one
            has left a server group of the same name, the one that was made for this policy counts.
        :raises errors.DriverError: Nova cannot be asked.
        """
        ids: dict[str, str] = {}
        for nodegroup, policy, server_group in self._server_groups(release, project_id):
            if nodegroup not in ids or policy == policies.get(nodegroup):
                ids[nodegroup] = server_group
        return ids

    def delete_server_groups(
        self, release: str, project_id: str, nodegroup: str | None = None
    ) -> None:
        """Delete the server group of a nodegroup, or all of a release; gone already is success.

        :raises errors.DriverError: Nova cannot be asked, or does not delete.
        """
        compute = self._services.nova()

        def remaining() -> dict[str, str]:
            server_groups = self._server_groups(release, project_id)
            return {found: group for group, _, found in server_groups if nodegroup in (None, group)}

        deleted = remaining()
        for group_id, name_of in deleted.items():
            with translate_errors("Nova", f"server group '{names.server_group(release, name_of)}'"):
                compute.delete_server_group(group_id, ignore_missing=True)
        if deleted and (left := remaining()):
            raise not_deleted("Nova", f"server group '{', '.join(left)}'")

    def _server_groups(self, release: str, project_id: str) -> list[tuple[str, str, str]]:
        """Nodegroup, policy and id of each server group of a release."""
        server_groups = list_all(
            "Nova", "the server groups", lambda: _all_server_groups(self._services.nova())
        )
        with translate_errors("Nova", "the server groups"):
            return [
                (
                    nodegroup,
                    next(iter(server_group.get("policies") or ()), ""),
                    str(server_group["id"]),
                )
                for server_group in server_groups
                if server_group["project_id"] == project_id
                and (nodegroup := names.of_server_group(release, server_group["name"]))
            ]

    @staticmethod
    def _make_server_group(compute: Any, name: str, nodegroup: str, policy: str) -> str:
        try:
            with translate_errors("Nova", f"server group '{name}'"):
                return str(compute.create_server_group(name=name, policy=policy).id)
        except errors.CloudRefused as error:
            raise errors.CloudRefused(
                f"The server group of nodegroup '{nodegroup}' cannot be created. {error} Delete "
                "server groups that are not used ('openstack server group list'), request a "
                "higher quota, or set the label 'server_group_policies' to none.",
                error.detail,
            ) from error

    # Floating IPs (Neutron) -----------------------------------------------------------------------
    def make_api_address(self, release: str, project_id: str, network_id: str) -> str:
        """Create a floating IP for the Kubernetes API, in the requesting user's project.

        :param network_id: of the external network that it is of.
        :returns: the address; that of an earlier attempt, if there was one.
        :raises errors.CloudRefused: Neutron does not make one, e.g. because of a quota.
        :raises errors.CloudUnreachable: Neutron does not answer.
        """
        network, description = self._services.neutron(), names.api_floating_ip(release)
        if existing := self._api_addresses(release, project_id):
            return str(existing[0].floating_ip_address)
        try:
            with translate_errors("Neutron", "a floating IP"):
                floating_ip = network.create_ip(
                    floating_network_id=network_id, description=description
                )
        except errors.CloudRefused as error:
            raise errors.CloudRefused(
                "The floating IP of the Kubernetes API, which has no load balancer, cannot be "
                f"created. {error} Delete floating IPs that are not used, request a higher quota, "
                "or create the cluster with --master-lb-enabled.",
                error.detail,
            ) from error
        return str(floating_ip.floating_ip_address)

    def api_address(self, release: str, project_id: str) -> str | None:
        """The floating IP that was made for the API of a release, as the service user sees it.

        :raises errors.DriverError: Neutron cannot be asked.
        """
        addresses = self._api_addresses(release, project_id)
        return str(addresses[0].floating_ip_address) if addresses else None

    def delete_api_address(self, release: str, project_id: str) -> None:
        """Delete the floating IP that was made for the API; gone already is success.

        :raises errors.DriverError: Neutron cannot be asked, or does not delete.
        """
        deleted = self._api_addresses(release, project_id)
        for floating_ip in deleted:
            with translate_errors("Neutron", f"floating IP '{floating_ip.floating_ip_address}'"):
                self._services.neutron().delete_ip(floating_ip.id, ignore_missing=True)
        if deleted and (left := self._api_addresses(release, project_id)):
            raise not_deleted("Neutron", f"floating IP '{left[0].floating_ip_address}'")

    def _api_addresses(self, release: str, project_id: str) -> list[Any]:
        description = names.api_floating_ip(release)
        query = {"description": description, "project_id": project_id}
        floating_ips = list_of_project(
            "Neutron", "the floating IPs", project_id, lambda: self._services.neutron().ips(**query)
        )
        return [
            floating_ip for floating_ip in floating_ips if floating_ip.description == description
        ]


def _all_server_groups(compute: Any) -> Iterator[Json]:
    """The server groups of all projects, page by page.

    Nova ends a page after [api] max_limit of them and gives no link to the next, so openstacksdk
    stops there, and it does not send the offset that Nova asks for
    (https://docs.openstack.org/api-ref/compute/#list-server-groups).
    """
    offset = 0
    while True:
        response = compute.get(
            "/os-server-groups",
            params={"all_projects": "True", "offset": str(offset)},
            microversion=_WITH_PROJECT,
        )
        sdk_exceptions.raise_from_response(response)
        page = response.json()["server_groups"]
        if not page:
            return
        yield from page
        offset += len(page)


def _policy(server_group: Any) -> str:
    """Nova tells it as a list before its API 2.64."""
    return str(server_group.policy or next(iter(server_group.policies or ()), ""))
