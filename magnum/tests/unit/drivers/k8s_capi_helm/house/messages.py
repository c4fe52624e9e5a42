# SPDX-License-Identifier: Apache-2.0
"""Sentences in the driver's code that a tenant reads, and those that the page of statuses lists."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
import re

from magnum.drivers.k8s_capi_helm import errors
from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import CHECKOUT, rooms, Source

PAGE = CHECKOUT / "doc" / "source" / "user" / "status.rst"
#: Where sentences are for operators alone (options, their command), describe labels and fields in
#: their tables, or stand in the page's other list.
_ELSEWHERE = re.compile(
    r"(status|conf|commands)/.*|magnum_objects/validation/fields\.py|kube/watch/reflector\.py"
    r"|labels/topics/.*|labels/value_types/(kubernetes|maintenance_window)\.py"
    r"|reconcile/deletion/forced_deletion\.py"
)
#: A full stop behind a word, a quote or what is filled in.
_ENDS = re.compile(r"[\w')\x00]\.(?:\s|$)")
_WORD = re.compile(r"[A-Za-z']{2,}")
#: What is filled in by ``format``.
_FIELD = re.compile(r"\{[a-z_.]+\}")


def errors_of_driver() -> frozenset[str]:
    """Names of the driver's errors."""
    found: set[type[errors.DriverError]] = {errors.DriverError}
    while more := {sub for one in found for sub in one.__subclasses__()} - found:
        found |= more
    return frozenset(one.__name__ for one in found)


def pieces(node: ast.expr) -> list[str | ast.expr] | None:
    """A literal's texts and what is filled in; None for what is no literal."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return [getattr(one, "value", "") for one in node.values]
    return None


def text_of(node: ast.expr, fill: str = "...") -> str:
    """A literal in one line with *fill* for whatever is filled in; "" for what is no literal."""
    parts = pieces(node) or []
    text = "".join(one if isinstance(one, str) else fill for one in parts)
    return " ".join(_FIELD.sub(fill, text).split())


def literals(source: Source, hidden: Collection[ast.AST] = ()) -> Iterator[ast.expr]:
    """The literals of a file, without docstrings and patterns, each f-string once."""
    skipped = set(hidden)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
            skipped |= set(ast.walk(node))
        elif isinstance(node, ast.JoinedStr):
            skipped |= {one for one in node.values if isinstance(one, ast.Constant)}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.expr) and node not in skipped and pieces(node):
            yield node


def _for_operators(source: Source) -> set[ast.AST]:
    """What goes to the log: lines of it, and the details of errors."""
    found: set[ast.AST] = set()
    kinds = errors_of_driver() - {"InvalidLabel"}
    for call, name in source.calls():
        if re.search(r"(^|\.)LOG\.\w+$", ast.unparse(call.func)):
            found |= set(ast.walk(call))
        elif name in kinds:
            for one in (*call.args[1:], *(key.value for key in call.keywords)):
                found |= set(ast.walk(one))
    return found


def message_nodes() -> Iterator[tuple[Source, ast.expr]]:
    """Every literal that is a sentence of a refusal, a notice, or a reason out of status/."""
    for source in rooms():
        if _ELSEWHERE.fullmatch(source.name):
            continue
        for node in literals(source, _for_operators(source)):
            text = text_of(node, "\x00")
            if len(_WORD.findall(text)) > 2 and _ENDS.search(text):
                yield source, node


def messages() -> dict[str, str]:
    """Each of these sentences, and where it stands."""
    return {text_of(node): source.at(node) for source, node in message_nodes()}


def listed(name: str) -> list[str]:
    """What the page lists between two marks, each in one line.

    :param name: of the marks, ``.. begin-NAME`` and ``.. end-NAME``.
    """
    text = PAGE.read_text(encoding="utf-8").partition(f".. begin-{name}")[2]
    text = text.partition(f".. end-{name}")[0]
    return [" ".join(one.split()) for one in re.findall(r"^\* ``(.*?)``$", text, re.S | re.M)]
