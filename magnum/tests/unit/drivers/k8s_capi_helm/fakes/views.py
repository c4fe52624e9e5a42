# SPDX-License-Identifier: Apache-2.0
"""What a member of a project and an administrator see of the same cloud, by the services' rules.

The rules are those of the servers: Glance's ``db/sqlalchemy/api.py`` (``_image_get_all``) and
``db/utils.py`` (``is_image_visible``), Nova's and Cinder's lists of flavors and types with access
by project, Neutron's RBAC. Things are JSON as the APIs send it; members of images, projects with
access and RBAC entries stand beside them, by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses
from typing import Any

Json = dict[str, Any]

#: The project of the tests, the one beside it, and a third one that neither knows.
MINE, NEIGHBOUR, STRANGER = "p1", "p2", "p3"
OPERATOR = "operator"


@dataclasses.dataclass(frozen=True, slots=True)
class Viewer:
    """Who asks: a member of a project, or an administrator, who sees all projects."""

    project: str = MINE
    everything: bool = False


#: Magnum's service user.
SERVICE = Viewer("service", everything=True)


@dataclasses.dataclass
class Things:
    """Everything of all projects that a request can name.

    :ivar members: by id of the image, state of the membership by project.
    :ivar access: by id of the flavor or volume type, the projects that may use it.
    :ivar rbac: entries of networks: object_id, action and target_tenant.
    """

    images: list[Json] = dataclasses.field(default_factory=list)
    members: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    flavors: list[Json] = dataclasses.field(default_factory=list)
    volume_types: list[Json] = dataclasses.field(default_factory=list)
    access: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    networks: list[Json] = dataclasses.field(default_factory=list)
    subnets: list[Json] = dataclasses.field(default_factory=list)
    rbac: list[Json] = dataclasses.field(default_factory=list)

    # Glance ---------------------------------------------------------------------------------------
    def image(self, viewer: Viewer, image_id: str) -> Json | None:
        """The image of an id, None where this viewer gets a 404."""
        for one in self.images:
            if one["id"] == image_id and self._is_visible(viewer, one):
                return one
        return None

    def _is_visible(self, viewer: Viewer, one: Json) -> bool:
        if viewer.everything or one["owner"] in (None, viewer.project):
            return True
        if one["visibility"] in ("public", "community"):
            return True
        member = viewer.project in self.members.get(one["id"], {})
        return bool(one["visibility"] == "shared" and member)

    def listed_images(self, viewer: Viewer, query: Mapping[str, str]) -> list[Json]:
        """``GET /v2/images`` with these filters."""
        hidden = query.get("os_hidden", "false").lower() == "true"
        visibility, found = query.get("visibility"), []
        for one in self.images:
            if one["name"] != query.get("name", one["name"]) or one["os_hidden"] != hidden:
                continue
            if one["owner"] != query.get("owner", one["owner"]):
                continue
            if visibility is None:
                # Others' community images are told only who asks for them.
                if one["visibility"] == "community" and one["owner"] != viewer.project:
                    continue
            elif visibility not in ("all", one["visibility"]):
                continue
            if viewer.everything or self._is_listed(viewer, one, query):
                found.append(one)
        return found

    def _is_listed(self, viewer: Viewer, one: Json, query: Mapping[str, str]) -> bool:
        if one["owner"] == viewer.project or one["visibility"] in ("public", "community"):
            return True
        state = self.members.get(one["id"], {}).get(viewer.project)
        wanted = query.get("member_status", "accepted")
        return one["visibility"] == "shared" and state is not None and wanted in ("all", state)

    def listed_members(self, viewer: Viewer, image_id: str) -> list[Json] | None:
        """``GET /v2/images/ID/members``: who does not own the image sees itself alone."""
        one = self.image(viewer, image_id)
        if one is None:
            return None
        everybody = viewer.everything or one["owner"] == viewer.project
        return [
            {"member_id": project, "image_id": image_id, "status": state}
            for project, state in self.members.get(image_id, {}).items()
            if everybody or project == viewer.project
        ]

    # Nova and Cinder ------------------------------------------------------------------------------
    def listed_flavors(self, viewer: Viewer, is_public: str | None) -> list[Json]:
        """``GET /flavors/detail``: only an administrator has a say in what is listed."""
        listed = self._with_access(viewer, self.flavors, "os-flavor-access:is_public", is_public)
        key = "OS-FLV-DISABLED:disabled"
        return [one for one in listed if viewer.everything or not one.get(key)]

    def listed_types(self, viewer: Viewer, is_public: str | None) -> list[Json]:
        """``GET /types``, by the same rules."""
        return self._with_access(viewer, self.volume_types, "is_public", is_public)

    def _with_access(
        self, viewer: Viewer, listed: Iterable[Json], key: str, is_public: str | None
    ) -> list[Json]:
        if viewer.everything and (is_public or "").lower() == "none":
            return list(listed)
        return [
            one
            for one in listed
            if one.get(key, True) or viewer.project in self.access.get(one["id"], ())
        ]

    # Neutron --------------------------------------------------------------------------------------
    def listed_networks(self, viewer: Viewer, query: Mapping[str, list[str]]) -> list[Json]:
        """``GET /v2.0/networks``."""
        return [
            {**one, "shared": self._is_shared(viewer, one["id"])}
            for one in _chosen(self.networks, query)
            if self._is_seen(viewer, one, one["id"])
        ]

    def listed_subnets(self, viewer: Viewer, query: Mapping[str, list[str]]) -> list[Json]:
        """``GET /v2.0/subnets``: they are seen with their network."""
        return [
            one
            for one in _chosen(self.subnets, query)
            if self._is_seen(viewer, one, one["network_id"])
        ]

    def listed_rbac(self, viewer: Viewer, query: Mapping[str, list[str]]) -> list[Json]:
        """``GET /v2.0/rbac-policies``: those of an owner's own networks, or all."""
        mine = {one["id"] for one in self.networks if one["project_id"] == viewer.project}
        return [
            {**one, "object_type": "network"}
            for one in _chosen(self.rbac, {k: v for k, v in query.items() if k != "object_type"})
            if viewer.everything or one["object_id"] in mine
        ]

    def _is_seen(self, viewer: Viewer, one: Json, network_id: str) -> bool:
        targets = ("*", viewer.project)
        reach = (entry for entry in self.rbac if entry["object_id"] == network_id)
        mine = viewer.everything or one["project_id"] == viewer.project
        return mine or any(entry["target_tenant"] in targets for entry in reach)

    def _is_shared(self, viewer: Viewer, network_id: str) -> bool:
        return any(
            entry["object_id"] == network_id
            and entry["action"] == "access_as_shared"
            and entry["target_tenant"] in ("*", viewer.project)
            for entry in self.rbac
        )

    # Who is there besides -------------------------------------------------------------------------
    def add_neighbour(self, kinds: Iterable[str] = ()) -> None:
        """A neighbour has something of the same name for everything that is there by now.

        Nothing of it can be used by the project of the tests; it comes first in every list.

        :param kinds: of :data:`KINDS`; all of them, if none is given.
        """
        wanted = tuple(kinds) or KINDS
        for like in list({image["name"]: image for image in self.images}.values()):
            for kind in wanted:
                if kind in _IMAGES:
                    self._add_image(like, kind)
        for like in list(self.flavors) if "flavor" in wanted else ():
            # Names of flavors are unique in a cloud, ids as well; one may be the other's.
            self.flavors.insert(0, _private_flavor(like))
            self.access[like["name"]] = [NEIGHBOUR]
        for name in ("neighbours", "fastest") if "volume type" in wanted else ():
            self.volume_types.insert(0, {"id": f"n-{name}", "name": name, "is_public": False})
            self.access[f"n-{name}"] = [NEIGHBOUR]
        for like in list(self.networks):
            for kind in wanted:
                if kind in _NETWORKS:
                    self._add_network(like, kind)
        for like in list(self.subnets) if "subnet" in wanted else ():
            twin = {"id": f"n-{like['id']}", "network_id": "n-any", "project_id": NEIGHBOUR}
            self.subnets.insert(0, {**like, **twin})

    def _add_image(self, like: Json, kind: str) -> None:
        visibility, hidden, members = _IMAGES[kind]
        made = f"n-{kind.replace(' ', '-')}-{like['id']}"
        self.members[made] = dict(members)
        self.images.insert(
            0,
            {
                **like,
                "id": made,
                "owner": NEIGHBOUR,
                "visibility": visibility,
                "os_hidden": hidden,
                "os_distro": like.get("os_distro"),
            },
        )

    def _add_network(self, like: Json, kind: str) -> None:
        external, targets = _NETWORKS[kind]
        made = f"n-{kind.replace(' ', '-')}-{like['id']}"
        fields = {"id": made, "project_id": NEIGHBOUR, "router:external": external}
        self.networks.insert(0, {**like, **fields})
        action = "access_as_external" if external else "access_as_shared"
        self.rbac += [
            {"object_id": made, "action": action, "target_tenant": one} for one in targets
        ]


