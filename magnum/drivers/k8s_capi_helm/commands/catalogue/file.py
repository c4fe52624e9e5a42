# SPDX-License-Identifier: Apache-2.0
"""Read a catalogue: a YAML file of the images and cluster templates that an operator offers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses
import hashlib
import pathlib
import re
from typing import Any

import jsonschema
import yaml

from magnum.drivers.k8s_capi_helm import errors

_LARGEST = 1 << 20
_GIBIBYTE = 1024**3
_CHUNK = 1 << 20
_TEXT = {"type": "string", "minLength": 1, "maxLength": 255}
_FLAG = {"type": "boolean"}
_POSITIVE = {"type": "integer", "minimum": 1}
#: Fields of a template as Magnum's API has them
#: (https://docs.openstack.org/api-ref/container-infrastructure-management/#create-new-cluster-template).
TEMPLATE_TEXTS = tuple(
    """
    image_id flavor_id master_flavor_id keypair_id external_network_id fixed_network fixed_subnet
    network_driver volume_driver dns_nameserver http_proxy https_proxy no_proxy insecure_registry
    docker_storage_driver
    """.split()
)
TEMPLATE_NUMBERS = ("apiserver_port", "docker_volume_size")
TEMPLATE_FLAGS = (
    "public",
    "hidden",
    "master_lb_enabled",
    "floating_ip_enabled",
    "registry_enabled",
    "tls_disabled",
)
_FIELDS: Mapping[str, Any] = {
    **dict.fromkeys(TEMPLATE_TEXTS, _TEXT),
    **dict.fromkeys(TEMPLATE_NUMBERS, _POSITIVE),
    **dict.fromkeys(TEMPLATE_FLAGS, _FLAG),
    "server_type": {"enum": ["vm", "bm"]},
    # YAML reads 1.30 as the number 1.3.
    "labels": {
        "type": "object",
        "additionalProperties": {"type": ["string", "integer", "boolean"]},
    },
}
_IMAGE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "properties"],
    "dependentRequired": {"disk_format": ["file"]},
    "properties": {
        "name": _TEXT,
        "file": _TEXT,
        "disk_format": {"enum": ["qcow2", "raw", "vmdk", "vhd", "vhdx"]},
        "sha512": {"type": "string", "pattern": "^[0-9a-f]{128}$"},
        "visibility": {"enum": ["public", "community", "shared", "private"]},
        "hidden": _FLAG,
        "min_disk": {"type": "integer", "minimum": 0},
        "min_ram": {"type": "integer", "minimum": 0},
        "properties": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": "^[A-Za-z][A-Za-z0-9_:.-]{0,254}$"},
            "additionalProperties": {"type": "string"},
        },
    },
}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["project"],
    "properties": {
        "project": {"type": "string", "minLength": 1, "maxLength": 64},
        "defaults": {"type": "object", "additionalProperties": False, "properties": _FIELDS},
        "images": {"type": "array", "items": _IMAGE},
        "templates": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "pattern": "^[^\\s].{0,239}$"},
                    **_FIELDS,
                },
            },
        },
    },
}
#: The ending of the name of a template that replaces one in use.
REVISION = re.compile(r"-r([0-9]+)$")


@dataclasses.dataclass(frozen=True, slots=True)
class ImageEntry:
    """An image of a catalogue.

    :ivar fields: of the image in Glance, besides its name and its properties.
    :ivar path: of its data, None without.
    :ivar disk_format: of the data.
    :ivar data_hash: SHA-512 of the data, "" if the file does not say it.
    """

    name: str
    properties: Mapping[str, str]
    fields: Mapping[str, Any]
    path: pathlib.Path | None = None
    disk_format: str = "qcow2"
    data_hash: str = ""

    def disk(self) -> int:
        """GiB that a disk needs to hold it.

        :raises OSError: its data cannot be read.
        """
        size = self.path.stat().st_size if self.path else 0
        return max(int(self.fields.get("min_disk", 0)), -(-size // _GIBIBYTE))


@dataclasses.dataclass(frozen=True, slots=True)
class TemplateEntry:
    """A cluster template of a catalogue.

    :ivar fields: as Magnum keeps them, besides what it derives from the image.
    """

    name: str
    fields: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Catalogue:
    """What a file says.

    :ivar project_id: of the project that owns templates and images.
    """

    project_id: str
    images: tuple[ImageEntry, ...]
    templates: tuple[TemplateEntry, ...]


def read_catalogue(path: str) -> Catalogue:
    """The catalogue in a file.

    :raises errors.InvalidRequest: it cannot be read, or something in it is none; with the place in
        the file and the value.
    """
    file = pathlib.Path(path)
    try:
        if file.stat().st_size > _LARGEST:
            raise ValueError(f"it is larger than {_LARGEST} bytes")
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
        jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)
    except jsonschema.ValidationError as error:
        raise _invalid(path, f"{error.json_path}: {error.message}") from None
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise _invalid(path, " ".join(str(error).split())) from None
    images, templates = document.get("images", []), document.get("templates", [])
    _check_names(path, "images", images)
    _check_names(path, "templates", templates)
    _check_revisions(path, templates)
    return Catalogue(
        project_id=document["project"],
        images=tuple(_image(file.parent, image) for image in images),
        templates=tuple(_template(document.get("defaults", {}), entry) for entry in templates),
    )


def _check_names(path: str, kind: str, entries: Iterable[Mapping[str, Any]]) -> None:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        if entry["name"] in seen:
            raise _invalid(path, f"$.{kind}[{index}].name: there are two of '{entry['name']}'")
        seen.add(entry["name"])


def _check_revisions(path: str, entries: Iterable[Mapping[str, Any]]) -> None:
    for index, entry in enumerate(entries):
        if REVISION.search(entry["name"]):
            raise _invalid(
                path,
                f"$.templates[{index}].name: '{entry['name']}' ends like a revision, and the "
                "command makes these itself",
            )


def _image(directory: pathlib.Path, entry: Mapping[str, Any]) -> ImageEntry:
    return ImageEntry(
        name=entry["name"],
        properties=entry["properties"],
        fields={
            "visibility": entry.get("visibility", "public"),
            "is_hidden": entry.get("hidden", False),
            **{field: entry[field] for field in ("min_disk", "min_ram") if field in entry},
        },
        path=directory / entry["file"] if "file" in entry else None,
        disk_format=entry.get("disk_format", "qcow2"),
        data_hash=entry.get("sha512", ""),
    )


def _template(defaults: Mapping[str, Any], entry: Mapping[str, Any]) -> TemplateEntry:
    """A template over the defaults of the file, and these over those of Magnum's API."""
    given = {**defaults, **entry}
    texts = {**defaults.get("labels", {}), **entry.get("labels", {})}
    fields = {
        **dict.fromkeys((*TEMPLATE_TEXTS, *TEMPLATE_NUMBERS)),
        **dict.fromkeys(TEMPLATE_FLAGS, False),
        "floating_ip_enabled": True,
        "public": True,
        "server_type": "vm",
        **given,
        "labels": {name: _label_text(value) for name, value in sorted(texts.items())},
    }
    del fields["name"]
    return TemplateEntry(entry["name"], fields)


def _label_text(value: str | int | bool) -> str:
    """A label as Magnum keeps it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def data_hash(path: pathlib.Path) -> str:
    """SHA-512 of a file.

    :raises OSError: it cannot be read.
    """
    total = hashlib.sha512()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            total.update(chunk)
    return total.hexdigest()


def _invalid(path: str, detail: str) -> errors.InvalidRequest:
    return errors.InvalidRequest(f"The catalogue cannot be used. {path}: {detail}.")
