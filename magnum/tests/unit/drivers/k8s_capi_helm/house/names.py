# SPDX-License-Identifier: Apache-2.0
"""The law about names: words of the glossary or of the fixed list, no bare participle, one owner.

Public names are judged: stems of files, functions, classes, methods, annotated fields of classes,
and parameters of public functions and methods. Names that are not the driver's to choose are free:
labels, options, what Magnum's driver interface and objects call so.
"""

from __future__ import annotations

import ast
import collections
from collections.abc import Iterable, Iterator
import functools
import inspect
import re
from typing import NamedTuple

from oslo_config import cfg

from magnum import objects
from magnum.drivers.common import driver as magnum_driver
from magnum.drivers.k8s_capi_helm import conf, labels
from magnum.tests.unit.drivers.k8s_capi_helm.house import vocabulary
from magnum.tests.unit.drivers.k8s_capi_helm.house.sizes import parameters
from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import CHECKOUT, Function, Source

GLOSSARY = CHECKOUT / "doc" / "source" / "contributor" / "glossary.rst"
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+")
_TERM = re.compile(r"^   (?=[A-Za-z])(?P<term>[^\n]+)$", re.MULTILINE)
_GERUNDS_TOO = re.compile(r"[a-z]{3,}(ed|ing)")


class Name(NamedTuple):
    """A public name.

    :ivar kind: file, function, class, method, field or parameter.
    :ivar place: file and line.
    """

    kind: str
    text: str
    room: str
    place: str


def words(name: str) -> list[str]:
    """A name in snake_case or CamelCase, in words of lower case."""
    return [part.lower() for part in _HUMP.split(name) if part]


@functools.cache
def glossary() -> frozenset[str]:
    """The words that the terms of the glossary are made of."""
    terms = _TERM.findall(GLOSSARY.read_text(encoding="utf-8"))
    found = {
        word for term in terms for part in re.split(r"[^A-Za-z]+", term) for word in words(part)
    }
    joined = {"".join(words(part)) for term in terms for part in term.split()}
    return frozenset(found | joined)


@functools.cache
def given_names() -> frozenset[str]:
    """Names that others have given: labels, options, Magnum's driver interface and fields."""
    options: set[str] = set()
    for group, listed in conf.list_opts():
        options |= {str(group), *(option.dest for option in listed if isinstance(option, cfg.Opt))}
    interface: set[str] = set()
    for name, member in inspect.getmembers(magnum_driver.Driver, callable):
        if not name.startswith("_"):
            interface |= {name, *inspect.signature(member).parameters}
    fields = {
        field
        for kind in (objects.Cluster, objects.ClusterTemplate, objects.NodeGroup)
        for field in kind.fields
    }
    return frozenset({*labels.BY_NAME, *options, *interface, *fields, "provides"})


def _stems(word: str) -> Iterator[str]:
    """What a word may be a regular form of."""
    yield word
    for ending, others in (
        ("ies", ("y",)),
        ("es", ("", "e")),
        ("s", ("",)),
        ("ied", ("y",)),
        ("ed", ("", "e")),
        ("ing", ("", "e")),
        ("ation", ("e", "")),
    ):
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            yield from (stem + other for other in others)
            if len(stem) > 2 and stem[-1] == stem[-2]:
                yield stem[:-1]


def is_known(word: str) -> bool:
    """Whether a word is one of the glossary's or of the fixed list."""
    if word in vocabulary.EMPTY:
        return False
    plain = [word, *(stem for stem in _stems(word) if word.endswith("s"))]
    if any(one in glossary() or one in vocabulary.FIXED for one in plain):
        return True
    return word.isdigit() or any(stem in vocabulary.VERBS for stem in _stems(word))


def is_bare_participle(name: str) -> bool:
    """Whether a name is one participle and nothing that it is said of."""
    parts = words(name)
    if len(parts) != 1 or parts[0] in vocabulary.STATES:
        return False
    return parts[0] in vocabulary.PARTICIPLES or bool(_GERUNDS_TOO.fullmatch(parts[0]))


def refusal(name: str) -> str | None:
    """Why a public name is none of this project; None when it is fine."""
    if name in given_names():
        return None
    if is_bare_participle(name):
        return f"{name} is a bare participle"
    strange = [word for word in words(name) if not is_known(word)]
    if strange:
        return f"{', '.join(strange)}: neither in the glossary nor in the fixed list"
    return None


def public_names(source: Source) -> Iterator[Name]:
    """All public names of a file, its stem first."""
    room, path = source.room, source.path
    if path.stem != "__init__":
        yield Name("file", path.stem, room, source.name)
    yield from _of_body(source, source.tree.body, "function")


def _of_body(source: Source, body: Iterable[ast.stmt], kind: str) -> Iterator[Name]:
    for node in body:
        if isinstance(node, Function):
            public = not node.name.startswith("_")
            if public:
                yield Name(kind, node.name, source.room, source.at(node))
            if public or (node.name == "__init__" and kind == "method"):
                for one in parameters(node):
                    if not one.arg.startswith("_"):
                        yield Name("parameter", one.arg, source.room, source.at(one))
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield Name("class", node.name, source.room, source.at(node))
            yield from _of_body(source, node.body, "method")
        elif kind == "method" and isinstance(node, ast.AnnAssign):
            field = ast.unparse(node.target)
            if not field.startswith("_"):
                yield Name("field", field, source.room, source.at(node))


def broken(files: Iterable[Source]) -> list[tuple[Name, str]]:
    """Every public name that is refused, with the reason."""
    found = ((name, refusal(name.text)) for source in files for name in public_names(source))
    return [(name, reason) for name, reason in found if reason]


def shared(files: Iterable[Source]) -> dict[str, list[str]]:
    """Public functions and classes whose name more than one room exports: name -> rooms."""
    owners: dict[str, set[str]] = collections.defaultdict(set)
    for source in files:
        for name in public_names(source):
            if name.kind in ("function", "class"):
                owners[name.text].add(name.room)
    return {name: sorted(rooms) for name, rooms in sorted(owners.items()) if len(rooms) > 1}


def lines(files: list[Source]) -> dict[str, str]:
    """Room, kind and name, or a name that two rooms share -> where, and why it is refused."""
    found = {f"{n.room} {n.kind} {n.text}": f"{n.place}: {why}" for n, why in broken(files)}
    rooms_of = {f"several {name}": ", ".join(rooms) for name, rooms in shared(files).items()}
    return {**found, **rooms_of}
