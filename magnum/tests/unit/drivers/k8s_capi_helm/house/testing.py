# SPDX-License-Identifier: Apache-2.0
"""The laws of tests: what they patch, whether they assert."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import Source


def patch_targets(source: Source) -> Iterator[tuple[ast.Call, str]]:
    """What mock.patch, mock.patch.object, MonkeyPatch and MockPatch calls of a file aim at."""
    for node, name in source.calls():
        spelled = ast.unparse(node.func)
        if not node.args or "patch" not in spelled.lower():
            continue
        target = node.args[0]
        if isinstance(target, ast.Constant) and isinstance(target.value, str):
            yield node, target.value
        elif name in {"object", "multiple", "setattr", "MockPatchObject", "patch"}:
            yield node, ast.unparse(target)


def asserts(node: ast.AST, functions: dict[str, ast.FunctionDef], seen: set[str]) -> bool:
    """Whether a function asserts, itself or through functions of the same file."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assert):
            return True
        if not isinstance(inner, ast.Call):
            continue
        name = ast.unparse(inner.func).rpartition(".")[2]
        if name.lower().startswith(("assert", "fail", "expect")):
            return True
        if name in functions and name not in seen:
            seen.add(name)
            if asserts(functions[name], functions, seen):
                return True
    return False
