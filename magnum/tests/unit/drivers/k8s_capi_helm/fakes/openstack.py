# SPDX-License-Identifier: Apache-2.0
"""What clusters have and leave in a project, in memory, as openstacksdk gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
import copy
import itertools
import types
from typing import Any

from keystoneauth1 import exceptions as ka_exceptions
from openstack import exceptions as sdk_exceptions

from magnum.tests.unit.drivers.k8s_capi_helm.fakes.views import NEIGHBOUR, Viewer


class FakeOpenStack:
    """Clients of a person of ``project``; ``asked`` lists every request.

    An administrator, as :meth:`seen_by` gives one, sees what is in other projects, too. There a
    neighbour has something of the same name for everything that is there.

    ``page`` is how many server groups Nova lists at once; ``quota`` is how many of them, and how
    many floating IPs, may be there; ``failing`` is raised by every request.
    """

    def __init__(self, project: str = "p1") -> None:
        self.project = project
        self.everything = False
        self.groups: list[Any] = []
        self.addresses: list[Any] = []
        #: What machines and Services have left, made by :meth:`leave`; by kind.
        self.left: dict[str, list[Any]] = {
            kind: [] for kind in ("servers", "load_balancers", "ports", "security_groups")
        }
        #: What does not go although its service says so, and whether it is there at all.
        self.stuck: set[str] = set()
        self.has_octavia = True
        self.asked: list[str] = []
        self.quota = 10
        self.page = 1000
        self.failing: Exception | None = None
        self.before: Callable[[str], None] | None = None
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
            # Of a named project Nova shows an administrator servers, and only if all are asked for.
            servers=lambda **query: self._listed(
                "servers", query, **({"all_projects": True} if "project_id" in query else {})
            ),
        )

    def octavia(self) -> Any:
        if not self.has_octavia:
            raise ka_exceptions.EndpointNotFound("the catalogue has no 'load-balancer'")
        return types.SimpleNamespace(
            load_balancers=lambda **query: self._listed("load_balancers", query),
            delete_load_balancer=self._delete_load_balancer,
        )

    def neutron(self) -> Any:
        return types.SimpleNamespace(
            ips=self._ips,
            create_ip=self._create_ip,
            delete_ip=self._delete_ip,
            ports=lambda **query: self._listed("ports", query),
            security_groups=lambda **query: self._listed("security_groups", query),
            delete_security_group=self._delete_security_group,
        )

    def seen_by(self, viewer: Viewer) -> FakeOpenStack:
        """The same project's things as somebody else sees them."""
        other = copy.copy(self)
        other.project, other.everything = viewer.project, viewer.everything
        return other

    def _seen(self, listed: Iterable[Any]) -> list[Any]:
        """What this person sees of what there is in all projects."""
        there = list(listed)
        if not self.everything:
            return there
        return [*(_twin(one) for one in there), *there]

    def leave(self, kind: str, **fields: Any) -> Any:
        """Something that nobody has taken away."""
        usual = {
            "id": f"{kind}-{next(self._ids)}",
            "name": "",
            "description": "",
            "project_id": self.project,
            "status": "ACTIVE",
            "provisioning_status": "ACTIVE",
            "tags": [],
            "vip_port_id": "",
            "port_id": "",
            "floating_ip_address": "198.51.100.99",
        }
        made = types.SimpleNamespace(**{**usual, **fields})
        (self.addresses if kind == "addresses" else self.left[kind]).append(made)
        return made

    # What it looks like now -----------------------------------------------------------------------
    def policies(self) -> dict[str, str]:
        """Policies of the server groups by name."""
        return {one.name: one.policy for one in self.groups}

    def ids(self) -> dict[str, str]:
        """Ids of the server groups by name."""
        return {one.name: one.id for one in self.groups}

    # Left behind ----------------------------------------------------------------------------------
    def _listed(self, kind: str, query: dict[str, Any], **wanted: Any) -> Iterator[Any]:
        self._ask(f"list {kind.replace('_', ' ')}")
        assert all(query.pop(key, None) == value for key, value in wanted.items()), query
        if kind == "servers":
            query["name"] = query["name"].removeprefix("^")
        # A port is looked for by its network, and whoever owns it is in the way there.
        for one in list(self.left[kind]) if kind == "ports" else self._seen(self.left[kind]):
            name = query.pop("name", "")
            if one.name.startswith(name) and all(getattr(one, k) == v for k, v in query.items()):
                yield one

    def _delete_load_balancer(self, one_id: str, *, cascade: bool, ignore_missing: bool) -> None:
        self._ask(f"delete load balancer {one_id}")
        assert cascade
        for one in self.left["load_balancers"]:
            if one.id == one_id:
                one.provisioning_status = "PENDING_DELETE"
        if one_id not in self.stuck:
            _delete(self.left["load_balancers"], one_id)

    def _delete_security_group(self, one_id: str, *, ignore_missing: bool) -> None:
        self._ask(f"delete security group {one_id}")
        if one_id in self.stuck:
            raise sdk_exceptions.ConflictException("in use", http_status=409)
        _delete(self.left["security_groups"], one_id)

    # Nova -----------------------------------------------------------------------------------------
    def _server_groups(self) -> Iterator[Any]:
        self._ask("list server groups")
        yield from (one for one in list(self.groups) if one.project_id == self.project)

    def _get(self, path: str, *, params: dict[str, str], microversion: str) -> Any:
        assert (path, params["all_projects"]) == ("/os-server-groups", "True")
        self._ask("list server groups")
        start = int(params["offset"])
        page = [
            {
                "id": one.id,
                "name": one.name,
                "project_id": one.project_id,
                "policies": one.policies or [one.policy],
            }
            for one in self._seen(self.groups)[start : start + self.page]
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
        if group_id not in self.stuck:
            _delete(self.groups, group_id)

    # Neutron --------------------------------------------------------------------------------------
    def _ips(self, **query: str) -> Iterator[Any]:
        self._ask("list floating IPs")
        for one in self._seen(self.addresses):
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
            port_id=None,
        )
        self.addresses.append(made)
        return made

    def _delete_ip(self, address_id: str, *, ignore_missing: bool) -> None:
        self._ask(f"delete floating IP {address_id}")
        _delete(self.addresses, address_id)

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.before:
            self.before(what)
        if self.failing:
            raise self.failing


def _twin(thing: Any) -> Any:
    """What a neighbour has under the same name."""
    return types.SimpleNamespace(**{**vars(thing), "id": f"n-{thing.id}", "project_id": NEIGHBOUR})


def _delete(listed: list[Any], one_id: str) -> None:
    """Delete in place, for everybody who sees it."""
    assert not one_id.startswith("n-"), f"{one_id} is the neighbour's"
    listed[:] = [one for one in listed if one.id != one_id]
