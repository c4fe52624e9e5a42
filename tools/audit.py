# SPDX-License-Identifier: Apache-2.0
"""Compare pinned versions with known vulnerabilities from a file of advisories.

The advisories are files in the OSV format (https://ossf.github.io/osv-schema/), JSON or YAML, in a
directory or a zip archive: the archives of OSV per ecosystem and a checkout of PyPA's advisory
database are such. Nothing is asked over a network. pip-audit reads no local file
(https://github.com/pypa/pip-audit/issues/698), and osv-scanner needs a newer Go than the sandbox.

Compared are the Python packages of sandbox/constraints.txt and of this environment, the Go modules
of sandbox/go, and the charts and images that charts/ names with a version (OSV has no ecosystem for
the latter: advisories of one's own call it Helm and OCI). Floors of the wheel's requirements that
an advisory names are told, and are no failure: which version is installed is for others to say.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
import dataclasses
import functools
import importlib.metadata
import json
import os
from pathlib import Path
import re
import sys
import tomllib
from typing import Any
import zipfile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
import yaml

ROOT = Path(__file__).resolve().parent.parent
FOUND, UNUSABLE = 1, 2
NO_FILE = (
    "No advisories were given, so nothing was compared. Download https://osv-vulnerabilities."
    "storage.googleapis.com/PyPI/all.zip and .../Go/all.zip where that can be reached, put them "
    "into one directory and run: make audit ADVISORIES=DIRECTORY"
)
_PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^]]*\])?===?(?P<version>[^\s;#]+)")
_SEMVER = re.compile(
    r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:\.\d+)*(?:-(?P<pre>[0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?"
)
_IMAGE = re.compile(r"(?:[a-z0-9.-]+(?::\d+)?/)?[a-z0-9][a-z0-9._/-]*")


class Unusable(Exception):
    """The advisories cannot be used; the text says why and what to do."""


@dataclasses.dataclass(frozen=True, order=True)
class Package:
    """One version of something, and the file that says so."""

    ecosystem: str
    name: str
    version: str
    source: str


@dataclasses.dataclass(frozen=True, order=True)
class Hit:
    """A package that an advisory names.

    :ivar fixed: the versions that mend it, as the advisory says; () when it names none.
    """

    package: Package
    advisory: str
    aliases: tuple[str, ...]
    fixed: tuple[str, ...]

    def __str__(self) -> str:
        also = f" ({', '.join(self.aliases)})" if self.aliases else ""
        fixed = f"fixed in {', '.join(self.fixed)}" if self.fixed else "no fixed version is named"
        one = self.package
        return f"{one.name} {one.version} ({one.source}): {self.advisory}{also}, {fixed}"


# Versions -----------------------------------------------------------------------------------------
def semver(text: str) -> tuple[Any, ...]:
    """The precedence of a semantic version, a Go version too (https://semver.org, clause 11).

    :raises ValueError: it is none.
    """
    found = _SEMVER.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    numbers = tuple(int(number or 0) for number in found.groups()[:3])
    if found["pre"] is None:
        return (*numbers, 1, ())
    pieces = tuple(
        (0, int(piece), "") if piece.isdecimal() else (1, 0, piece)
        for piece in found["pre"].split(".")
    )
    return (*numbers, 0, pieces)


def order_of(ecosystem: str) -> Callable[[str], Any]:
    """How versions of an ecosystem are compared; both raise ValueError."""
    return Version if ecosystem == "pypi" else semver


def _name(ecosystem: str, name: str) -> str:
    return canonicalize_name(name) if ecosystem == "pypi" else name


# Advisories ---------------------------------------------------------------------------------------
def affects(affected: dict[str, Any], version: str, order: Callable[[str], Any]) -> bool:
    """Whether a version is among those that a part of an advisory names.

    As OSV's page says: it is listed, or the last event of a range up to it has brought the hole.
    Ranges of commits (GIT) say nothing about versions.

    :raises ValueError: a version in it cannot be compared.
    """
    own = order(version)
    for listed in affected.get("versions") or []:
        if listed == version or _equal(listed, own, order):
            return True
    ranges = [one for one in affected.get("ranges") or [] if one.get("type") != "GIT"]
    return any(_within(one.get("events") or [], own, order) for one in ranges)


def _equal(listed: str, own: Any, order: Callable[[str], Any]) -> bool:
    try:
        return bool(order(listed) == own)
    except ValueError:
        # Versions that no index takes any more; ours is not among them.
        return False


def _within(events: list[dict[str, str]], own: Any, order: Callable[[str], Any]) -> bool:
    inside, moments = False, []
    for event in events:
        for kind, text in event.items():
            # "0" stands for before everything.
            first = kind == "introduced" and text == "0"
            moments.append((0 if first else 1, None if first else order(text), kind))
    for place, at, kind in sorted(moments, key=functools.cmp_to_key(_earlier)):
        if kind == "introduced" and (not place or own >= at):
            inside = True
        elif (kind in ("fixed", "limit") and own >= at) or (kind == "last_affected" and own > at):
            inside = False
    return inside


def _earlier(one: tuple[int, Any, str], other: tuple[int, Any, str]) -> int:
    if one[0] != other[0] or one[0] == 0:
        return one[0] - other[0]
    if one[1] != other[1]:
        return -1 if one[1] < other[1] else 1
    # What ends at a version ends before what begins at it.
    return (one[2] == "introduced") - (other[2] == "introduced")


def documents(place: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every advisory below a directory, in an archive or of one file, with where it was read.

    :raises Unusable: there is none, or one cannot be read.
    """
    if not place.exists():
        raise Unusable(f"{place} is not there. {NO_FILE}")
    for where, content in _files(place):
        try:
            text = content.decode("utf-8")
            parsed = json.loads(text) if where.endswith(".json") else yaml.safe_load(text)
        except (ValueError, yaml.YAMLError) as error:
            raise Unusable(f"{where} cannot be read: {type(error).__name__}") from None
        for one in parsed if isinstance(parsed, list) else [parsed]:
            if isinstance(one, dict) and "id" in one and "affected" in one:
                yield where, one


def _files(place: Path) -> Iterator[tuple[str, bytes]]:
    endings = (".json", ".yaml", ".yml")
    inside = sorted(one for one in place.rglob("*") if one.is_file()) if place.is_dir() else [place]
    for path in inside:
        if path.suffix == ".zip":
            try:
                with zipfile.ZipFile(path) as archive:
                    for name in sorted(archive.namelist()):
                        if name.endswith(endings):
                            yield f"{path}:{name}", archive.read(name)
            except zipfile.BadZipFile:
                raise Unusable(f"{path} is not a zip archive.") from None
        elif path.suffix in endings:
            yield str(path), path.read_bytes()


def compare(
    packages: Iterable[Package], advisories: Iterable[tuple[str, dict[str, Any]]]
) -> tuple[list[Hit], int, list[str]]:
    """The hits, the number of advisories, and what could not be compared."""
    by_name: dict[tuple[str, str], list[Package]] = {}
    for one in packages:
        by_name.setdefault((one.ecosystem, _name(one.ecosystem, one.name)), []).append(one)
    hits, number, unclear = set(), 0, []
    for where, advisory in advisories:
        number += 1
        if advisory.get("withdrawn"):
            continue
        for part in advisory["affected"]:
            about = part.get("package") or {}
            # "PyPI", "Go", and with a release behind a colon, which is not looked at.
            ecosystem = str(about.get("ecosystem", "")).partition(":")[0].lower()
            key = (ecosystem, _name(ecosystem, str(about.get("name", ""))))
            for one in by_name.get(key, []):
                try:
                    if affects(part, one.version, order_of(ecosystem)):
                        hits.add(_hit(one, advisory, part))
                except (ValueError, InvalidVersion):
                    unclear.append(f"{one.name} {one.version} with {where}")
    return sorted(hits), number, unclear


def _hit(package: Package, advisory: dict[str, Any], part: dict[str, Any]) -> Hit:
    ranges = [one for one in part.get("ranges") or [] if one.get("type") != "GIT"]
    events = [event for one in ranges for event in one.get("events") or []]
    fixed = dict.fromkeys(str(event["fixed"]) for event in events if "fixed" in event)
    aliases = tuple(str(one) for one in advisory.get("aliases") or [])
    return Hit(package, str(advisory["id"]), aliases, tuple(fixed))


# What is compared ---------------------------------------------------------------------------------
def pinned(path: Path, source: str) -> Iterator[Package]:
    """The exact versions of a file of requirements or constraints."""
    for line in path.read_text(encoding="utf-8").splitlines():
        found = _PIN.match(line.strip())
        if found:
            yield Package("pypi", found["name"], found["version"], source)


def installed() -> Iterator[Package]:
    """The Python packages of this environment."""
    for one in importlib.metadata.distributions():
        if one.metadata["Name"]:
            yield Package("pypi", one.metadata["Name"], one.version, "installed")


def floors(path: Path) -> Iterator[Package]:
    """The oldest versions that the requirements of a pyproject.toml allow."""
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    for text in project.get("dependencies", []):
        required = Requirement(text)
        for one in required.specifier:
            if one.operator in (">=", "==", "~="):
                yield Package("pypi", required.name, one.version, "oldest that the wheel allows")


def go_modules(path: Path, source: str) -> Iterator[Package]:
    """The modules that a go.mod requires, each as its replacement where it has one."""
    text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    lines: list[tuple[str, str]] = []
    for block in re.finditer(r"^(require|replace)\s*(?:\(([^)]*)\)|(.*))$", text, re.M):
        body = block[2] if block[2] is not None else block[3]
        lines += [(block[1], line.strip()) for line in body.splitlines() if line.strip()]
    instead = {}
    for kind, line in lines:
        if kind == "replace":
            old, _, new = line.partition("=>")
            instead[old.split()[0]] = new.split()
    for kind, line in lines:
        if kind == "require":
            name, version = line.split()[:2]
            place = instead.get(name, [name, version])
            # A directory in place of a module has no version.
            if len(place) == 2:
                yield Package("go", place[0], place[1], source)


def chart_parts(path: Path, source: str) -> Iterator[Package]:
    """The charts and images that values name together with a version."""

    def walk(node: Any) -> Iterator[Package]:
        if isinstance(node, list):
            for one in node:
                yield from walk(one)
        if not isinstance(node, dict):
            return
        texts = {key: value for key, value in node.items() if isinstance(value, str) and value}
        if {"repo", "name", "version"} <= texts.keys():
            yield Package("helm", texts["name"], texts["version"], source)
        tag = texts.get("tag") or texts.get("version")
        if "repository" in texts and tag and _IMAGE.fullmatch(texts["repository"]):
            name = "/".join(filter(None, (texts["repository"], texts.get("image"))))
            yield Package("oci", name, tag, source)
        for one in node.values():
            yield from walk(one)

    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        yield from walk(document)


def everything(root: Path) -> list[Package]:
    """All that is compared, of a checkout and of this environment."""
    found = [*pinned(root / "sandbox/constraints.txt", "sandbox/constraints.txt"), *installed()]
    for path in sorted((root / "sandbox/go").glob("*/go.mod")):
        found += go_modules(path, path.relative_to(root).as_posix())
    for path in sorted((root / "charts").glob("*/values.yaml")):
        found += chart_parts(path, path.relative_to(root).as_posix())
    return found


def main(arguments: list[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="audit", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("advisories", nargs="?", default=os.environ.get("ADVISORIES", ""))
    place = parser.parse_args(arguments).advisories
    try:
        if not place:
            raise Unusable(NO_FILE)
        known = list(documents(Path(place)))
        if not known:
            raise Unusable(f"{place} has no advisory in the OSV format. {NO_FILE}")
    except Unusable as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    packages = everything(root)
    hits, number, unclear = compare(packages, known)
    allowed, _, _ = compare(floors(root / "pyproject.toml"), known)
    for note in [
        *(f"Note: {one}" for one in allowed),
        *(f"Not compared: {one}" for one in unclear),
    ]:
        print(note)
    for hit in hits:
        print(hit)
    print(f"{len(packages)} packages, {number} advisories, {len(hits)} known vulnerabilities")
    return FOUND if hits or unclear else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