#: A neighbour's images: visibility, whether it is hidden, and its members.
_IMAGES: Mapping[str, tuple[str, bool, Mapping[str, str]]] = {
    "private image": ("private", False, {}),
    "hidden private image": ("private", True, {}),
    "image offered": ("shared", False, {MINE: "pending"}),
    "image rejected": ("shared", False, {MINE: "rejected"}),
    "image shared with others": ("shared", False, {STRANGER: "accepted"}),
    "hidden image shared with others": ("shared", True, {STRANGER: "accepted"}),
    "community image": ("community", False, {}),
}
#: A neighbour's networks: whether it is external, and whom RBAC lets use it.
_NETWORKS: Mapping[str, tuple[bool, tuple[str, ...]]] = {
    "private network": (False, ()),
    "network shared with others": (False, (STRANGER, "service")),
    "external network": (True, (NEIGHBOUR, STRANGER)),
}
#: Everything that a neighbour may have under a name of the project's.
KINDS = (*_IMAGES, "flavor", "volume type", *_NETWORKS, "subnet")


def _private_flavor(like: Json) -> Json:
    fields = {"id": like["name"], "name": f"neighbours-{like['name']}", "vcpus": 99, "ram": 9999999}
    return {**like, **fields, "os-flavor-access:is_public": False}


def _chosen(listed: Iterable[Json], query: Mapping[str, list[str]]) -> list[Json]:
    return [
        one
        for one in listed
        if all(one.get(key) in values for key, values in query.items() if key != "fields")
    ]
