# SPDX-License-Identifier: Apache-2.0
"""What the addon provider makes of rendered HelmReleases and Manifests, without a cluster.

Addons are Jinja templates over the objects of their cluster. Those stand here with addresses and
credentials that are examples: neither changes which images an addon has.

Source: https://github.com/azimuth-cloud/cluster-api-addon-provider, "template.py"
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
import datetime
import json
import re
import types
from typing import Any

import jinja2
from jinja2 import sandbox
import yaml

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import conditions, Json

_GROUP = "addons.stackhpc.com/"
KINDS = ("HelmRelease", "Manifests")
#: The key of a ConfigMap or Secret with values that names none.
_VALUES = "values.yaml"
_CAPITAL = re.compile("[A-Z]")
_CLOUDS = base64.b64encode(
    b"clouds: {openstack: {auth: {auth_url: 'https://example.org/v3', "
    b"application_credential_id: example, application_credential_secret: example}}}"
).decode()
_IDENTITY = {"data": {"clouds.yaml": _CLOUDS, "addon-clouds.yaml": _CLOUDS}}
_ENDPOINT = {"host": "192.0.2.10", "port": 6443}
_STATUS = {"network": {"id": "example", "name": "example"}, "externalNetwork": {"id": "example"}}


class _Attributes(types.SimpleNamespace):
    """An object as the provider's models are: fields are attributes in Python's spelling.

    :param raw: by the names of the API, which ``toyaml`` writes.
    :param parts: fields that are models, too.
    """

    def __init__(self, raw: Json, **parts: Json) -> None:
        fields = {**raw, **{name: _Attributes(part) for name, part in parts.items()}}
        super().__init__(**{_CAPITAL.sub(_small, name): value for name, value in fields.items()})
        self._raw = raw

    def dump(self) -> Json:
        """By the names of the API."""
        return self._raw


def _small(capital: re.Match[str]) -> str:
    return f"_{capital[0].lower()}"


def _plain(value: Any) -> Any:
    """What YAML and templates have and JSON has not, as pydantic's encoder writes it."""
    if isinstance(value, _Attributes):
        return value.dump()
    if isinstance(value, datetime.date):  # a datetime is one, too
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, set | types.GeneratorType):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no data")


def is_addon(obj: Json) -> bool:
    """Whether an object is one of the addon provider's."""
    return str(obj.get("apiVersion")).startswith(_GROUP) and obj.get("kind") in KINDS


def addon_values(addon: Json, objects: Iterable[Json]) -> Json:
    """The values with which the chart of a HelmRelease is installed.

    :param objects: that were rendered with it.
    :raises errors.InvalidRequest: a template of it is broken.
    """
    objects = list(objects)
    values: Json = {}
    for source in addon["spec"].get("valuesSources") or []:
        for text in _texts(source, objects, default_key=_VALUES):
            values = _merged(values, _document(addon, text, objects))
    return values


def addon_objects(addon: Json, objects: Iterable[Json]) -> list[Json]:
    """The objects that a Manifests installs; arguments as of :func:`addon_values`."""
    objects = list(objects)
    return [
        document
        for source in addon["spec"].get("manifestSources") or []
        for text in _texts(source, objects)
        for document in _documents(addon, text, objects)
        if isinstance(document, dict)
    ]


def _texts(source: Json, objects: Iterable[Json], default_key: str = "") -> list[str]:
    """The templates of a source: its own, or those of a ConfigMap or Secret that was rendered.

    :param default_key: the only one where the source names none; "" for all but the excluded.
    """
    if "template" in source:
        return [str(source["template"])]
    kind = "ConfigMap" if "configMap" in source else "Secret"
    reference = source.get("configMap") or source.get("secret") or {}
    for obj in objects:
        if obj.get("kind") != kind or conditions.name(obj) != reference.get("name"):
            continue
        data = {
            **(obj.get("data") or {} if kind == "ConfigMap" else _decoded(obj.get("data") or {})),
            **(obj.get("stringData") or {}),
        }
        if default_key:
            wanted = [reference.get("key", default_key)]
        else:
            wanted = reference.get("keys") or list(data)
        excluded = reference.get("excludeKeys") or ()
        return [str(data[key]) for key in wanted if key in data and key not in excluded]
    return []


def _decoded(data: Mapping[str, str]) -> dict[str, str]:
    return {key: base64.b64decode(text).decode(errors="replace") for key, text in data.items()}


def _document(addon: Json, text: str, objects: list[Json]) -> Any:
    found = _documents(addon, text, objects)
    return found[0] if found else None


def _documents(addon: Json, text: str, objects: list[Json]) -> list[Any]:
    """What a template renders to.

    :raises errors.InvalidRequest: it is broken.
    """
    try:
        filled = _environment().from_string(text).render(**_context(addon, objects))
        return list(yaml.safe_load_all(filled))
    except (jinja2.TemplateError, yaml.YAMLError, ValueError, TypeError, LookupError) as error:
        raise errors.InvalidRequest(
            f"An addon of the chart cannot be rendered. {addon['kind']} "
            f"'{conditions.name(addon)}': {type(error).__name__}: {' '.join(str(error).split())}"
        ) from None


def _context(addon: Json, objects: list[Json]) -> dict[str, Any]:
    cluster = _first(objects, "Cluster")
    spec = {**(cluster.get("spec") or {}), "controlPlaneEndpoint": _ENDPOINT}
    return {
        "addon": _Attributes(addon, metadata=addon["metadata"], spec=addon["spec"]),
        "cluster": {**cluster, "spec": spec},
        "infra_cluster": {**_first(objects, "OpenStackCluster"), "status": _STATUS},
        "cloud_identity": _IDENTITY,
    }


def _first(objects: list[Json], kind: str) -> Json:
    return next((obj for obj in objects if obj.get("kind") == kind), {})


def _environment() -> jinja2.Environment:
    """Charts are the operator's choice, and need nothing of Python."""
    # What is rendered is YAML, as the addon provider has it.
    environment = sandbox.SandboxedEnvironment(autoescape=False)
    environment.filters.update(
        mergeconcat=_merged,
        fromyaml=yaml.safe_load,
        toyaml=lambda value: yaml.safe_dump(json.loads(json.dumps(value, default=_plain))),
        b64encode=lambda data: base64.b64encode(data).decode(),
        b64decode=lambda data: base64.b64decode(data).decode(),
    )
    return environment


def _merged(defaults: Any, *overrides: Any) -> Any:
    """Maps are merged, lists appended, and null changes nothing."""
    result = defaults
    for override in overrides:
        if override is None:
            continue
        if isinstance(result, Mapping) and isinstance(override, Mapping):
            keys = [*result, *(key for key in override if key not in result)]
            result = {key: _merged(result.get(key), override.get(key)) for key in keys}
        elif isinstance(result, list | tuple) and isinstance(override, list | tuple):
            result = [*result, *override]
        else:
            result = override
    return result
