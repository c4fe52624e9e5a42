# SPDX-License-Identifier: Apache-2.0
"""A Helm revision in its Secret (storage driver "secret", Helm 3 and 4).

The release is JSON, compressed with gzip, in base64, and once more in base64 because it is in a
Secret; labels name release, revision and status
(https://helm.sh/docs/topics/advanced/#storage-backends).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator
import copy
import dataclasses
import functools
import gzip
import io
import json
from typing import Any
import zlib

from oslo_utils import timeutils
import yaml

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import Json, LiveRelease, names
from magnum.drivers.k8s_capi_helm.values.sections import autoscaler

#: Words of Helm for a release that a helm run is, or was, in the middle of.
PENDING = frozenset({"pending-install", "pending-upgrade", "pending-rollback"})
#: Statuses of revisions that were applied as a whole.
WHOLE = ("deployed", "superseded")
#: Label of every revision.
OWNER = {"owner": "helm"}
#: Label of a revision that was applied as a whole and that no later one has taken the place of.
DEPLOYED = {"status": "deployed"}
_GZIP = b"\x1f\x8b"
_READER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MALFORMED = (
    *(AttributeError, KeyError, TypeError, ValueError, OSError, EOFError, RecursionError),
    *(OverflowError, zlib.error, binascii.Error),
)
#: Of an unpacked release. etcd takes no Secret above 1.5 MiB, and text packs ten to one or so.
_LARGEST = 64 << 20
#: Revisions whose content is remembered.
_KNOWN_REVISIONS = 16


class _Loader(_READER):  # type: ignore[misc]
    """YAML as Kubernetes reads it: a date is a text."""

    yaml_implicit_resolvers = {
        first: [one for one in known if one[0] != "tag:yaml.org,2002:timestamp"]
        for first, known in _READER.yaml_implicit_resolvers.items()
    }


def release_labels(release: str) -> dict[str, str]:
    """The labels by which Helm finds the revisions of a release."""
    return {**OWNER, "name": release}


def newest_revision(secrets: Iterable[Json]) -> Json | None:
    """The Secret of the newest revision."""
    return max(secrets, key=revision, default=None)


def revision(secret: Json) -> int:
    """The revision that a Secret is of; 0 when it does not say."""
    text = release_label(secret, "version")
    return int(text) if text.isdecimal() else 0


def release_label(secret: Json, name: str) -> str:
    """One of the labels by which Helm finds a Secret; "" without it."""
    return str((secret["metadata"].get("labels") or {}).get(name, ""))


def manifest(secret: Json) -> str:
    """The objects of a revision as YAML.

    :raises errors.HelmRefused: it is not what Helm writes.
    """
    try:
        return str(_unpacked(secret["data"]["release"]).get("manifest") or "")
    except _MALFORMED as error:
        raise _unreadable(secret, error) from None


def documents(manifest: str) -> list[Json]:
    """The objects of a manifest, read as Kubernetes reads YAML: a date is a text.

    :raises errors.HelmRefused: it is not YAML, or something in it is no object.
    """
    try:
        objects = [document for document in yaml.load_all(manifest, _Loader) if document]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _not_objects(type(error).__name__) from None
    if not all(isinstance(document, dict) for document in objects):
        raise _not_objects("a document is no mapping")
    return objects


def with_status(secret: Json, status: str) -> Json:
    """A copy of a Secret with another status of its revision, where Helm looks for it.

    :raises errors.HelmRefused: it is not what Helm writes.
    """
    changed = copy.deepcopy(secret)
    try:
        release = _unpacked(secret["data"]["release"])
        release["info"]["status"] = status
        packed = base64.b64encode(gzip.compress(json.dumps(release).encode()))
    except _MALFORMED as error:
        raise _unreadable(secret, error) from None
    changed["data"]["release"] = base64.b64encode(packed).decode()
    changed["metadata"]["labels"] = {**(changed["metadata"].get("labels") or {}), "status": status}
    return changed


def is_server_side(secret: Json) -> bool:
    """Whether Helm 4 let the server apply a revision; Helm 3 has no such way and says nothing.

    :raises errors.HelmRefused: it is not what Helm writes.
    """
    try:
        return _unpacked(secret["data"]["release"]).get("apply_method") == "ssa"
    except _MALFORMED as error:
        raise _unreadable(secret, error) from None


def decode(secret: Json) -> LiveRelease:
    """What a Secret says of its revision; older ones may have been applied besides.

    :raises errors.HelmRefused: it is not what Helm writes.
    """
    try:
        live, values = _decoded(secret["data"]["release"])
        # A copy for each caller; which fields it has was checked.
        return dataclasses.replace(live, values=json.loads(values))
    except _MALFORMED as error:
        raise _unreadable(secret, error) from None


# A verb reads the same revision several times, and most of it is the chart, which is not used.
@functools.lru_cache(maxsize=_KNOWN_REVISIONS)
def _decoded(data: str) -> tuple[LiveRelease, str]:
    """What a Secret's data say of its revision, without the values, and these as JSON."""
    release = _unpacked(data)
    metadata, revision = release["chart"]["metadata"], int(release["version"])
    status = release["info"]["status"]
    live = LiveRelease(
        name=release["name"],
        namespace=release["namespace"],
        revision=revision,
        status=status,
        chart_name=metadata["name"],
        chart_version=metadata["version"],
        chart_family=(metadata.get("annotations") or {}).get(names.CHART_FAMILY_ANNOTATION, ""),
        values=release.get("config") or {},
        whole=revision if status in WHOLE else 0,
        takes_prefix=any(_autoscaler_templates(release["chart"], autoscaler.takes_prefix)),
        deployed_at=_posix(release["info"].get("last_deployed")),
    )
    _check(live)
    return dataclasses.replace(live, values={}), json.dumps(live.values)


