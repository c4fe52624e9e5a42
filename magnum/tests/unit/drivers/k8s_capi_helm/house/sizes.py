# SPDX-License-Identifier: Apache-2.0
"""Sizes of functions: lines, parameters, and parameters without a type."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
import dataclasses

from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import Function, Source

#: A function has about this many lines; so many may have more, and none more than that.
LINES, MOST_LONG, MOST_LINES = 40, 3, 45
#: A function has at most this many parameters, but for so many; none on the floor of control.
PARAMETERS, MOST_WIDE, MOST_WIDE_IN_CONTROL = 6, 3, 0
CONTROL = "reconcile"


@dataclasses.dataclass(frozen=True)
class Measured:
    """A function with its size.

    :ivar place: file, line and name.
    :ivar lines: from ``def`` to the last one, without decorators.
    :ivar parameters: without ``self`` and ``cls``.
    """

    place: str
    room: str
    lines: int
    parameters: int


def parameters(function: Function) -> list[ast.arg]:
    """All parameters by name, without ``self`` and ``cls``."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [one for one in named if one.arg not in ("self", "cls")]


def measured(files: Iterable[Source]) -> list[Measured]:
    """Every function of the files."""
    return [
        Measured(
            f"{source.at(function)} {function.name}",
            source.room,
            (function.end_lineno or function.lineno) - function.lineno + 1,
            len(parameters(function)),
        )
        for source in files
        for function in source.functions()
    ]


def long(functions: Iterable[Measured]) -> list[Measured]:
    return sorted((one for one in functions if one.lines > LINES), key=lambda one: -one.lines)


def wide(functions: Iterable[Measured]) -> list[Measured]:
    found = (one for one in functions if one.parameters > PARAMETERS)
    return sorted(found, key=lambda one: -one.parameters)


def untyped_conf(source: Source) -> Iterator[str]:
    """Functions that take configuration of no known type."""
    for function in source.functions():
        for one in parameters(function):
            spelled = ast.unparse(one.annotation) if one.annotation else ""
            if one.arg.endswith("conf") and spelled.rpartition(".")[2] in ("", "Any", "object"):
                yield f"{source.at(function)} {function.name}({one.arg}: {spelled})"
