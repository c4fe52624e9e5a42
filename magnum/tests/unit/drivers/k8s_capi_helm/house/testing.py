# SPDX-License-Identifier: Apache-2.0
"""The laws of tests: whether they assert, and cannot pass on nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import Source


def asserts(node: ast.AST, functions: dict[str, ast.FunctionDef], seen: set[str]) -> bool:
    """Whether a function asserts, itself or through functions of the same file."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assert):
            return True
        if not isinstance(inner, ast.Call):
            continue
        name = ast.unparse(inner.func).rpartition(".")[2]
        if name.lower().startswith(("assert", "fail", "expect", "at_least_one")):
            return True
        if name in functions and name not in seen:
            seen.add(name)
            if asserts(functions[name], functions, seen):
                return True
    return False


#: Calls that give as many things as they get, or pairs of them.
_SAME_LENGTH = frozenset(
    "enumerate frozenset list reversed set sorted tuple zip product chain items values keys copy "
    "fromkeys map combinations permutations".split()
)


class _Lengths:
    """Whether an expression of a file has at least one element, as far as its text shows."""

    def __init__(self, source: Source, test: ast.AST) -> None:
        self._values: dict[str, list[ast.expr]] = {}
        for node in (*source.tree.body, *ast.walk(test)):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self._values.setdefault(ast.unparse(target), []).append(node.value)

    def sure(self, node: ast.expr, depth: int = 0) -> bool:
        """Whether it is surely not empty, or, of a number, not zero."""
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return any(
                not isinstance(one, ast.Starred) or self.sure(one.value, depth) for one in node.elts
            )
        if isinstance(node, ast.Dict):
            keys = zip(node.keys, node.values, strict=True)
            return any(key is not None or self.sure(value, depth) for key, value in keys)
        if isinstance(node, ast.Constant):
            return bool(node.value)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return all(self.sure(one.iter, depth) and not one.ifs for one in node.generators)
        if isinstance(node, ast.BinOp):
            return self.sure(node.left, depth) or self.sure(node.right, depth)
        if isinstance(node, ast.IfExp):
            return self.sure(node.body, depth) and self.sure(node.orelse, depth)
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        return self._named(node, depth)

    def _call(self, node: ast.Call, depth: int) -> bool:
        function = node.func
        name = ast.unparse(function).rpartition(".")[2]
        if name == "range":
            ends = node.args[1:2] or node.args[:1]
            return all(self.sure(one, depth) for one in ends)
        if name == "split" and isinstance(function, ast.Attribute):
            return self.sure(function.value, depth)
        if name not in _SAME_LENGTH:
            return False
        given = [one for one in node.args if not isinstance(one, (ast.Lambda, ast.Starred))]
        if given and name == "map":
            given = given[1:]
        if not given and isinstance(function, ast.Attribute):
            given = [function.value]
        if name in ("combinations", "permutations"):
            given = given[:1]
        return bool(given) and all(self.sure(one, depth) for one in given)

    def _named(self, node: ast.expr, depth: int) -> bool:
        """A constant of some module, an enumeration, or what a name has been given."""
        spelled = ast.unparse(node)
        last = spelled.rpartition(".")[2]
        values = self._values.get(spelled, [])
        if values and depth < 4:
            return all(self.sure(value, depth + 1) for value in values)
        return bool(last) and last.lstrip("_")[:1].isupper()


def passes_on_nothing(source: Source) -> Iterator[ast.FunctionDef]:
    """Tests that assert only in loops over what may be empty."""
    functions = {
        node.name: node for node in source.functions() if isinstance(node, ast.FunctionDef)
    }
    for name, node in functions.items():
        if name.startswith("test_") and asserts(node, functions, set()):
            lengths = _Lengths(source, node)
            if not any(_asserts_surely(one, functions, lengths) for one in node.body):
                yield node


def _asserts_surely(
    node: ast.AST, functions: dict[str, ast.FunctionDef], lengths: _Lengths
) -> bool:
    """Whether a statement asserts at least once, whatever is found."""
    if isinstance(node, (ast.For, ast.AsyncFor)):
        if asserts(node.iter, functions, set()):
            return True
        return lengths.sure(node.iter) and any(
            _asserts_surely(one, functions, lengths) for one in node.body
        )
    if isinstance(node, (ast.With, ast.If, ast.Try, ast.While, ast.FunctionDef)):
        return any(_asserts_surely(one, functions, lengths) for one in ast.iter_child_nodes(node))
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        return False
    return asserts(node, functions, set())
