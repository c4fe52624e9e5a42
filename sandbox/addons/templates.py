# SPDX-License-Identifier: Apache-2.0
"""Render the values or the manifests of an addon as the addon provider does, with Jinja2."""

import base64
from collections.abc import Iterable, Mapping
import hashlib
import json
import re
from typing import Any

import jinja2
import yaml

Document = Mapping[str, Any]
Sources = Mapping[tuple[str, str], Document | None]


class FailedToRender(Exception):
    """A template, or the YAML that it makes, is broken; the text says which source and why."""


def render(addon: Document, sources: Sources, context: Mapping[str, Any]) -> Any:
    """Values of a HelmRelease (a map) or objects of Manifests (a list).

    :param sources: the ConfigMaps and Secrets that the addon names.
    :param context: variables of the templates.
    :raises FailedToRender: a template or its result is broken.
    """
    spec = addon["spec"]
    if addon["kind"] == "Manifests":
        return [
            document
            for source in spec.get("manifestSources") or []
            for name, text in _manifest_texts(source, sources)
            for document in _documents(name, _fill(name, text, context))
        ]
    values: Any = {}
    for source in spec.get("valuesSources") or []:
        name, text = _values_text(source, sources)
        for document in _documents(name, _fill(name, text, context)):
            if not isinstance(document, Mapping):
                raise FailedToRender(f"{name} does not render to a map")
            values = mergeconcat(values, document)
    return values


def mergeconcat(defaults: Any, *overrides: Any) -> Any:
    """Merge maps deeply, append lists, and let anything but null override."""
    result = defaults
    for override in overrides:
        if override is None:
            continue
        if isinstance(result, Mapping) and isinstance(override, Mapping):
            keys = [*result, *(key for key in override if key not in result)]
            result = {key: mergeconcat(result.get(key), override.get(key)) for key in keys}
        elif isinstance(result, list) and isinstance(override, list):
            result = result + override
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
    """Changes with the content of a ConfigMap or Secret."""
    content = json.dumps([source.get("data"), source.get("binaryData")], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def matches(pattern: str | None, name: str) -> bool:
    """Whether a fault's regular expression finds something in a name; a broken one never does."""
    try:
        return bool(pattern) and re.search(str(pattern), name) is not None
    except re.error:
        return False


def _values_text(source: Document, sources: Sources) -> tuple[str, str]:
    if "template" in source:
        return "template", source["template"]
    kind, key = ("ConfigMap", "configMap") if "configMap" in source else ("Secret", "secret")
    chosen = source[key].get("key", "values.yaml")
    name = f"{kind} {source[key]['name']}"
    data = _data(kind, sources.get((kind, source[key]["name"])))
    if chosen not in data:
        raise FailedToRender(f"{name} has no key {chosen!r}")
    return f"{name} key {chosen}", data[chosen]


def _manifest_texts(source: Document, sources: Sources) -> list[tuple[str, str]]:
    if "template" in source:
        return [("template", source["template"])]
    kind, key = ("ConfigMap", "configMap") if "configMap" in source else ("Secret", "secret")
    reference = source[key]
    data = _data(kind, sources.get((kind, reference["name"])))
    wanted = reference.get("keys") or list(data)
    excluded = reference.get("excludeKeys") or []
    return [
        (f"{kind} {reference['name']} key {name}", data[name])
        for name in wanted
        if name in data and name not in excluded
    ]


def _data(kind: str, source: Document | None) -> dict[str, str]:
    data: Mapping[str, str] = (source or {}).get("data") or {}
    if kind == "ConfigMap":
        return dict(data)
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def _documents(name: str, text: str) -> list[Any]:
    try:
        return [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "syntax error"
        raise FailedToRender(f"{name} does not render to YAML: {problem}") from error


def _fill(name: str, text: str, context: Mapping[str, Any]) -> str:
    try:
        return _environment().from_string(text).render(**context)
    except (jinja2.TemplateError, TypeError, ValueError, KeyError) as error:
        raise FailedToRender(f"{name}: {type(error).__name__}: {error}") from error


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(autoescape=False)
    environment.filters.update(
        mergeconcat=mergeconcat,
        fromyaml=yaml.safe_load,
        toyaml=yaml.safe_dump,
        b64encode=lambda data: base64.b64encode(_bytes(data)).decode(),
        b64decode=lambda text: base64.b64decode(text).decode(),
    )
    return environment


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data
