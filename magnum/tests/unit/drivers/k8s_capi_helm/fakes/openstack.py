# SPDX-License-Identifier: Apache-2.0
"""Nova's server groups and Neutron's floating IPs in memory, as openstacksdk gives them."""

from __future__ import annotations

from collections.abc import Iterator
import itertools
import types
from typing import Any

from openstack import exceptions as sdk_exceptions


class FakeOpenStack:
    """Clients of a person (or service user) of ``project``; ``asked`` lists every request.

    ``page`` is how many server groups Nova lists at once; ``quota`` is how many of them, and how
    many floating IPs, may be there; ``failing`` is raised by every request.
    """

    def __init__(self, project: str = "p1") -> None:
        self.project = project
        self.groups: list[Any] = []
        self.addresses: list[Any] = []
        self.asked: list[str] = []
        self.quota = 10
        self.page = 1000
        self.failing: Exception | None = None
        self._ids = itertools.count(1)
        self._session = types.SimpleNamespace(timeout=None)

    def keystone(self) -> Any:
        return types.SimpleNamespace(session=self._session)

    def nova(self) -> Any:
        return types.SimpleNamespace(
            get=self._get,
            server_groups=self._server_groups,
            create_server_group=self._create_server_group,
            delete_server_group=self._delete_server_group,
        )

    def neutron(self) -> Any:
        return types.SimpleNamespace(
            ips=self._ips, create_ip=self._create_ip, delete_ip=self._delete_ip
        )

    # What it looks like now -----------------------------------------------------------------------
    def policies(self) -> dict[str, str]:
        """Policies of the server groups by name."""
        return {one.name: one.policy for one in self.groups}

    def ids(self) -> dict[str, str]:
        """Ids of the server groups by name."""
        return {one.name: one.id for one in self.groups}

    # Nova -----------------------------------------------------------------------------------------
    def _server_groups(self) -> Iterator[Any]:
        self._ask("list server groups")
        yield from (one for one in list(self.groups) if one.project_id == self.project)

    def _get(self, path: str, *, params: dict[str, str], microversion: str) -> Any:
        assert (path, params["all_projects"]) == ("/os-server-groups", "True")
        self._ask("list server groups")
        start = int(params["offset"])
        page = [
            {"id": one.id, "name": one.name, "project_id": one.project_id}
            for one in self.groups[start : start + self.page]
        ]
        return types.SimpleNamespace(status_code=200, json=lambda: {"server_groups": page})

    def _create_server_group(self, *, name: str, policy: str) -> Any:
        self._ask(f"create server group {name}")
        if len(self.groups) >= self.quota:
            raise sdk_exceptions.ForbiddenException(
                "no", http_status=403, details="Quota exceeded, too many server groups."
            )
        made = types.SimpleNamespace(
            id=f"group-{next(self._ids)}",
            name=name,
            policy=policy,
            policies=None,
            project_id=self.project,
        )
        self.groups.append(made)
        return made

    def _delete_server_group(self, group_id: str, *, ignore_missing: bool) -> None:
        self._ask(f"delete server group {group_id}")
        self.groups = [one for one in self.groups if one.id != group_id]

    # Neutron --------------------------------------------------------------------------------------
    def _ips(self, **query: str) -> Iterator[Any]:
        self._ask("list floating IPs")
        for one in list(self.addresses):
            if all(getattr(one, key) == value for key, value in query.items()):
                yield one

    def _create_ip(self, *, floating_network_id: str, description: str) -> Any:
        self._ask("create floating IP")
        if len(self.addresses) >= self.quota:
            raise sdk_exceptions.ConflictException(
                "no", http_status=409, details="Quota exceeded for resources: ['floatingip']."
            )
        number = next(self._ids)
        made = types.SimpleNamespace(
            id=f"address-{number}",
            floating_ip_address=f"198.51.100.{number}",
            floating_network_id=floating_network_id,
            description=description,
            project_id=self.project,
        )
        self.addresses.append(made)
        return made

    def _delete_ip(self, address_id: str, *, ignore_missing: bool) -> None:
        self._ask(f"delete floating IP {address_id}")
        self.addresses = [one for one in self.addresses if one.id != address_id]

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.failing:
            raise self.failing
