# SPDX-License-Identifier: Apache-2.0
"""The law about patches: a test, and what helps it, puts nothing in the place of the driver's own.

Fakes stand for the ports and are handed over. So no patcher, no ``setattr`` and no assignment aims
at a module or a class of the driver, however its target is spelled, and what is not known before it
runs is refused as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from magnum.tests.unit.drivers.k8s_capi_helm.house.file_names import FileNames
from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import PACKAGE, Source

#: Patchers whose first argument is the dotted name, and those whose first one is the object.
_BY_NAME = frozenset({"patch", "MonkeyPatch", "MockPatch", "dict", "multiple"})
_BY_OBJECT = frozenset({"object", "MockPatchObject", "MockPatchMultiple", "dict", "multiple"})
_BUILT_IN = frozenset({"setattr", "delattr"})


def patched(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """Places of a file where something of the driver is replaced, or nobody knows of what."""
    file = FileNames(source)
    for node in ast.walk(source.tree):
        targets: list[str | None] = []
        if isinstance(node, ast.Call) and node.args:
            targets = _of_call(node, file)
        elif isinstance(node, (ast.Assign, ast.Delete)):
            targets = [_of_place(one, file) for one in node.targets]
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets = [_of_place(node.target, file)]
        for target in targets:
            if target is None:
                yield node, "what is known only when it runs"
            elif target.startswith(PACKAGE):
                yield node, target.removeprefix(f"{PACKAGE}.")


def _of_call(node: ast.Call, file: FileNames) -> list[str | None]:
    """The target of a patcher, [] for another call."""
    *stem, name = ast.unparse(node.func).split(".")
    first = node.args[0]
    if not stem and name in _BUILT_IN:
        thing = file.dotted(first)
        member = file.text(node.args[1]) if len(node.args) > 1 else None
        return [f"{thing}.{member}"] if thing else []
    is_patcher = (
        stem[-1:] == ["patch"]
        or (name == "patch" and (not stem or stem[-1] == "mock"))
        or name.startswith(("MonkeyPatch", "MockPatch"))
    )
    if not is_patcher or name not in _BY_NAME | _BY_OBJECT:
        return []
    target = file.text(first) if name in _BY_NAME else None
    return [target or file.dotted(first)]


def _of_place(target: ast.expr, file: FileNames) -> str | None:
    """The attribute or item that an assignment sets, "" if it is none of a module or class."""
    if isinstance(target, (ast.Attribute, ast.Subscript)):
        return file.dotted(target) or ""
    return ""
