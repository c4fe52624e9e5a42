# SPDX-License-Identifier: Apache-2.0
"""The directive ``tested``: the results of test runs that tools/tested.py has written down.

Nothing is added: a combination without a result has no row.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
import yaml

RESULTS = Path(__file__).resolve().parents[1] / "source" / "install" / "tested.yaml"
RUN = ("what ran", "date", "result")


def rows(table: str) -> list[list[str]]:
    """Heads and cells of a table; no row at all when nothing was run."""
    entries = yaml.safe_load(RESULTS.read_text(encoding="utf-8")) or []
    own = [entry for entry in entries if entry["table"] == table]
    heads = list(dict.fromkeys(name for entry in own for name in entry["subject"]))
    found = [[*heads, *RUN]] if own else []
    for entry in own:
        versions = [entry["subject"].get(name, "") for name in heads]
        found.append([*versions, entry["ran"], entry["date"], entry["result"]])
    return found


def row(cells: list[str]) -> nodes.row:
    """One row of text."""
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in cells))


def drawn(cells: list[list[str]]) -> nodes.table:
    """A table with a head."""
    group = nodes.tgroup("", cols=len(cells[0]))
    for number in range(len(cells[0])):
        group += nodes.colspec("", colwidth=max(len(line[number]) for line in cells))
    group += nodes.thead("", row(cells[0]))
    group += nodes.tbody("", *(row(line) for line in cells[1:]))
    return nodes.table("", group)


class Tested(SphinxDirective):
    """``.. tested:: TABLE``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(RESULTS))
        cells = rows(self.arguments[0])
        return [drawn(cells) if cells else nodes.paragraph("", "No run has been recorded.")]


DIRECTIVES: dict[str, type[Directive]] = {"tested": Tested}


def setup(app: Sphinx) -> dict[str, object]:
    """Register the directive."""
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
