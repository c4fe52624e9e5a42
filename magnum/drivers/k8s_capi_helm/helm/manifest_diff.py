# SPDX-License-Identifier: Apache-2.0
"""Compare rendered objects with existing ones: the fields that would change."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
import re
from typing import Any

from magnum.drivers.k8s_capi_helm.model import Json, names

#: Whose an object is says Helm in these (https://helm.sh/docs/chart_best_practices/labels/).
RELEASE_NAME = "meta.helm.sh/release-name"
RELEASE_NAMESPACE = "meta.helm.sh/release-namespace"
_OWNERSHIP = frozenset({RELEASE_NAME, RELEASE_NAMESPACE, "app.kubernetes.io/managed-by"})
_SPAN = re.compile(r"(\d+h)?(\d+m)?(\d+s)?")
_SECONDS = {"h": 3600, "m": 60, "s": 1}


def differences(rendered: Json, there: Json) -> Iterator[str]:
    """Paths of the fields that would change, were *rendered* applied.

    What the server or a controller has added stays either way; whose an object is does not count.
    """
    yield from _differing(_content(rendered), _content(there), "")


def foreign_owner(there: Json, namespace: str, release: str) -> str:
    """The release that an object says it belongs to, "" if it is this one or none."""
    notes = there["metadata"].get("annotations") or {}
    owner = notes.get(RELEASE_NAME, release)
    place = notes.get(RELEASE_NAMESPACE, namespace)
    return "" if (owner, place) == (release, namespace) else f"{place}/{owner}"


def owner_uuid(there: Json) -> str:
    """The UUID of the Magnum cluster that an object says it is of, "" if it does not say."""
    return str((there["metadata"].get("labels") or {}).get(names.LABEL_UUID, ""))


def _content(thing: Json) -> Json:
    rest = {
        key: value
        for key, value in thing.items()
        if key not in ("apiVersion", "kind", "metadata", "status", "stringData")
    }
    if "stringData" in thing:
        texts = thing["stringData"] or {}
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        rest["data"] = {**(rest.get("data") or {}), **encoded}
    for field in ("labels", "annotations"):
        marks = thing["metadata"].get(field) or {}
        rest[field] = {key: text for key, text in marks.items() if key not in _OWNERSHIP}
    return rest


def _differing(wanted: Any, have: Any, path: str) -> Iterator[str]:
    if isinstance(wanted, Mapping) and isinstance(have, Mapping):
        for key, value in wanted.items():
            yield from _differing(value, have.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(wanted, list) and isinstance(have, list) and len(wanted) == len(have):
        for number, (one, other) in enumerate(zip(wanted, have, strict=True)):
            yield from _differing(one, other, f"{path}[{number}]")
    elif not _is_same(wanted, have):
        yield path


def _is_same(wanted: Any, have: Any) -> bool:
    """Whether the server would keep the one for the other: it drops what is empty."""
    if wanted == have or (have is None and not wanted):
        return True
    if have is None and isinstance(wanted, Mapping):
        return all(_is_same(value, None) for value in wanted.values())
    both = isinstance(wanted, str) and isinstance(have, str)
    return both and _seconds(wanted) is not None and _seconds(wanted) == _seconds(have)


def _seconds(text: str) -> int | None:
    """A span of time as Go writes it (``5m``, ``5m0s``), None for another text."""
    found = _SPAN.fullmatch(text)
    if not text or found is None:
        return None
    return sum(int(part[:-1]) * _SECONDS[part[-1]] for part in found.groups() if part)
