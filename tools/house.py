# SPDX-License-Identifier: Apache-2.0
"""The numbers behind the laws of the house: rooms, arrows, chain, circles, sizes of functions.

``python -m tools.house`` prints them; ``test_house.py`` holds the limits beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
import importlib
import sys
from typing import Any, NamedTuple

#: The laws; not imported by name, because tests are checked less strictly than tools are.
_LAWS = "magnum.tests.unit.drivers.k8s_capi_helm.house"
floors: Any = importlib.import_module(f"{_LAWS}.floors")
imports: Any = importlib.import_module(f"{_LAWS}.imports")
sizes: Any = importlib.import_module(f"{_LAWS}.sizes")
tree: Any = importlib.import_module(f"{_LAWS}.sources")


class Row(NamedTuple):
    """One number.

    :ivar limit: the most that the laws allow; None where there is no law.
    :ivar parts: what is counted, as far as it is worth a look.
    """

    name: str
    number: int
    limit: int | None = None
    parts: tuple[str, ...] = ()


def _of_imports() -> Iterator[Row]:
    arrows = imports.arrows(tree.rooms())
    up = tuple(
        f"{room} -> {other}"
        for room, others in arrows.items()
        for other in sorted(others)
        if floors.FLOORS[other] > floors.FLOORS[room]
    )
    yield Row("rooms", len(floors.FLOORS), floors.MOST_ROOMS)
    yield Row("arrows between rooms", sum(map(len, arrows.values())))
    yield Row("arrows up", len(up), 0, up)
    chain = imports.longest_chain(arrows)
    yield Row("longest chain of rooms", len(chain), floors.LONGEST_CHAIN, (" -> ".join(chain),))
    for room in floors.INNER_FLOORS:
        inner = imports.inner_arrows(tree.rooms(), room)
        yield Row(f"inner rooms of {room}", len(inner))
        yield Row(f"arrows between these, {room}", sum(map(len, inner.values())))
    larger = imports.larger_directories(tree.rooms(), floors.MOST_FILES)
    yield Row(
        f"directories of more than {floors.MOST_FILES} files",
        len(larger),
        0,
        tuple(f"{directory} {number}" for directory, number in larger.items()),
    )
    for name, root, package in (
        ("driver", tree.ROOT, tree.PACKAGE),
        ("sandbox", tree.CHECKOUT / "sandbox", "sandbox"),
    ):
        found = imports.circles(imports.modules(tree.sources(root), package))
        yield Row(f"circles of modules, {name}", len(found), 0, tuple(map(", ".join, found)))


def _of_sizes() -> Iterator[Row]:
    functions = sizes.measured(tree.rooms())
    long, wide = sizes.long(functions), sizes.wide(functions)
    yield Row("functions", len(functions))
    yield Row(
        f"functions of more than {sizes.LINES} lines",
        len(long),
        sizes.MOST_LONG,
        tuple(f"{one.place} {one.lines}" for one in long),
    )
    most = max(one.lines for one in functions)
    yield Row("lines of the longest function", most, sizes.MOST_LINES)
    yield Row(
        f"functions of more than {sizes.PARAMETERS} parameters",
        len(wide),
        sizes.MOST_WIDE,
        tuple(f"{one.place} {one.parameters}" for one in wide),
    )
    lines = [source.text.count("\n") for source in tree.sources(tree.ROOT)]
    yield Row("files", len(lines))
    yield Row("lines of all files", sum(lines))
    yield Row("lines of the longest file", max(lines), floors.LONGEST_FILE)


def rows() -> list[Row]:
    """All numbers."""
    return [*_of_imports(), *_of_sizes()]


def main() -> int:
    """Print the numbers."""
    for row in rows():
        of = "" if row.limit is None else f" (at most {row.limit})"
        print(f"{row.name:40} {row.number:6}{of}")
        for part in row.parts:
            print(f"    {part}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
