# SPDX-License-Identifier: Apache-2.0
"""What the driver itself makes for a cluster in the tenant's project, found again by its name.

Nothing is written down anywhere: a conductor that dies between two requests leaves nothing that a
later one does not find. What is made, is made with the tenant's own token, and so in the tenant's
project and within its quotas; Magnum's service user, who can see all projects, takes it away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from openstack import exceptions as sdk_exceptions

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.services import (
    list_all,
    listed_of_project,
    Services,
    still_there,
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
        """A server group for each nodegroup, in the project of the person who asks.

        One that is there already, because an earlier attempt has made it, is taken.

        :param policies: Nova's policy by name of the nodegroup.
        :returns: ids by name of the nodegroup.
        :raises errors.CloudRefused: Nova does not make one, e.g. because of a quota.
        :raises errors.CloudUnreachable: Nova does not answer.
        """
        if not policies:
            return {}
        compute, made = self._services.nova(), {}
        with translate_errors("Nova", "the server groups"):
            there = {(one.name, _policy(one)): str(one.id) for one in compute.server_groups()}
        for group, policy in policies.items():
            name = names.server_group(release, group)
            found = there.get((name, policy))
            made[group] = found or self._make_server_group(compute, name, group, policy)
        return made

    def server_groups(
        self, release: str, project_id: str, policies: Mapping[str, str]
    ) -> dict[str, str]:
        """Ids of the server groups of a release by name of the nodegroup, as the service user sees.

        :param policies: Nova's policy by name of the nodegroup: where an attempt with another one
            has left a server group of the same name, the one that was made for this policy counts.
        :raises errors.DriverError: Nova cannot be asked.
        """
        found: dict[str, str] = {}
        for group, policy, server_group in self._server_groups(release, project_id):
            if group not in found or policy == policies.get(group):
                found[group] = server_group
        return found

    def delete_server_groups(
        self, release: str, project_id: str, nodegroup: str | None = None
    ) -> None:
        """Delete the server group of a nodegroup, or all of a release; gone already is success.

        :raises errors.DriverError: Nova cannot be asked, or does not delete.
        """
        compute = self._services.nova()

        def mine() -> dict[str, str]:
            there = self._server_groups(release, project_id)
            return {found: group for group, _, found in there if nodegroup in (None, group)}

        told = mine()
        for found, group in told.items():
            with translate_errors("Nova", f"server group '{names.server_group(release, group)}'"):
                compute.delete_server_group(found, ignore_missing=True)
        if told and (left := mine()):
            raise still_there("Nova", f"server group '{', '.join(left)}'")

    def _server_groups(self, release: str, project_id: str) -> list[tuple[str, str, str]]:
        """Nodegroup, policy and id of each server group of a release."""
        found = list_all("Nova", "the server groups", lambda: _of_everybody(self._services.nova()))
        with translate_errors("Nova", "the server groups"):
            return [
                (group, next(iter(one.get("policies") or ()), ""), str(one["id"]))
                for one in found
                if one["project_id"] == project_id
                and (group := names.of_server_group(release, one["name"]))
            ]

    @staticmethod
    def _make_server_group(compute: Any, name: str, group: str, policy: str) -> str:
        try:
            with translate_errors("Nova", f"server group '{name}'"):
                return str(compute.create_server_group(name=name, policy=policy).id)
        except errors.CloudRefused as error:
            raise errors.CloudRefused(
                f"The server group of nodegroup '{group}' cannot be created. {error} Delete "
                "server groups that are not used ('openstack server group list'), request a "
                "higher quota, or set the label 'server_group_policies' to none.",
                error.detail,
            ) from error

    # Floating IPs (Neutron) -----------------------------------------------------------------------
    def make_api_address(self, release: str, project_id: str, network_id: str) -> str:
        """A floating IP for the Kubernetes API, in the project of the person who asks.

        :param network_id: of the external network that it is of.
        :returns: the address; that of an earlier attempt, if there was one.
        :raises errors.CloudRefused: Neutron does not make one, e.g. because of a quota.
        :raises errors.CloudUnreachable: Neutron does not answer.
        """
        network, words = self._services.neutron(), names.api_address(release)
        if found := self._api_addresses(release, project_id):
            return str(found[0].floating_ip_address)
        try:
            with translate_errors("Neutron", "a floating IP"):
                made = network.create_ip(floating_network_id=network_id, description=words)
        except errors.CloudRefused as error:
            raise errors.CloudRefused(
                "The floating IP of the Kubernetes API, which has no load balancer, cannot be "
                f"created. {error} Delete floating IPs that are not used, request a higher quota, "
                "or create the cluster with --master-lb-enabled.",
                error.detail,
            ) from error
        return str(made.floating_ip_address)

    def api_address(self, release: str, project_id: str) -> str | None:
        """The floating IP that was made for the API of a release, as the service user sees it.

        :raises errors.DriverError: Neutron cannot be asked.
        """
        found = self._api_addresses(release, project_id)
        return str(found[0].floating_ip_address) if found else None

    def delete_api_address(self, release: str, project_id: str) -> None:
        """Delete the floating IP that was made for the API; gone already is success.

        :raises errors.DriverError: Neutron cannot be asked, or does not delete.
        """
        told = self._api_addresses(release, project_id)
        for one in told:
            with translate_errors("Neutron", f"floating IP '{one.floating_ip_address}'"):
                self._services.neutron().delete_ip(one.id, ignore_missing=True)
        if told and (left := self._api_addresses(release, project_id)):
            raise still_there("Neutron", f"floating IP '{left[0].floating_ip_address}'")

    def _api_addresses(self, release: str, project_id: str) -> list[Any]:
        words = names.api_address(release)
        query = {"description": words, "project_id": project_id}
        found = listed_of_project(
            "Neutron", "the floating IPs", project_id, lambda: self._services.neutron().ips(**query)
        )
        return [one for one in found if one.description == words]


def _of_everybody(compute: Any) -> Iterator[Json]:
    """The server groups of all projects, page by page.

    Nova ends a page after [api] max_limit of them and gives no link to the next, so openstacksdk
    stops there, and it does not send the offset that Nova asks for
    (https://docs.openstack.org/api-ref/compute/#list-server-groups).
    """
    offset = 0
    while True:
        answer = compute.get(
            "/os-server-groups",
            params={"all_projects": "True", "offset": str(offset)},
            microversion=_WITH_PROJECT,
        )
        sdk_exceptions.raise_from_response(answer)
        page = answer.json()["server_groups"]
        if not page:
            return
        yield from page
        offset += len(page)


def _policy(group: Any) -> str:
    """Nova tells it as a list before its API 2.64."""
    return str(group.policy or next(iter(group.policies or ()), ""))
