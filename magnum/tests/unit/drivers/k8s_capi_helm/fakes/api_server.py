# SPDX-License-Identifier: Apache-2.0
"""The management cluster in memory behind HTTP: what the real client says to it can be late."""

from __future__ import annotations

import json
from typing import Any
import urllib.parse

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.http.request import MERGE_PATCH
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.kube import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites.http_server import Answer, NO_KIND, Seen, status

KINDS = {
    (kind.group, kind.versions[0], kind.plural): kind
    for kind in vars(names).values()
    if isinstance(kind, names.Kind)
}


class FakeApiServer:
    """The API over what there is in memory, as far as the driver's client asks."""

    def __init__(self, kube: FakeKube) -> None:
        self._kube = kube

    def answer(self, seen: Seen) -> Answer:
        """The answer to a request, for a server of the suites."""
        parts = urllib.parse.urlsplit(seen.path)
        place = [urllib.parse.unquote(one) for one in parts.path.strip("/").split("/")]
        if len(place) == 1:
            return 200, _discovery(is_core=place[0] == "api")
        group, version, *rest = place[1:] if place[0] == "apis" else ["", *place[1:]]
        if not rest:
            served = [{"name": one[2]} for one in KINDS if one[:2] == (group, version)]
            return (200, {"resources": served}) if served else (404, NO_KIND)
        namespace = None
        if rest[0] == "namespaces" and len(rest) > 2:
            _, namespace, *rest = rest
        kind = KINDS[group, version, rest[0]]
        try:
            return self._do(seen, kind, namespace, "".join(rest[1:]), parts.query)
        except errors.Conflict as error:
            return 409, status("Conflict", error.detail)
        except errors.DriverError as error:
            return 422, status("Invalid", str(error))

    def _do(
        self, seen: Seen, kind: names.Kind, namespace: str | None, name: str, query: str
    ) -> Answer:
        found: Any
        match seen.method:
            case "GET" if name:
                found = self._kube.get(kind, namespace, name)
            case "GET":
                asked = dict(urllib.parse.parse_qsl(query)).get("labelSelector", "")
                labels = dict(one.split("=") for one in asked.split(",") if one)
                is_partial = "PartialObjectMetadataList" in seen.accept
                items = self._kube.list(kind, namespace, labels, metadata_only=is_partial)
                found = {"metadata": {}, "items": None if is_partial and not items else items}
            case "POST":
                found = self._kube.create(kind, seen.body)
            case "PUT":
                found = self._kube.replace(kind, seen.body)
            case "PATCH" if seen.content_type == MERGE_PATCH:
                is_dry = "dryRun=All" in query
                found = self._kube.patch(kind, namespace, name, seen.body, dry=is_dry)
            case "PATCH":
                found = self._kube.apply(kind, seen.body)
            case _:
                compared = seen.body.get("preconditions") or {}
                uid, read = compared.get("uid"), compared.get("resourceVersion")
                is_there = self._kube.delete(kind, namespace, name, uid=uid, version=read)
                found = {} if is_there else None
        if found is None:
            return 404, status("NotFound", name=name, kind=kind.plural)
        return 200, json.loads(json.dumps(found))


def _discovery(*, is_core: bool) -> dict[str, Any]:
    """All that is served, in one answer."""
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": version,
                    "freshness": "Current",
                    "resources": [
                        {
                            "resource": plural,
                            "responseKind": {"kind": kind.name},
                            "scope": "Namespaced" if kind.namespaced else "Cluster",
                            "verbs": ["list"],
                        }
                    ],
                }
            ],
        }
        for (group, version, plural), kind in KINDS.items()
        if (not group) is is_core
    ]
    return {"kind": "APIGroupDiscoveryList", "items": items}
