# SPDX-License-Identifier: Apache-2.0
"""Render values and manifests of an addon with Jinja2, like the addon provider.

What is broken raises what Jinja2, PyYAML or Python raise: the addon provider handles none of it.
"""

import base64
from collections.abc import Iterable, Mapping
import datetime
import hashlib
import json
import re
from types import GeneratorType
from typing import Any

import jinja2
import yaml

from sandbox.addons import model

Document = Mapping[str, Any]
Sources = Mapping[tuple[str, str], Document | None]


def render(addon: Document, sources: Sources, context: Mapping[str, Any]) -> Any:
    """Values of a HelmRelease (what its sources render to) or objects of Manifests (a list).

    :param sources: the ConfigMaps and Secrets that the addon names.
    :param context: variables of the templates.
    :raises Exception: a template, the YAML that it makes, or a source is broken.
    """
    spec = addon["spec"]
    if addon["kind"] == "Manifests":
        return [
            document
            for source in spec.get("manifestSources") or []
            for text in _manifest_texts(source, sources)
            for document in yaml.safe_load_all(_fill(text, context))
        ]
    values: Any = {}
    for source in spec.get("valuesSources") or []:
        text = _values_text(source, sources)
        values = mergeconcat(values, yaml.safe_load(_fill(text, context)))
    return values


def files(documents: Iterable[Any]) -> dict[str, Document]:
    """The chart that is made of Manifests: each object by the name of its file, the last one wins.

    :raises Exception: one has no API version, kind or name; an empty document is such a one.
    """
    return {
        f"{one['apiVersion'].replace('/', '_')}_{one['kind'].lower()}"
        f"_{one['metadata'].get('namespace', '')}_{one['metadata']['name']}.yaml": one
        for one in documents
    }


def mergeconcat(defaults: Any, *overrides: Any) -> Any:
    """Merge maps deeply, append lists, and let anything but null override."""
    result = defaults
    for override in overrides:
        if override is None:
            continue
        if isinstance(result, Mapping) and isinstance(override, Mapping):
            keys = [*result, *(key for key in override if key not in result)]
            result = {key: mergeconcat(result.get(key), override.get(key)) for key in keys}
        elif isinstance(result, list | tuple) and isinstance(override, list | tuple):
            result = [*result, *override]
        else:
            result = override
    return result


def resources(documents: Iterable[Document]) -> list[dict[str, str]]:
    """status.resources for the objects of Manifests."""
    found = []
    for document in documents:
        meta = document.get("metadata") or {}
        entry = {"apiVersion": document["apiVersion"], "kind": document["kind"]}
        entry["name"] = meta.get("name", "")
        if "namespace" in meta:
            entry["namespace"] = meta["namespace"]
        found.append(entry)
    return found


def checksum(source: Document) -> str:
    """Changes with the texts of a ConfigMap or the data of a Secret, as they are stored."""
    content = ";".join(sorted(f"{key}={text}" for key, text in (source.get("data") or {}).items()))
    return hashlib.sha256(content.encode()).hexdigest()


def matches(pattern: str | None, name: str) -> bool:
    """Whether a fault's regular expression finds something in a name; a broken one never does."""
    try:
        return bool(pattern) and re.search(str(pattern), name) is not None
    except re.error:
        return False


def _values_text(source: Document, sources: Sources) -> str:
    if "template" in source:
        return str(source["template"])
    kind, reference = _reference(source)
    return _data(kind, sources.get((kind, reference["name"])))[reference.get("key", "values.yaml")]


def _manifest_texts(source: Document, sources: Sources) -> list[str]:
    if "template" in source:
        return [source["template"]]
    kind, reference = _reference(source)
    data = _data(kind, sources.get((kind, reference["name"])))
    wanted = reference.get("keys") or data
    excluded = reference.get("excludeKeys") or ()
    return [text for key, text in data.items() if key in wanted and key not in excluded]


def _reference(source: Document) -> tuple[str, Document]:
    return (
        ("ConfigMap", source["configMap"])
        if "configMap" in source
        else ("Secret", source["secret"])
    )


def _data(kind: str, source: Document | None) -> dict[str, str]:
    data: Mapping[str, str] = (source or {})["data"]
    if kind == "ConfigMap":
        return dict(data)
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def _fill(text: str, context: Mapping[str, Any]) -> str:
    return _environment().from_string(text).render(**context)


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(autoescape=False)  # YAML, as the addon provider has it
    environment.filters.update(
        mergeconcat=mergeconcat,
        fromyaml=yaml.safe_load,
        toyaml=lambda value: yaml.safe_dump(json.loads(json.dumps(value, default=_plain))),
        b64encode=lambda data: base64.b64encode(data).decode(),
        b64decode=lambda data: base64.b64decode(data).decode(),
    )
    return environment


def _plain(value: Any) -> Any:
    """What YAML and templates have and JSON has not, as pydantic's encoder writes it."""
    if isinstance(value, model.Model):
        return value.dump()
    if isinstance(value, datetime.date):  # a datetime is one, too
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, set | GeneratorType):
        return list(value)
    raise TypeError(f"Object of type {type(value).__name__!r} is not JSON serializable")