def _posix(text: str | None) -> float:
    """A time as Go writes it, 0 where there is none: a very old Helm writes none."""
    return timeutils.parse_isotime(text).timestamp() if text else 0.0


def _autoscaler_templates(chart: Json, ask: Callable[[str], bool]) -> Iterator[bool]:
    """What is so of the templates that make the autoscaler; Helm keeps those of the chart itself.

    :param ask: called with the text of each.
    """
    for template in chart.get("templates") or ():
        if template["name"].startswith(f"{autoscaler.TEMPLATES}/"):
            yield ask(base64.b64decode(template["data"] or "").decode(errors="replace"))


def _unpacked(data: str) -> Json:
    """The release in the data of a Secret."""
    packed = base64.b64decode(base64.b64decode(data))
    # Very old releases are not compressed; Helm still reads them, too.
    release = json.loads(_unzipped(packed) if packed.startswith(_GZIP) else packed)
    if not isinstance(release, dict):
        raise TypeError(type(release).__name__)
    return release


def _unzipped(packed: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise ValueError(f"more than {_LARGEST} bytes")
    return text


def _check(live: LiveRelease) -> None:
    """Raise TypeError where a field is of another type; Python would take anything."""
    texts = (live.name, live.namespace, live.status)
    for text in (*texts, live.chart_name, live.chart_version, live.chart_family):
        if not isinstance(text, str):
            raise TypeError(type(text).__name__)
    values = live.values
    if not isinstance(values, dict) or not isinstance(values.get("controlPlane", {}), dict):
        raise TypeError(type(values).__name__)
    entries = values.get("nodeGroups") or []
    for entry in entries if isinstance(entries, list) else [entries]:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise TypeError(type(entry).__name__)


def _not_objects(detail: str) -> errors.HelmRefused:
    return errors.HelmRefused(
        "The manifests that the chart of this cluster renders cannot be read. Ask the operator "
        "to look into the log of the Magnum conductor.",
        f"manifest: {detail}",
    )


def _unreadable(secret: Json, error: Exception) -> errors.HelmRefused:
    return errors.HelmRefused(
        "The Helm release of this cluster cannot be read. Ask the operator to look into the log "
        "of the Magnum conductor.",
        # The error's text could quote values.
        f"Secret {secret['metadata']['name']}: {type(error).__name__}",
    )
