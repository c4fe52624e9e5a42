# SPDX-License-Identifier: Apache-2.0
"""OpenStack's APIs in memory, below the real openstacksdk: what is sent is what is counted."""

from __future__ import annotations

from collections.abc import Callable
import json
from typing import Any
import urllib.parse

import requests

from magnum.drivers.k8s_capi_helm.cloud.access import endpoints
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.views import (
    KINDS,
    OPERATOR,
    SERVICE,
    Things,
    Viewer,
)

BASE = "http://cloud.example"
PROJECT, USER = "p1", "u1"
#: Token of a person of the project, and of somebody who sees all projects.
_TOKEN, _ADMINISTRATOR = "token", "token-of-an-administrator"
#: Catalogue type -> path of its endpoint.
ENDPOINTS = {
    "identity": "/identity/v3",
    "image": "/image",
    "compute": "/compute/v2.1",
    "network": "/network",
    "block-storage": "/volume/v3",
    "load-balancer": "/load-balancer",
}
#: The same of a cloud that leaves all versions out.
UNVERSIONED = {
    **ENDPOINTS,
    "identity": "/identity",
    "compute": "/compute",
    "block-storage": "/volume",
}
#: The same of one that has versions, and the project in two of them.
OF_PROJECT = {
    **ENDPOINTS,
    "image": "/image/v2/",
    "network": "/network/v2.0",
    "compute": f"/compute/v2.1/{PROJECT}",
    "block-storage": f"/volume/v3/{PROJECT}",
    "load-balancer": "/load-balancer/v2.0",
}
UNLIMITED = {"limit": -1, "used": 0, "reserved": 0}


def _version(number: str, path: str, newest: str = "") -> dict[str, Any]:
    links = [{"rel": "self", "href": f"{BASE}{path}"}]
    versions = {"version": newest, "max_version": newest, "min_version": "2.1"} if newest else {}
    return {"id": number, "status": "CURRENT", "links": links, **versions}


