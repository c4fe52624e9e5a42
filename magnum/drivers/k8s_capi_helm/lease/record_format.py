# SPDX-License-Identifier: Apache-2.0
"""The format of a Lease's annotations, and the version of the driver that wrote them. No I/O.

While a cloud is upgraded, conductors of two versions change one Lease by turns. A version that adds
keys keeps the format, because an older one preserves keys that it does not know
(:mod:`.unknown_keys`). A version that writes what an older one would misunderstand changes the
format, and the older one refuses the Lease, before it touches anything of the cluster. The lock in
``spec`` has no format of ours: it is used as Kubernetes uses it, so a conductor that already holds
it gives it back in any case.
"""

from __future__ import annotations

from importlib import metadata
import re

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import Json

#: Format of the other annotations; Leases without it are from before it was written, and of "1".
FORMAT = "k8s-capi-helm.magnum.openstack.org/format"
#: Version of the driver that changed the annotations last.
WRITER = "k8s-capi-helm.magnum.openstack.org/writer"
#: The format that this version writes.
WRITES = "1"
#: The formats that this version reads.
READS = ("1",)
#: In place of a version or format that nothing says.
UNKNOWN = "unknown"
_TEXT = re.compile(r"[0-9A-Za-z.+-]{1,32}", re.ASCII)


def _installed_version() -> str:
    try:
        return metadata.version("magnum-k8s-capi-helm")
    except metadata.PackageNotFoundError:
        return UNKNOWN


#: Read once: the package may be replaced while this process runs.
VERSION = _installed_version()


def is_readable(lease: Json) -> bool:
    """Whether this version knows the format of a Lease."""
    return _annotations(lease).get(FORMAT, "1") in READS


def require_readable(lease: Json) -> None:
    """Refuse a Lease in a format that this version does not know.

    :raises errors.ManagementRefused: with the version that wrote it; nothing was touched.
    """
    if is_readable(lease):
        return
    name, notes = lease["metadata"].get("name", ""), _annotations(lease)
    writer, found = _text(notes.get(WRITER)), _text(notes.get(FORMAT))
    if writer in (UNKNOWN, VERSION):
        sentence = (
            f"The record of cluster operations, Lease '{name}', has the format {found}, which no "
            "other version is recorded to have written. Nothing was changed. Ask the operator to "
            f"correct its annotation '{FORMAT}': version {VERSION} of the driver writes {WRITES}."
        )
    else:
        sentence = (
            f"The record of cluster operations, Lease '{name}', has a newer format, which this "
            f"conductor cannot read. Version {writer} of the driver wrote it in format {found}; "
            f"this is version {VERSION}. Nothing was changed. Ask the operator to run version "
            f"{writer} or newer on all hosts of magnum-conductor."
        )
    where = f"Lease {lease['metadata'].get('namespace', '')}/{name}: format {found}"
    raise errors.ManagementRefused(sentence, where)


def record_writer(lease: Json) -> None:
    """Write down that this version has changed a Lease."""
    lease["metadata"].setdefault("annotations", {}).update({FORMAT: WRITES, WRITER: VERSION})


def _annotations(lease: Json) -> Json:
    annotations: Json = lease["metadata"].get("annotations") or {}
    return annotations


def _text(found: object) -> str:
    """An annotation that a sentence may quote: a client with access to Leases writes any text."""
    return found if isinstance(found, str) and _TEXT.fullmatch(found) else UNKNOWN
