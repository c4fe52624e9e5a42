# SPDX-License-Identifier: Apache-2.0
"""An addon as the templates of the addon provider see it.

The provider hands its templates no object of the API but a model of it: ``addon.spec.release_name``
is there and ``addon.spec.releaseName`` is not, a field that is not set has its default, and one
that the provider does not know is not there. Cluster, infrastructure cluster and identity are what
the API server sent.
"""

from collections.abc import Mapping
import datetime
import re
from types import SimpleNamespace
from typing import Any
from urllib import parse

#: Fields of an addon by their path, each with its default; a type stands for a new one of it.
_METADATA: dict[str, Any] = {
    "name": None,
    "namespace": None,
    "labels": dict,
    "annotations": dict,
    "ownerReferences": list,
    "finalizers": list,
    "uid": None,
    "creationTimestamp": None,
    "deletionTimestamp": None,
    "resourceVersion": None,
}
_SPEC: dict[str, Any] = {
    "clusterName": None,
    "bootstrap": False,
    "targetNamespace": None,
    "releaseName": None,
    "releaseTimeout": None,
    "lifecycleHooks": {
        "preUpgrade": list,
        "postUpgrade": list,
        "preDelete": list,
        "postDelete": list,
    },
    "paused": False,
}
_KIND: dict[str, dict[str, Any]] = {
    "HelmRelease": {"chart": {"repo": None, "name": None, "version": None}, "valuesSources": list},
    "Manifests": {"manifestSources": list},
}
_STATUS: dict[str, Any] = {
    "phase": "Unknown",
    "revision": 0,
    "resources": list,
    "notes": None,
    "failureMessage": "",
}
#: Fields of the items of lists; of a source only the field that it has is there.
_ITEMS: dict[str, dict[str, Any]] = {
    "ownerReferences": {
        "apiVersion": None,
        "kind": None,
        "name": None,
        "uid": None,
        "blockOwnerDeletion": False,
        "controller": False,
    },
    "resources": {"apiVersion": None, "kind": None, "name": None, "namespace": ""},
}
_HOOK: dict[str, Any] = {
    "apiVersion": None,
    "kind": None,
    "name": None,
    "selector": dict,
    "action": None,
    "options": dict,
}
_ITEMS |= dict.fromkeys(("preUpgrade", "postUpgrade", "preDelete", "postDelete"), _HOOK)
_SOURCE: dict[str, dict[str, Any]] = {
    "valuesSources": {"name": None, "key": "values.yaml"},
    "manifestSources": {"name": None, "keys": list, "excludeKeys": list},
}
_TIMES = ("creationTimestamp", "deletionTimestamp")


class Model(SimpleNamespace):
    """Fields by attribute only; as data, by the names of the API."""

    def dump(self) -> dict[str, Any]:
        """What ``toyaml`` writes of it."""
        return {_camel(name): _dumped(value) for name, value in vars(self).items()}


def of(addon: Mapping[str, Any]) -> Model:
    """The model of a HelmRelease or Manifests."""
    spec = _SPEC | _KIND[addon["kind"]]
    fields = {
        "apiVersion": None,
        "kind": None,
        "metadata": _METADATA,
        "spec": spec,
        "status": _STATUS,
    }
    return _model(fields, addon)


def _model(fields: Mapping[str, Any], given: Mapping[str, Any]) -> Model:
    return Model(
        **{_snake(name): _field(name, default, given.get(name)) for name, default in fields.items()}
    )


def _field(name: str, default: Any, given: Any) -> Any:
    if isinstance(default, dict):
        return _model(default, given or {})
    if given is None:
        return default() if isinstance(default, type) else default
    if name in _SOURCE:
        return [_source(name, one) for one in given]
    if name in _ITEMS:
        return [_model(_ITEMS[name], one) for one in given]
    if name in _TIMES:
        return datetime.datetime.fromisoformat(given)
    if name == "repo":
        return _url(given)
    return str(given) if name == "releaseTimeout" else given


def _url(given: str) -> str:
    """A URL as the provider's model writes it: one without a path gets the root."""
    parts = parse.urlsplit(given)
    return parts._replace(path=parts.path or "/").geturl()


def _source(name: str, given: Mapping[str, Any]) -> Model:
    (kind,) = given
    if kind == "template":
        return Model(template=given[kind])
    return Model(**{_snake(kind): _model(_SOURCE[name], given[kind])})


def _dumped(value: Any) -> Any:
    if isinstance(value, Model):
        return value.dump()
    if isinstance(value, list):
        return [_dumped(one) for one in value]
    return value.isoformat() if isinstance(value, datetime.datetime) else value


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)
