# SPDX-License-Identifier: Apache-2.0
"""Strict validation against CRDs: an unknown field, which an API server prunes, is a fault.

The CRDs are those of several releases of Cluster API and CAPO, which the sandbox gets as Go modules
(:mod:`sandbox.management.crd_releases`), and of every directory that $K8S_CAPI_HELM_CRDS names (a
path list): a release is a directory with its CRDs, called like cluster-api-v1.14.2, and is named
itself or stands beside others in a directory that is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
import functools
import json
import os
from pathlib import Path
import re
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import CHARTS, Object

Schema = dict[str, Any]
Kind = tuple[str, str]

CORE = "cluster-api"
INFRASTRUCTURE = "cluster-api-provider-openstack"
ADDONS = "cluster-api-addon-provider"
DIRECTORIES = "K8S_CAPI_HELM_CRDS"
#: Groups of the objects that a chart renders, by the project whose release says what is in them.
_PROJECTS = {
    "cluster.x-k8s.io": CORE,
    "controlplane.cluster.x-k8s.io": CORE,
    "bootstrap.cluster.x-k8s.io": CORE,
    "infrastructure.cluster.x-k8s.io": INFRASTRUCTURE,
    "addons.stackhpc.com": ADDONS,
}
_RELEASE = re.compile(r"(.+?)-v?(\d+)\.(\d+)\..+")
#: Not every CRD names what every object has.
_EVERY_OBJECTS = ("apiVersion", "kind", "metadata")
_KEPT_OPEN = "x-kubernetes-preserve-unknown-fields"


class Invalid(Exception):
    """An object is not what its CRD says."""


@dataclass(frozen=True)
class Release:
    """A release of a project whose kinds the charts render."""

    project: str
    minor: tuple[int, int]
    directory: Path

    @property
    def name(self) -> str:
        """What a test says of it."""
        return self.directory.name

    @functools.cached_property
    def schemas(self) -> dict[Kind, Schema]:
        """Strict JSON schema by apiVersion and kind."""
        return {
            (f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"]): _body(
                version["schema"]["openAPIV3Schema"]
            )
            for crd in _documents(self.directory)
            for version in crd["spec"]["versions"]
            if version["served"]
        }

    def serves(self, group: str, version: str) -> bool:
        """Whether it serves a version of a group."""
        return any(served == f"{group}/{version}" for served, _ in self.schemas)

    @functools.cache  # noqa: B019 - releases live as long as the process
    def validator(self, kind: Kind) -> Any:
        """What checks an object of a kind."""
        return jsonschema.Draft202012Validator(
            self.schemas[kind], format_checker=jsonschema.FormatChecker()
        )


def _documents(directory: Path) -> Iterator[Object]:
    for path in sorted(directory.rglob("*")):
        found: list[Object] = []
        if path.suffix == ".json":
            found = [json.loads(path.read_text())]
        elif path.suffix == ".yaml":
            found = rendering.documents(path.read_text())
        yield from (one for one in found if one.get("kind") == "CustomResourceDefinition")


@functools.cache
def releases() -> list[Release]:
    """Every release whose CRDs are here; those of the sandbox's own come last."""
    from sandbox.management import crd_releases

    given = [Path(one) for one in os.environ.get(DIRECTORIES, "").split(os.pathsep) if one]
    found = {}
    for directory in (*given, crd_releases.fetch()):
        for place in (directory, *sorted(directory.iterdir())):
            match = _RELEASE.fullmatch(place.name)
            if match and match[1] in _PROJECTS.values() and place.is_dir():
                minor = (int(match[2]), int(match[3]))
                found[place.name] = Release(match[1], minor, place)
    # The addon operator that the sandbox plays has the CRDs of the real one.
    own = Release(ADDONS, (0, 0), CHARTS.parent / "sandbox" / "addons")
    return sorted((*found.values(), own), key=lambda one: (one.project, one.minor))


def of(project: str) -> list[Release]:
    """The releases of a project, the oldest first."""
    return [release for release in releases() if release.project == project]


def newest() -> list[Release]:
    """What the sandbox has: the newest releases that can be fetched."""
    from sandbox.management.releases import Providers

    pair = Providers()
    names = {pair.capi.name, pair.capo.name, "addons"}
    return [release for release in releases() if release.name in names]


def _body(schema: Schema) -> Schema:
    """Strict schema of an object without what every object has."""
    return _strict(
        {
            **schema,
            "required": [one for one in schema.get("required", ()) if one not in _EVERY_OBJECTS],
        }
    )


def _strict(schema: Schema) -> Schema:
    """An OpenAPI schema as a JSON schema that forbids what it does not name."""
    result: Schema = {
        key: schema[key]
        for key in (
            *("enum", "pattern", "minimum", "maximum", "minLength", "maxLength"),
            *("minItems", "maxItems", "minProperties", "maxProperties", "format"),
        )
        if key in schema
    }
    if result.get("format") == "int32":
        for bound, limit, nearer in (("minimum", -(2**31), max), ("maximum", 2**31 - 1, min)):
            result[bound] = nearer(result.get(bound, limit), limit)
    if schema.get("x-kubernetes-int-or-string"):
        # What reads it has 32 bits for the number.
        return {"maximum": 2**31 - 1, **result, "type": ["integer", "string"]}
    if "type" in schema:
        result["type"] = schema["type"]
    if "items" in schema:
        result["items"] = _strict(schema["items"])
    properties = schema.get("properties", {})
    if properties:
        result["properties"] = {name: _strict(inner) for name, inner in properties.items()}
    # The API server fills in defaults before it looks at what is required.
    required = [name for name in schema.get("required", ()) if "default" not in properties[name]]
    if required:
        result["required"] = required
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        result["additionalProperties"] = _strict(extra)
    elif schema.get("type") == "object" and not schema.get(_KEPT_OPEN) and extra is not True:
        result["additionalProperties"] = False
    return result


@functools.cache
def _faults(release: Release, kind: Kind, body: str) -> list[str]:
    """What a release says of an object; most objects of two renderings are alike."""
    return [
        f"{fault.json_path}: {fault.message}"
        for fault in release.validator(kind).iter_errors(json.loads(body))
    ]


def validate(found: Object, among: Sequence[Release] | None = None) -> None:
    """Check an object against its CRD; metadata is Kubernetes' own and is left out.

    :param among: releases that must know the object, each one of its own project; those of the
        sandbox where none are given.
    :raises Invalid: it has no CRD, or breaks its schema; the text names all faults.
    """
    kind = (found["apiVersion"], found["kind"])
    project = _PROJECTS.get(kind[0].partition("/")[0])
    body = {name: value for name, value in found.items() if name not in _EVERY_OBJECTS}
    text = json.dumps(body, sort_keys=True)
    said = []
    asked = [one for one in (newest() if among is None else among) if one.project == project]
    for release in asked:
        if kind not in release.schemas:
            said.append(f"{release.name} serves no {kind[1]} of {kind[0]}")
        else:
            said += [f"{release.name}: {fault}" for fault in _faults(release, kind, text)]
    if not asked:
        said.append(f"no CRD serves {kind[1]} of {kind[0]}")
    if said:
        raise Invalid(f"{kind[1]} {found['metadata']['name']}: " + "; ".join(said))
