# SPDX-License-Identifier: Apache-2.0
"""What the names of one file stand for, as far as its text shows: imports, aliases, strings."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import PACKAGE, Source


class FileNames:
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

    def dotted(self, node: ast.expr, depth: int = 0) -> str | None:
        """The dotted name of a module, class or member; None when it is no imported one."""
        if isinstance(node, ast.Attribute):
            stem = self.dotted(node.value, depth)
            return f"{stem}.{node.attr}" if stem else None
        if isinstance(node, ast.Subscript):
            return self.dotted(node.value, depth)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            return self.text(node.args[0], depth)
        if not isinstance(node, ast.Name):
            return None
        if node.id in self.imported:
            return self.imported[node.id]
        values = self.assigned.get(node.id, []) if depth < 3 else []
        return _worst(self.dotted(value, depth + 1) for value in values)

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
            return self.dotted(node.value, depth)
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
