# SPDX-License-Identifier: Apache-2.0
"""Strict validation against CRDs: an unknown field, which an API server prunes, is a fault.

The CRDs come from the directory tree $CRD_DIR, or else from the Go modules that the sandbox pins
and from the addon CRDs of this project.
"""

from __future__ import annotations

from collections.abc import Iterator
import functools
import os
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import CHARTS, Object

Schema = dict[str, Any]

_ADDON_CRDS = CHARTS.parent / "sandbox" / "addons"
#: Not every CRD names what every object has.
_EVERY_OBJECTS = ("apiVersion", "kind", "metadata")
_KEPT_OPEN = "x-kubernetes-preserve-unknown-fields"


class Invalid(Exception):
    """An object is not what its CRD says."""


def _directories() -> list[Path]:
    if given := os.environ.get("CRD_DIR"):
        return [Path(given)]
    from sandbox.management import gomodules

    core = gomodules.directory("clusterapi", "sigs.k8s.io/cluster-api")
    return [
        core / "core" / "config" / "crd" / "bases",
        core / "bootstrap" / "kubeadm" / "config" / "crd" / "bases",
        core / "controlplane" / "kubeadm" / "config" / "crd" / "bases",
        gomodules.directory("capo", "sigs.k8s.io/cluster-api-provider-openstack")
        / "config" / "crd" / "bases",
        _ADDON_CRDS,
    ]  # fmt: skip


def _documents() -> Iterator[Object]:
    for directory in _directories():
        for path in sorted(directory.rglob("*.yaml")):
            for document in rendering.documents(path.read_text()):
                if document.get("kind") == "CustomResourceDefinition":
                    yield document


@functools.cache
def schemas() -> dict[tuple[str, str], Schema]:
    """Strict JSON schema by apiVersion and kind.

    :raises RuntimeError: there are no CRDs.
    """
    found = {
        (f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"]): _body(
            version["schema"]["openAPIV3Schema"]
        )
        for crd in _documents()
        for version in crd["spec"]["versions"]
        if version["served"]
    }
    if not found:
        raise RuntimeError(
            "No CRDs were found to validate with: name a directory with them in CRD_DIR."
        )
    return found


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
    if schema.get("x-kubernetes-int-or-string"):
        return {**result, "type": ["integer", "string"]}
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


def validate(found: Object) -> None:
    """Check an object against its CRD; metadata is Kubernetes' own and is left out.

    :raises Invalid: it has no CRD, or breaks its schema; the text names all faults.
    """
    key = (found["apiVersion"], found["kind"])
    if key not in schemas():
        raise Invalid(f"no CRD serves {key[1]} of {key[0]}")
    body = {name: value for name, value in found.items() if name not in _EVERY_OBJECTS}
    validator = jsonschema.Draft202012Validator(
        schemas()[key], format_checker=jsonschema.FormatChecker()
    )
    faults = [f"{fault.json_path}: {fault.message}" for fault in validator.iter_errors(body)]
    if faults:
        raise Invalid(f"{key[1]} {found['metadata']['name']}: " + "; ".join(faults))
