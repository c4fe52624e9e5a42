# SPDX-License-Identifier: Apache-2.0
"""Find and read overlays by name in the operator's directory, never outside of it."""

from __future__ import annotations

from collections.abc import Sequence
import pathlib

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.conf import overlay_template, overlay_yaml
from magnum.drivers.k8s_capi_helm.conf.overlay_yaml import Overlay

#: The overlay of every cluster, if there is one.
SITE = "site"
_SENTENCE = (
    "The operator's configuration for clusters ({name}) cannot be used. Ask the operator to look "
    "into the log of the Magnum conductor."
)
_LARGEST = 1 << 20


def read_overlays(
    directory: str, name: str | None, context: overlay_template.Context | None
) -> tuple[Overlay, ...]:
    """The site's overlay and the named one, in the order in which they are merged.

    :param directory: of the operator's, "" for none.
    :param name: as a template's label has it, None without.
    :param context: for the templates in them; None leaves these as they are.
    :raises errors.InvalidLabel: there is no overlay of that name.
    :raises errors.InvalidConfiguration: one cannot be read; file, line and key are in the detail.
    """
    return tuple(_read(file, context) for file in overlay_files(directory, name))


def overlay_files(directory: str, name: str | None) -> tuple[pathlib.Path, ...]:
    """Paths of the overlays in use, the site's first.

    :raises errors.InvalidLabel: there is none of that name.
    :raises errors.InvalidConfiguration: the directory is not there or cannot be read, or a file
        leads out of it or nowhere.
    """
    paths = []
    if directory and (site := _file(directory, SITE)) is not None:
        paths.append(site)
    if name is not None and name != SITE:
        path = _file(directory, name) if directory else None
        if path is None:
            raise errors.InvalidLabel(
                "capi_helm_overlay", name, "the name of an overlay that this cloud's operator has"
            )
        paths.append(path)
    return tuple(paths)


def invalid_overlay(name: str, detail: str) -> errors.InvalidConfiguration:
    """The error for an overlay that cannot be used.

    :param detail: file, line, key and what is wrong there.
    """
    return errors.InvalidConfiguration(_SENTENCE.format(name=f"overlay '{name}'"), detail)


def overlays_with(
    directory: str, name: str | None, refused_keys: Sequence[tuple[str, ...]]
) -> tuple[str, str] | None:
    """Which overlay has set one of the keys that a chart refused; None if it was not an overlay.

    :param refused_keys: paths of keys.
    :returns: the overlay's name, and file, line and key.
    """
    try:
        overlays = read_overlays(directory, name, None)
    except errors.DriverError:
        return None
    for overlay in reversed(overlays):
        for path in refused_keys:
            if location := overlay.setting(path):
                return overlay.name, overlay.location(location)
    return None


def _file(directory: str, name: str) -> pathlib.Path | None:
    """The file of an overlay; None if a readable directory has none.

    A name is one word (the label's form), so only a link could lead out of the directory.
    """
    path = pathlib.Path(directory) / f"{name}.yaml"
    try:
        root = pathlib.Path(directory).resolve(strict=True)
        try:
            path.lstat()
        except FileNotFoundError:
            return None
        target = path.resolve(strict=True)
        readable = target.is_file()
    except (OSError, RuntimeError) as error:  # Python 3.11 raises the latter for links in a circle
        raise invalid_overlay(name, f"{path} in [capi_helm] overlay_directory: {error}") from None
    if not target.is_relative_to(root):
        raise invalid_overlay(
            name, f"{path} is a link that leads out of [capi_helm] overlay_directory"
        )
    if not readable:
        raise invalid_overlay(name, f"{path} is not a regular file")
    return root / path.name


def _read(path: pathlib.Path, context: overlay_template.Context | None) -> Overlay:
    try:
        if path.stat().st_size > _LARGEST:
            raise invalid_overlay(path.stem, f"{path} is larger than {_LARGEST} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise invalid_overlay(path.stem, f"{path}: {error}") from None
    try:
        return overlay_yaml.overlay(str(path), text, context)
    except overlay_yaml.UnreadableOverlay as error:
        raise invalid_overlay(path.stem, f"{path}, {error}") from None
