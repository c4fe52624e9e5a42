# SPDX-License-Identifier: Apache-2.0
"""The law about patches: a test, and what helps it, puts nothing in the place of the driver's own.

Fakes stand for the ports and are handed over. So no patcher, no ``setattr`` and no assignment aims
at a module or a class of the driver, however its target is spelled, and what is not known before it
runs is refused as well. One name may be moved: the clock, which tests read, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from magnum.tests.unit.drivers.k8s_capi_helm.house.floors import CLOCK
from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import PACKAGE, Source

#: What tests may move: the one reader of the wall clock.
MOVED = f"{PACKAGE}.{CLOCK.removesuffix('.py').replace('/', '.')}.utc_now"
#: Patchers whose first argument is the dotted name, and those whose first one is the object.
_BY_NAME = frozenset({"patch", "MonkeyPatch", "MockPatch", "dict", "multiple"})
_BY_OBJECT = frozenset({"object", "MockPatchObject", "MockPatchMultiple", "dict", "multiple"})
_BUILT_IN = frozenset({"setattr", "delattr"})
#: What is left of it: file -> places.
LEFT = {
    "adoption/successor.py": 2,
    "conductor_crash.py": 2,
    "driver_case.py": 1,
    "kills/conductor.py": 2,
    "soak/conductor.py": 2,
    "test_cloud.py": 2,
    "test_cloud_visibility.py": 1,
    "test_delete_nodegroup_meanwhile.py": 1,
    "test_hostile_tenant_costs.py": 1,
    "test_kube_identity.py": 1,
    "test_unreadable_responses.py": 1,
    "two_projects.py": 1,
}


class _File:
    """What the names of one file stand for."""

    def __init__(self, source: Source) -> None:
        self.imported: dict[str, str] = {}
        self.assigned: dict[str, list[ast.expr]] = {}
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self.imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    self.imported[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    self._bind(target, node.value)
            elif isinstance(node, ast.For) and isinstance(node.iter, (ast.Tuple, ast.List)):
                for value in node.iter.elts:
                    self._bind(node.target, value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        """Remember what a name may stand for; of a tuple, what each of its names may."""
        if isinstance(target, ast.Name):
            self.assigned.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, part in zip(target.elts, value.elts, strict=False):
                self._bind(one, part)

    def thing(self, node: ast.expr, depth: int = 0) -> str | None:
        """The dotted name of a module, class or member; None when it is no imported one."""
        if isinstance(node, ast.Attribute):
            stem = self.thing(node.value, depth)
            return f"{stem}.{node.attr}" if stem else None
        if isinstance(node, ast.Subscript):
            return self.thing(node.value, depth)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            return self.text(node.args[0], depth)
        if not isinstance(node, ast.Name):
            return None
        if node.id in self.imported:
            return self.imported[node.id]
        values = self.assigned.get(node.id, []) if depth < 3 else []
        return _worst(self.thing(value, depth + 1) for value in values)

    def text(self, node: ast.expr, depth: int = 0) -> str | None:
        """A string as far as it is known from its beginning; None when nothing of it is."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.JoinedStr):
            return self._joined(node.values, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._joined([node.left, node.right], depth)
        if isinstance(node, ast.FormattedValue):
            return self.text(node.value, depth)
        if isinstance(node, ast.Attribute) and node.attr == "__name__":
            return self.thing(node.value, depth)
        if isinstance(node, ast.Name):
            values = self.assigned.get(node.id, []) if depth < 3 else []
            return _worst(self.text(value, depth + 1) for value in values)
        return None

    def _joined(self, parts: list[ast.expr], depth: int) -> str | None:
        known = ""
        for part in parts:
            text = self.text(part, depth)
            if text is None:
                return known or None
            known += text
        return known


def _worst(spelled: Iterable[str | None]) -> str | None:
    """Of what a name may stand for: the driver's own, what is not known, or anything."""
    known = list(spelled)
    ours = [one for one in known if one and one.startswith(PACKAGE)]
    if ours or not known:
        return min(ours, default=None)
    return None if None in known else known[0]


def patched(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """Places of a file where something of the driver is replaced, or nobody knows of what."""
    file = _File(source)
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
            elif target.startswith(PACKAGE) and target != MOVED:
                yield node, target.removeprefix(f"{PACKAGE}.")


def _of_call(node: ast.Call, file: _File) -> list[str | None]:
    """The target of a patcher, [] for another call."""
    *stem, name = ast.unparse(node.func).split(".")
    first = node.args[0]
    if not stem and name in _BUILT_IN:
        thing = file.thing(first)
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
    return [target or file.thing(first)]


def _of_place(target: ast.expr, file: _File) -> str | None:
    """The attribute or item that an assignment sets, "" if it is none of a module or class."""
    if isinstance(target, (ast.Attribute, ast.Subscript)):
        return file.thing(target) or ""
    return ""
