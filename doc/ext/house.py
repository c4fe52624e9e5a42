# SPDX-License-Identifier: Apache-2.0
"""The directive ``house``: the rooms of the driver, each with its own first sentence.

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
LAW = ROOT / "magnum" / "tests" / "unit" / "drivers" / "k8s_capi_helm" / "test_house.py"
TITLES = {
    0: "Facts: pure; no input or output, no clock, no Magnum objects",
    1: "Ports: input and output; plain data in and out",
    2: "Shell: knows Magnum and its configuration",
}


def floors() -> dict[str, int]:
    """Room -> floor, from the law."""
    for node in ast.parse(LAW.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FLOORS":
            table: dict[str, int] = ast.literal_eval(node.value)
            return table
    raise LookupError(f"{LAW} has no table FLOORS")


def sentence(room: str) -> str:
    """The first line of a module's or a package's docstring, "" if there is no such room."""
    for path in (DRIVER / f"{room}.py", DRIVER / room / "__init__.py"):
        if path.is_file():
            tree = ast.parse(path.read_text(encoding="utf-8"))
            return (ast.get_docstring(tree) or "").partition("\n")[0]
    return ""


class House(SphinxDirective):
    """``.. house::`` takes no arguments."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(LAW))
        found: list[nodes.Node] = []
        table = floors()
        for floor, title in sorted(TITLES.items(), reverse=True):
            found.append(nodes.rubric("", f"Floor {floor}. {title}"))
            rooms = nodes.definition_list()
            for room in (name for name, where in table.items() if where == floor):
                words = sentence(room).replace("`", "")
                if words:
                    item = nodes.definition_list_item()
                    item += nodes.term("", "", nodes.literal("", room))
                    item += nodes.definition("", nodes.paragraph("", words))
                    rooms += item
            found.append(rooms)
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    directive: type[Directive] = House
    app.add_directive("house", directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
