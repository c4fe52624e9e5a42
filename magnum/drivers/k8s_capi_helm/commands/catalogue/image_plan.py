# SPDX-License-Identifier: Apache-2.0
"""What has to change of images in Glance, so that they are as a catalogue says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import dataclasses
import functools
from typing import Any

from magnum.drivers.k8s_capi_helm.cloud.preflight import machines
from magnum.drivers.k8s_capi_helm.commands.catalogue.file import Catalogue, data_hash, ImageEntry
from magnum.drivers.k8s_capi_helm.commands.catalogue.plan import CatalogueChange
from magnum.drivers.k8s_capi_helm.commands.templates.images import architecture_problems
from magnum.drivers.k8s_capi_helm.model import cloud, Image, ListedImage
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

_PUBLIC = "public"


@dataclasses.dataclass(frozen=True, slots=True)
class ImagePlan:
    """The changes of an image of a catalogue.

    :ivar image: as the driver is to read it, with an id that Glance does not have yet if it is new.
    :ivar problems: why it is refused.
    """

    entry: ImageEntry
    image: Image
    problems: tuple[str, ...]
    changes: tuple[CatalogueChange, ...] = ()


def plan_image(
    run: Reconciliation, catalogue: Catalogue, entry: ImageEntry, all_images: Iterable[ListedImage]
) -> ImagePlan:
    """The changes of one image.

    Images of other projects that are not public may have any name.

    :param all_images: of Glance.
    """
    existing = [
        listed
        for listed in all_images
        if listed.name == entry.name
        and (listed.project_id == catalogue.project_id or listed.visibility == _PUBLIC)
    ]
    shown = [listed for listed in existing if not listed.hidden] or existing
    current = shown[0] if len(shown) == 1 else None
    found = [] if len(shown) < 2 else [_ambiguous(entry, shown)]
    found += _data_problems(entry, current) if len(shown) < 2 else []
    image = _image(entry, current)
    found += machines.listed_image_problems(entry.name, image, cloud.DISTROS)
    found += architecture_problems(entry.properties, None)
    if found:
        return ImagePlan(entry, image, tuple(found))
    if current is None:
        change = _create(run, catalogue, entry)
        return ImagePlan(entry, image, (), (change,))
    return ImagePlan(entry, image, (), tuple(_update(run, entry, current)))


def _ambiguous(entry: ImageEntry, shown: Iterable[ListedImage]) -> str:
    ids = ", ".join(sorted(listed.image.id for listed in shown))
    return (
        f"The name of the image is not unique. These are named '{entry.name}': {ids}. Rename or "
        "hide all but one."
    )


def _data_problems(entry: ImageEntry, current: ListedImage | None) -> Iterator[str]:
    """Data that do not exist, or that are not those of the image."""
    if current is not None:
        if entry.data_hash and current.data_hash and entry.data_hash != current.data_hash:
            yield (
                "The image has other data than the catalogue says, and Glance cannot change them. "
                f"Its sha512 is '{current.data_hash[:12]}...', and the catalogue has "
                f"'{entry.data_hash[:12]}...': give the new image another name."
            )
        return
    if entry.path is None:
        yield "The image does not exist, and the catalogue names no file of its data."
        return
    try:
        # Data of gigabytes are read only where there is something to compare them with.
        found = data_hash(entry.path) if entry.data_hash else ""
        entry.path.open("rb").close()
    except OSError as error:
        yield f"The file of the image cannot be read. {entry.path}: {error.strerror or error}."
        return
    if found != entry.data_hash:
        yield (
            f"The file of the image has another sha512 than the catalogue says. {entry.path} has "
            f"'{found[:12]}...', and the catalogue '{entry.data_hash[:12]}...'."
        )


def _image(entry: ImageEntry, current: ListedImage | None) -> Image:
    """What the driver is going to read of an image."""
    properties = {**(current.properties if current else {}), **entry.properties}
    try:
        disk = entry.disk() if current is None else current.image.disk
    except OSError:
        disk = 0
    return Image(
        id=current.image.id if current else f"(new image '{entry.name}')",
        kubernetes_version=properties.get("kube_version", "").strip().lstrip("v"),
        os_distro=properties.get("os_distro", ""),
        status=current.image.status if current else "active",
        disk=max(disk, int(entry.fields.get("min_disk", 0))),
        ram=int(entry.fields.get("min_ram", current.image.ram if current else 0)),
    )


def _create(run: Reconciliation, catalogue: Catalogue, entry: ImageEntry) -> CatalogueChange:
    fields = {
        **entry.fields,
        **entry.properties,
        "owner": catalogue.project_id,
        "disk_format": entry.disk_format,
        "container_format": "bare",
    }
    assert entry.path is not None
    create = functools.partial(run.cloud().image_catalogue.create, entry.name, entry.path, fields)
    texts = tuple(f"{name}: {value!r}" for name, value in entry.properties.items())
    return CatalogueChange("image", entry.name, "create", texts, create)


def _update(
    run: Reconciliation, entry: ImageEntry, current: ListedImage
) -> Iterator[CatalogueChange]:
    """Properties that the file does not name stay."""
    now = {
        "visibility": current.visibility,
        "is_hidden": current.hidden,
        "min_disk": current.min_disk,
        "min_ram": current.image.ram,
    }
    wanted: dict[str, Any] = {**entry.fields, **entry.properties}
    before = {name: now.get(name, current.properties.get(name)) for name in wanted}
    fields = {name: value for name, value in wanted.items() if not _is_same(before[name], value)}
    if fields:
        texts = tuple(f"{name}: {before[name]!r} -> {value!r}" for name, value in fields.items())
        change = functools.partial(run.cloud().image_catalogue.change, current.image.id, fields)
        yield CatalogueChange("image", entry.name, "update", texts, change)


def _is_same(before: Any, value: Any) -> bool:
    """Whether a field has a value; a text that is a truth value may be in any case."""
    texts = {str(before).lower(), str(value).lower()}
    return bool(before == value or texts in ({"true"}, {"false"}))
