# SPDX-License-Identifier: Apache-2.0
"""Parsed files of a directory, for the laws."""

from __future__ import annotations

import ast
from collections.abc import Iterator
import functools
from pathlib import Path
import unittest

from magnum.drivers import k8s_capi_helm

PACKAGE = "magnum.drivers.k8s_capi_helm"
ROOT = Path(k8s_capi_helm.__file__).parent
#: The unit tests, and the checkout with everything.
TESTS = Path(__file__).parents[1]
CHECKOUT = Path(__file__).parents[6]
FUNCTIONAL = CHECKOUT / "magnum" / "tests" / "functional" / "k8s_capi_helm"

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Source:
    """One parsed file: its room, its tree and its place.

    :param text: of the file, where it is not to be read.
    """

    def __init__(self, path: Path, root: Path, text: str | None = None) -> None:
        self.path = path
        self.name = path.relative_to(root).as_posix()
        self.room = self.name.split("/")[0].removesuffix(".py")
        self.text = path.read_text(encoding="utf-8") if text is None else text
        self.tree = ast.parse(self.text, filename=str(path))

    def at(self, node: ast.AST) -> str:
        return f"{self.name}:{getattr(node, 'lineno', 0)}"

    def imports(self) -> Iterator[tuple[ast.AST, str]]:
        """Every imported module by its full dotted name, wherever the import stands."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield node, alias.name
            elif isinstance(node, ast.ImportFrom):
                stem = PACKAGE if node.level else ""
                module = ".".join(part for part in (stem, node.module) if part)
                for alias in node.names:
                    yield node, f"{module}.{alias.name}"

    def calls(self) -> Iterator[tuple[ast.Call, str]]:
        """Every call with the last part of the called name."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Attribute):
                    yield node, node.func.attr
                elif isinstance(node.func, ast.Name):
                    yield node, node.func.id

    def functions(self) -> Iterator[Function]:
        """Every function and method, inner ones too."""
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                yield node


def made_up(text: str, name: str = "status/made_up.py") -> Source:
    """A file of the driver that exists in a test only."""
    return Source(ROOT / name, ROOT, text)


@functools.cache
def sources(root: Path) -> list[Source]:
    """The Python files below a directory; what a chart holds is not ours to judge."""
    return [
        Source(path, root)
        for path in sorted(root.rglob("*.py"))
        if root != ROOT or path.relative_to(root).parts[0] != "charts"
    ]


def rooms() -> list[Source]:
    """The files of the driver but for its own ``__init__``."""
    return [source for source in sources(ROOT) if source.room != "__init__"]


class LawCase(unittest.TestCase):
    """A broken law is shown in full."""

    maxDiff = None