class FakeApis(requests.adapters.BaseAdapter):
    """A small cloud, as far as the driver asks.

    A neighbour has something of the same name for everything that a request can name; whom it is
    shown to depends on the token, by the services' own rules.

    :ivar asked: method and path of every request, in order.
    :ivar hosts: scheme, host and port of every request.
    :ivar endpoints: path of the endpoint by type, as the catalogue has it.
    :ivar absent: types that the catalogue does not have.
    :ivar regions: of the catalogue, in its order; only ``home`` has this cloud, and the endpoints
        of another one are where nobody is.
    :ivar base: where the cloud is, as the driver reaches it.
    :ivar closed: interfaces whose endpoints cannot be reached from here.
    :ivar outside: where those are, None for names that do not resolve.
    :ivar only_in: regions by type, of services that are not in all of them.
    :ivar down: first parts of paths whose service does not answer.
    :ivar said: status and body instead of the answer, by the end of a path.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.hosts: set[str] = set()
        self.neighbours: tuple[str, ...] = KINDS
        #: What is shared with whom: as of Things, besides what is the operator's and for all.
        self.members: dict[str, dict[str, str]] = {}
        self.access: dict[str, list[str]] = {}
        self.rbac: list[dict[str, Any]] = []
        self.endpoints = dict(ENDPOINTS)
        self.absent: set[str] = set()
        self.home = "RegionOne"
        self.regions: tuple[str, ...] = (self.home,)
        self.base = BASE
        self.closed: set[str] = set()
        self.outside: str | None = None
        self.only_in: dict[str, tuple[str, ...]] = {}
        self.down: set[str] = set()
        self.said: dict[str, tuple[int, dict[str, Any]]] = {}
        self.images = [
            {
                "id": "0a0a0a0a-1111-4111-8111-000000000001",
                "name": "ubuntu-kube",
                "status": "active",
                "kube_version": "v1.34.4",
                "os_distro": "ubuntu",
                "min_disk": 0,
                "min_ram": 0,
                "size": 3 * 1024**3,
                "os_hidden": False,
            }
        ]
        self.flavors = [
            {"id": "f-1", "name": "small", "vcpus": 2, "ram": 4096, "disk": 20},
            {"id": "f-2", "name": "large", "vcpus": 8, "ram": 16384, "disk": 80},
        ]
        self.keypairs = ["mine"]
        self.zones = ["zone-1", "zone-2"]
        self.volume_zones = ["nova", "storage-1"]
        self.volume_types = ["fast", "slow"]
        self.providers = ["amphora", "ovn"]
        self.balancer_flavors = [
            {"id": "lb-1", "name": "big", "enabled": True},
            {"id": "lb-2", "name": "gone", "enabled": False},
        ]
        self.balancers: list[dict[str, Any]] = []
        self.networks = [
            self.network("net-1", "public", "admin", external=True),
            self.network("net-2", "mine", PROJECT),
        ]
        self.subnets = [{"id": "sub-1", "name": "nodes", "network_id": "net-2", "project_id": "p1"}]
        self.floatingips: list[dict[str, Any]] = []
        self.nova_quota: dict[str, Any] = {"server_group_members": {"limit": 10}}
        self.cinder_quota: dict[str, Any] = {}
        self.neutron_quota: dict[str, Any] = {}
        self.octavia_quota: dict[str, Any] = {"load_balancer": -1, "listener": -1, "pool": -1}
        self.credentials: dict[str, dict[str, Any]] = {}
        self.made_credentials = 0
        self.faults: dict[str, str] = {}
        self.server_groups: list[dict[str, Any]] = []
        #: What clusters leave.
        self.servers: list[dict[str, Any]] = []
        self.ports: list[dict[str, Any]] = []
        self.security_groups: list[dict[str, Any]] = []

    @staticmethod
    def network(
        net_id: str, name: str, project: str, *, external: bool = False, subnets: int = 1
    ) -> dict[str, Any]:
        return {
            "id": net_id,
            "name": name,
            "project_id": project,
            "router:external": external,
            "subnets": [f"sub-{number}" for number in range(1, subnets + 1)],
        }

    def clients(self, context: Any) -> Any:
        """Magnum's own clients of a person, whose requests come here."""
        token = _ADMINISTRATOR if context.is_admin else _TOKEN
        context.auth_token, context.auth_token_info = token, self._token()
        found = endpoints.MagnumClients(context, login=lambda: f"{self.base}/identity")
        found.keystone().session.session.mount(self.base, self)
        return found

    def send(self, request: Any, **kwargs: Any) -> requests.Response:
        parts = urllib.parse.urlsplit(request.url)
        path, query = parts.path, urllib.parse.parse_qs(parts.query)
        self.asked.append(f"{request.method} {path}")
        self.hosts.add(f"{parts.scheme}://{parts.netloc}")
        if path.split("/")[1] in self.down:
            raise requests.exceptions.ConnectionError("connection refused")

        def answer() -> tuple[int, bytes]:
            status, body = self._answer(request, path, query)
            for end, said in self.said.items():
                if path.endswith(end):
                    status, body = said
            text = json.dumps(body).replace(BASE, self.base)
            return status, b"" if status == 204 else text.encode()

        status, content = self.between(request, answer)
        response = requests.Response()
        response.status_code, response.url, response.request = status, request.url, request
        response.headers["Content-Type"] = "application/json"
        response.headers["X-Subject-Token"] = "token"
        response._content = content
        return response

    def between(self, request: Any, answer: Callable[[], tuple[int, bytes]]) -> tuple[int, bytes]:
        """What stands between: it asks for the answer, or gives one of its own."""
        return answer()

    def close(self) -> None:
        """Nothing is open."""

    def _delete(self, kind: str, path: str) -> tuple[int, dict[str, Any]]:
        wanted, there = path.rpartition("/")[2], getattr(self, kind)
        setattr(self, kind, [one for one in there if one["id"] != wanted])
        return (204, {}) if len(getattr(self, kind)) < len(there) else _missing(wanted)

    def _answer(
        self, request: Any, path: str, query: dict[str, list[str]]
    ) -> tuple[int, dict[str, Any]]:
        service, _, rest = path[1:].partition("/")
        discovered = self._discovery(service, rest)
        if discovered is not None:
            return 200, discovered
        answer: Callable[..., tuple[int, dict[str, Any]]] = getattr(
            self, f"_{service.replace('-', '_')}"
        )
        # Nova and Cinder take the project behind the version as well.
        return answer(request, rest.partition("/")[2].removeprefix(f"{PROJECT}/"), query)

    @staticmethod
    def _discovery(service: str, rest: str) -> dict[str, Any] | None:
        match service, rest.strip("/"):
            case "identity", "v3":
                return {"version": _version("v3.14", "/identity/v3/")}
            case "identity", "":
                return {"versions": {"values": [_version("v3.14", "/identity/v3/")]}}
            case "image", "":
                return {"versions": [_version("v2.17", "/image/v2/")]}
            case "compute", "v2.1":
                return {"version": _version("v2.1", "/compute/v2.1/", "2.96")}
            case "compute", "":
                return {"versions": [_version("v2.1", "/compute/v2.1/", "2.96")]}
            case "network", "":
                return {"versions": [_version("v2.0", "/network/v2.0/")]}
            case "volume", "v3":
                return {"versions": [_version("v3.0", "/volume/v3/", "3.71")]}
            case "load-balancer", "":
                return {"versions": [_version("v2.27", "/load-balancer/v2")]}
            case "volume", "":
                return {"versions": [_version("v3.0", "/volume/v3/", "3.71")]}
        return None

    def _things(self) -> Things:
        """What can be named: the operator's is everybody's, if nothing else is said of it."""
        of_all = {"owner": OPERATOR, "visibility": "public"}
        external = [one["id"] for one in self.networks if one["project_id"] != PROJECT]
        found = Things(
            images=[{**of_all, **one} for one in self.images],
            members=dict(self.members),
            flavors=list(self.flavors),
            volume_types=[{"id": name, "name": name} for name in self.volume_types],
            access=dict(self.access),
            networks=list(self.networks),
            subnets=list(self.subnets),
            rbac=[
                *(
                    {"object_id": one, "action": "access_as_external", "target_tenant": "*"}
                    for one in external
                ),
                *self.rbac,
            ],
        )
        if self.neighbours:
            found.add_neighbour(self.neighbours)
        return found

    def _image(self, request: Any, rest: str, query: Any) -> tuple[int, dict[str, Any]]:
        viewer, things = _viewer(request), self._things()
        _, _, image_id = rest.partition("/")
        if rest.endswith("/members"):
            members = things.listed_members(viewer, image_id.removesuffix("/members"))
            return _missing(rest) if members is None else (200, {"members": members})
        if image_id:
            image = things.image(viewer, image_id)
            return (200, image) if image else _missing(rest)
        filters = {key: values[0] for key, values in query.items()}
        return 200, {"images": things.listed_images(viewer, filters)}

    def _compute(self, request: Any, rest: str, query: Any) -> tuple[int, dict[str, Any]]:
        if rest == "flavors/detail":
            asked = query.get("is_public", [None])[0]
            return 200, {"flavors": self._things().listed_flavors(_viewer(request), asked)}
        if rest.endswith("/os-flavor-access"):
            _, flavor, _ = rest.split("/")
            allowed = self._things().access.get(flavor, ())
            return 200, {"flavor_access": [{"tenant_id": one} for one in allowed]}
        if rest == "os-availability-zone":
            state = {"available": True}
            zones = [{"zoneName": name, "zoneState": state} for name in self.zones]
            return 200, {"availabilityZoneInfo": zones}
        if rest.startswith("os-keypairs/"):
            name = urllib.parse.unquote(rest.removeprefix("os-keypairs/"))
            return (200, {"keypair": {"name": name}}) if name in self.keypairs else _missing(rest)
        if rest == f"os-quota-sets/{PROJECT}/detail":
            usual = {key: {"limit": -1, "in_use": 0} for key in ("instances", "cores", "ram")}
            return 200, {"quota_set": {"id": PROJECT, **usual, **self.nova_quota}}
        if rest == "os-server-groups" and request.method == "GET":
            start = int(query.get("offset", ["0"])[0])
            return 200, {"server_groups": self.server_groups[start:]}
        if rest == "os-server-groups":
            body = json.loads(request.body)["server_group"]
            made = {**body, "id": f"sg-{len(self.asked)}", "project_id": PROJECT}
            self.server_groups.append({"policies": [made.get("policy")], **made})
            return 200, {"server_group": made}
        if rest.startswith("os-server-groups/"):
            return self._delete("server_groups", rest)
        if rest == "servers/detail":
            wanted = query.get("name", [""])[0].removeprefix("^")
            found = [one for one in self.servers if one["name"].startswith(wanted)]
            return 200, {"servers": _chosen(found, query, "project_id")}
        if rest.startswith("servers/"):
            server = rest.removeprefix("servers/")
            fault = {"message": self.faults.get(server, ""), "code": 500}
            known = {"server": {"id": server, "fault": fault}}
            return (200, known) if server in self.faults else _missing(rest)
        raise AssertionError(rest)

    def _network(self, request: Any, rest: str, query: Any) -> tuple[int, dict[str, Any]]:
        if rest == f"quotas/{PROJECT}/details":
            kinds = ("network", "subnet", "router", "port", "security_group", "floatingip")
            return 200, {"quota": {**dict.fromkeys(kinds, UNLIMITED), **self.neutron_quota}}
        kind = rest.partition("/")[0]
        if request.method == "DELETE":
            return self._delete(kind.replace("-", "_"), rest)
        if request.method == "POST":
            number = len(self.asked)
            made = {**json.loads(request.body)["floatingip"], "project_id": PROJECT}
            made |= {"id": f"ip-{number}", "floating_ip_address": f"198.51.100.{number % 250}"}
            self.floatingips.append(made)
            return 201, {"floatingip": made}
        if kind in ("networks", "subnets", "rbac-policies"):
            listed = getattr(self._things(), f"listed_{kind.partition('-')[0]}")
            if obj_id := rest.partition("/")[2]:
                found = [one for one in listed(_viewer(request), {}) if one["id"] == obj_id]
                return (200, {kind[:-1]: found[0]}) if found else _missing(rest)
            return 200, {kind.replace("-", "_"): listed(_viewer(request), query)}
        found = getattr(self, kind.replace("-", "_"))
        keys = ("id", "name", "floating_ip_address", "project_id", "description", "device_id")
        return 200, {kind.replace("-", "_"): _chosen(found, query, *keys)}

    def _volume(self, request: Any, rest: str, query: Any) -> tuple[int, dict[str, Any]]:
        if rest == "types":
            asked = query.get("is_public", [None])[0]
            return 200, {"volume_types": self._things().listed_types(_viewer(request), asked)}
        if rest.endswith("/os-volume-type-access"):
            _, kind, _ = rest.split("/")
            allowed = self._things().access.get(kind, ())
            return 200, {"volume_type_access": [{"project_id": one} for one in allowed]}
        if rest == "os-availability-zone":
            zones = [{"zoneName": n, "zoneState": {}} for n in self.volume_zones]
            return 200, {"availabilityZoneInfo": zones}
        if rest == f"os-quota-sets/{PROJECT}" and query.get("usage") == ["True"]:
            usual = {key: {"limit": -1, "in_use": 0} for key in ("volumes", "gigabytes")}
            return 200, {"quota_set": {"id": PROJECT, **usual, **self.cinder_quota}}
        raise AssertionError(rest)

    def _load_balancer(self, request: Any, rest: str, query: Any) -> tuple[int, dict[str, Any]]:
        match rest.removeprefix("lbaas/"):
            case "providers":
                return 200, {"providers": [{"name": name} for name in self.providers]}
            case "flavors":
                return 200, {"flavors": self.balancer_flavors}
            case "quotas/p1":  # of PROJECT
                return 200, {"quota": self.octavia_quota}
            case "loadbalancers":
                return 200, {"loadbalancers": _chosen(self.balancers, query, "project_id")}
            case one if request.method == "DELETE":
                return self._delete("balancers", one)
        raise AssertionError(rest)

    def _identity(self, request: Any, rest: str, query: Any) -> tuple[int, dict[str, Any]]:
        user, _, kind = rest.removeprefix("users/").partition("/")
        if request.method == "POST" and kind == "application_credentials":
            body = json.loads(request.body)["application_credential"]
            self.made_credentials += 1
            made = {**body, "id": f"ac-{self.made_credentials}", "secret": "s3cret", "of": user}
            self.credentials[made["id"]] = made
            return 201, {"application_credential": made}
        if request.method == "GET" and kind == "application_credentials":
            mine = [one for one in self.credentials.values() if one["of"] == user]
            return 200, {"application_credentials": mine}
        if request.method == "DELETE" and kind.startswith("application_credentials/"):
            gone = self.credentials.pop(rest.rpartition("/")[2], None)
            return (204, {}) if gone else _missing(rest)
        if request.method == "POST" and rest == "auth/tokens":
            wanted = json.loads(request.body)["auth"]["identity"]["application_credential"]
            found = self.credentials.get(wanted["id"])
            if found is None:
                return _missing(f"application credential {wanted['id']}")
            good = found["secret"] == wanted["secret"]
            return (201, self._token()) if good else (401, {"error": {"message": "no"}})
        raise AssertionError(rest)

    def _base(self, interface: str, region: str) -> str:
        if region == self.home and interface not in self.closed:
            return self.base
        is_outside = region == self.home and self.outside is not None
        return str(self.outside) if is_outside else f"http://{interface}.{region}.invalid"

    def _token(self) -> dict[str, Any]:
        catalog = [
            {
                "type": kind,
                "name": kind,
                "id": kind,
                "endpoints": [
                    {
                        "interface": interface,
                        "url": f"{self._base(interface, region)}{path}",
                        "region": region,
                        "region_id": region,
                        "id": f"{kind}-{interface}-{region}",
                    }
                    for region in self.regions
                    if region in self.only_in.get(kind, self.regions)
                    for interface in ("public", "internal", "admin")
                ],
            }
            for kind, path in self.endpoints.items()
            if kind not in self.absent
        ]
        return {
            "token": {
                "catalog": catalog,
                "expires_at": "2100-01-01T00:00:00Z",
                "issued_at": "2020-01-01T00:00:00Z",
                "methods": ["password"],
                "project": {"id": PROJECT, "name": "demo", "domain": {"id": "d", "name": "d"}},
                "user": {"id": USER, "name": "demo", "domain": {"id": "d", "name": "d"}},
                "roles": [{"id": "r", "name": "member"}],
            }
        }


def _chosen(
    found: list[dict[str, Any]], query: dict[str, list[str]], *keys: str
) -> list[dict[str, Any]]:
    """Those that have the values asked for; several values of a key are alternatives."""
    for key in keys:
        # What a test does not say of a thing is as it was asked for.
        found = [one for one in found if key not in one or one[key] in query.get(key, [one[key]])]
    return found


def _missing(what: str) -> tuple[int, dict[str, Any]]:
    return 404, {"error": {"code": 404, "message": f"Could not find {what}."}}


def _viewer(request: Any) -> Viewer:
    """Whose token a request has."""
    return SERVICE if request.headers["X-Auth-Token"] == _ADMINISTRATOR else Viewer(PROJECT)
