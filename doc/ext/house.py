# SPDX-License-Identifier: Apache-2.0
"""The directive ``house``: the rooms and files of the driver, each with its own first sentence.

Floors come from the table of the test that enforces them, sentences from the modules, so that this
page cannot say anything else than the code. Sources are parsed and not imported.
"""

from __future__ import annotations

import ast
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "magnum" / "drivers" / "k8s_capi_helm"
LAW = ROOT / "magnum" / "tests" / "unit" / "drivers" / "k8s_capi_helm" / "house" / "floors.py"
TITLES = {
    4: "Interface: what Magnum calls",
    3: "Control: brings a cluster to what Magnum's objects ask for",
    2: "Adapters: input and output; plain data in and out, every call bounded",
    1: "Rules: pure; no input or output, no clock, no Magnum objects",
    0: "Ground: the words that all of them use",
}


def floors() -> dict[str, int]:
    """Room -> floor, from the law."""
    for node in ast.parse(LAW.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FLOORS":
            table: dict[str, int] = ast.literal_eval(node.value)
            return table
    raise LookupError(f"{LAW} has no table FLOORS")


def sentence(path: Path) -> str:
    """The first line of a module's docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0].replace("`", "")


def files(room: str) -> list[Path]:
    """The files of a room: its front first, those behind it by name."""
    front = DRIVER / f"{room}.py"
    if front.is_file():
        return [front]
    inner = sorted((DRIVER / room).rglob("*.py"))
    return [
        DRIVER / room / "__init__.py",
        *(path for path in inner if path.parent != DRIVER / room or path.stem != "__init__"),
    ]


def entry(path: Path) -> nodes.definition_list_item:
    """A file's path below the driver, and its sentence."""
    name = path.relative_to(DRIVER).as_posix().removesuffix("__init__.py")
    item = nodes.definition_list_item()
    item += nodes.term("", "", nodes.literal("", name))
    item += nodes.definition("", nodes.paragraph("", sentence(path)))
    return item


class House(SphinxDirective):
    """``.. house::`` takes no arguments."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(LAW))
        found: list[nodes.Node] = []
        table = floors()
        for floor, title in sorted(TITLES.items(), reverse=True):
            found.append(nodes.rubric("", f"Floor {floor}. {title}"))
            for room in (name for name, where in table.items() if where == floor):
                listing = nodes.definition_list()
                for path in files(room):
                    self.env.note_dependency(str(path))
                    listing += entry(path)
                found.append(listing)
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    directive: type[Directive] = House
    app.add_directive("house", directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
