# SPDX-License-Identifier: Apache-2.0
"""The laws of tests: whether they assert, and cannot pass on nothing."""

from __future__ import annotations

import ast


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
