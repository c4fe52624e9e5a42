# SPDX-License-Identifier: Apache-2.0
"""The import law: down only, through fronts, without circles, in chains that one keeps in mind.

Between inner rooms of one room, too, imports go down only.
"""

from __future__ import annotations

import ast
import collections
from collections.abc import Iterable, Iterator, Mapping
import functools
import sys

from magnum.tests.unit.drivers.k8s_capi_helm.house.floors import (
    ALSO_OPEN,
    BESIDE,
    FLOORS,
    FRONTS,
    FUNCTIONS_OF_ROOMS,
    IMPURE,
    INNER_BESIDE,
    INNER_FLOORS,
    KNOW_MAGNUM,
    KNOW_OPTIONS,
    OPEN,
    PURE_LIBRARIES,
)
from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import PACKAGE, Source

Graph = Mapping[str, set[str]]


def refusal(room: str, name: str) -> str | None:
    """Why a module of this room may not import the name; None when it may."""
    floor, top = FLOORS[room], name.partition(".")[0]
    if name == PACKAGE:  # for the place of its charts and manifests
        return None
    if name.startswith(f"{PACKAGE}."):
        return _refusal_inside(room, name.removeprefix(f"{PACKAGE}."))
    if top == "magnum":
        return None if room in KNOW_MAGNUM else f"{room} does not know Magnum"
    if top == "oslo_config":
        return None if room in KNOW_OPTIONS else "only conf knows oslo.config"
    if floor > 1 or name in PURE_LIBRARIES or (room == "deadline" and top == "time"):
        return None
    if top in IMPURE:
        return "rules have no input, output or clock"
    return None if top in sys.stdlib_module_names else "rules need the standard library only"


def _refusal_inside(room: str, name: str) -> str | None:
    """The same for a name of the driver, without its package."""
    other = name.partition(".")[0]
    if other == room or other in ("errors", "deadline"):
        return None
    if FLOORS[other] >= FLOORS[room] and (room, other) not in BESIDE:
        return f"{other} is not below {room}"
    if FRONTS.get(other, room) == room:
        return None
    guests = frozenset().union(*(ALSO_OPEN[module][0] for module in _listed(name, ALSO_OPEN)))
    if _listed(name, OPEN) or room in guests:
        return None
    return f"{other} is imported through {FRONTS[other]}, or in a row of ALSO_OPEN with its reason"


def _listed(name: str, modules: Iterable[str]) -> list[str]:
    """Which of these modules a name of the driver is, or is in."""
    return [module for module in modules if f"{name}.".startswith(f"{module}.")]


def used_exceptions(files: Iterable[Source]) -> set[tuple[str, str]]:
    """Pairs of ``ALSO_OPEN``, module and room, that some import needs."""
    return {
        (module, source.room)
        for source in files
        for _, name in source.imports()
        for module in _listed(name.removeprefix(f"{PACKAGE}."), ALSO_OPEN)
        if source.room in ALSO_OPEN[module][0]
    }


def inner_refusal(source: Source, name: str) -> str | None:
    """Why a module may not import the name from another inner room; None when it may."""
    room = source.room
    if room not in INNER_FLOORS or not name.startswith(f"{PACKAGE}.{room}."):
        return None
    here, other = _inner_room(_module(source.name)), _inner_room(name.removeprefix(f"{PACKAGE}."))
    floors = INNER_FLOORS[room]
    beside = INNER_BESIDE.get(room, frozenset())
    if here == other or floors[here] > floors[other] or (here, other) in beside:
        return None
    return f"{other} is not below {here} in {room}, and no row of INNER_BESIDE has both"


def _inner_room(name: str) -> str:
    """The inner room of a name of the driver, without its package."""
    room, _, inner = name.partition(".")
    first = inner.partition(".")[0]
    return first if first in INNER_FLOORS[room] else room


def inner_arrows(files: Iterable[Source], room: str) -> dict[str, set[str]]:
    """Inner room of a room -> the other ones in it that it imports."""
    below: dict[str, set[str]] = {inner: set() for inner in INNER_FLOORS[room]}
    for source in files:
        for _, name in source.imports():
            if source.room == room and name.startswith(f"{PACKAGE}.{room}."):
                here = _inner_room(_module(source.name))
                below[here].add(_inner_room(name.removeprefix(f"{PACKAGE}.")))
    return {inner: others - {inner} for inner, others in below.items()}


def larger_directories(files: Iterable[Source], most: int) -> dict[str, int]:
    """Directory -> its files, where they are more than this."""
    count = collections.Counter(source.name.rpartition("/")[0] for source in files)
    return {directory: number for directory, number in count.items() if number > most}


def arrows(files: Iterable[Source]) -> dict[str, set[str]]:
    """Room -> the other rooms that it imports."""
    below: dict[str, set[str]] = {room: set() for room in FLOORS}
    for source in files:
        for _, name in source.imports():
            if name.startswith(f"{PACKAGE}."):
                below[source.room].add(name.removeprefix(f"{PACKAGE}.").partition(".")[0])
    return {room: others - {room} for room, others in below.items()}


def longest_chain(below: Graph) -> list[str]:
    """The longest way down from any room.

    :raises RecursionError: rooms import each other in a circle.
    """

    @functools.cache
    def down(room: str) -> list[str]:
        return max(([room, *down(other)] for other in below[room]), key=len, default=[room])

    return max((down(room) for room in below), key=len)


def modules(files: Iterable[Source], package: str) -> dict[str, set[str]]:
    """Module -> modules of the same package that it imports, by dotted names below the package."""
    names = {_module(source.name): source for source in files}
    found: dict[str, set[str]] = {}
    for module, source in names.items():
        found[module] = set()
        for _, name in source.imports():
            if name.startswith(f"{package}."):
                inner = name.removeprefix(f"{package}.")
                owner = inner if inner in names else inner.rpartition(".")[0]
                found[module] |= {owner} & set(names) - {module}
    return found


def _module(path: str) -> str:
    """The dotted name of a file, "" for the package's own ``__init__``."""
    return path.removesuffix(".py").removesuffix("__init__").strip("/").replace("/", ".")


def circles(graph: Graph) -> list[list[str]]:
    """Groups of modules each of which imports, at last, itself (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found)


def handed_on(source: Source) -> Iterator[str]:
    """Names of its room that an ``__init__`` imports, but for classes and modules in use."""
    exported = {
        name
        for node in source.tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for name in ast.literal_eval(node.value)
    }
    allowed = FUNCTIONS_OF_ROOMS[source.room][0] if source.room in FUNCTIONS_OF_ROOMS else ()
    for _, name in source.imports():
        last = name.rpartition(".")[2]
        is_class = last[:1].isupper() and not last.isupper()
        if last in exported and not is_class and last not in allowed:
            yield last
