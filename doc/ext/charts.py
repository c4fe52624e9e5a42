# SPDX-License-Identifier: Apache-2.0
"""Directives about the charts: ``chart-values``, ``chart-rolls`` and ``chart-parity``.

The pages are made of the files that the charts' own tests check, so that they cannot say anything
else than the charts do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import itertools
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
import yaml

from ext import chart_values
from magnum.drivers.k8s_capi_helm.commands.explain import effects

#: What a row of a parity.yaml says of a key, and how the page says it.
VERDICTS = {"improved": "improved: ", "refused": "refused: "}


def anchor(chart: str, path: str) -> str:
    """Where the page of a chart's values has a key."""
    return nodes.make_id(f"{chart}-{path.replace('[]', '-item')}")


def shape_anchor(chart: str, name: str) -> str:
    """Where the page of a chart's values has a shape."""
    return nodes.make_id(f"{chart}-shape-{name}")


def with_literals(text: str) -> Iterator[nodes.Node]:
    """Text, and what stands between backquotes as a literal."""
    for number, part in enumerate(text.replace("``", "`").split("`")):
        if part:
            yield nodes.literal("", part) if number % 2 else nodes.Text(part)


def paragraph(text: str) -> nodes.paragraph:
    """A paragraph of such text."""
    found = nodes.paragraph()
    found += list(with_literals(text))
    return found


class ChartDirective(SphinxDirective):
    """A directive whose argument is the name of a chart."""

    required_arguments = 1

    def file(self, name: str) -> Path:
        """A file of the chart, which the page then depends on."""
        path = chart_values.CHARTS / self.arguments[0] / name
        self.env.note_dependency(str(path))
        return path


class ChartValues(ChartDirective):
    """``.. chart-values:: CHART``: a section for each top-level key."""

    def run(self) -> list[nodes.Node]:
        chart = self.arguments[0]
        reference = chart_values.Reference(chart)
        for path in reference.files:
            self.file(path.name)
        keys = list(reference.rows())
        found: list[nodes.Node] = [
            self.section(chart, top, list(below))
            for top, below in itertools.groupby(keys, key=lambda key: key.top)
        ]
        return [*found, *self.shapes(chart, reference, keys)]

    def shapes(
        self, chart: str, reference: chart_values.Reference, keys: list[chart_values.Key]
    ) -> list[nodes.Node]:
        """The shapes that keys have, and the shapes in these, one section each."""
        wanted = {key.shape for key in keys}
        found: dict[str, nodes.Node] = {}
        while missing := [one for one in reference.shapes() if one[0] in wanted - found.keys()]:
            for name, description, below in missing:
                section = nodes.section(ids=[shape_anchor(chart, name)], names=[])
                section += nodes.title("", f"Shape: {name}")
                section += paragraph(description)
                section += self.items(f"{chart}-{name}", below, chart)
                found[name] = section
                wanted |= {key.shape for key in below}
        return [found[name] for name in sorted(found)]

    def section(self, chart: str, top: str, keys: list[chart_values.Key]) -> nodes.section:
        """All keys below a top-level one."""
        found = nodes.section(ids=[nodes.make_id(f"{chart}-values-{top}")], names=[])
        found += nodes.title("", top)
        found += self.items(chart, keys, chart)
        if same := chart_values.SAME_AS.get(f"{top}[]"):
            found += paragraph(f"And every key of `{same}`, for this group alone.")
        return found

    def items(self, place: str, keys: list[chart_values.Key], chart: str) -> nodes.definition_list:
        """Keys, one after the other."""
        return nodes.definition_list("", *(self.item(place, key, chart) for key in keys))

    def item(self, place: str, key: chart_values.Key, chart: str) -> nodes.definition_list_item:
        """One key."""
        term = nodes.term("", "", nodes.literal("", key.path), ids=[anchor(place, key.path)])
        body = nodes.definition()
        if key.deprecated and not key.description.startswith("Deprecated"):
            body += nodes.paragraph("", "", nodes.strong("", "Deprecated."))
        if key.description:
            body += paragraph(key.description)
        if key.section:
            return nodes.definition_list_item("", term, body)
        facts = nodes.paragraph("", f"Type: {key.kind}")
        if key.shape:
            facts += nodes.Text(", shape ")
            name = nodes.literal("", key.shape)
            facts += nodes.reference("", "", name, refid=shape_anchor(chart, key.shape))
        facts += nodes.Text(". ")
        if "\n" in key.default:
            facts += nodes.Text("Default:")
            body += facts
            body += nodes.literal_block(key.default, key.default, language="yaml")
        elif key.default:
            facts += nodes.Text("Default: ")
            facts += nodes.literal("", key.default)
            facts += nodes.Text(".")
            body += facts
        else:
            body += facts
        return nodes.definition_list_item("", term, body)


class ChartRolls(ChartDirective):
    """``.. chart-rolls:: CHART``: whose machines another value of each key replaces."""

    def run(self) -> list[nodes.Node]:
        rows = effects.rolls()
        table = nodes.table(classes=["colwidths-given"])
        group = nodes.tgroup("", nodes.colspec(colwidth=65), nodes.colspec(colwidth=35), cols=2)
        head = nodes.thead("", row(paragraph("Value"), paragraph("Replaces")))
        body = nodes.tbody(
            "",
            *(
                row(paragraph(f"`{key.replace('.[]', '[]')}`"), paragraph(word))
                for key, word in rows.items()
            ),
        )
        table += group
        group += [head, body]
        return [table]


class ChartParity(ChartDirective):
    """``.. chart-parity:: CHART``: every key of the contract and what this chart makes of it."""

    _explained: set[str] | None = None

    def run(self) -> list[nodes.Node]:
        rows = yaml.safe_load(self.file("tests/parity.yaml").read_text(encoding="utf-8"))
        table = nodes.table(classes=["colwidths-given"])
        group = nodes.tgroup(cols=2)
        table += group
        for width in (40, 60):
            group += nodes.colspec(colwidth=width)
        group += nodes.thead("", row(paragraph("Key"), paragraph("Here")))
        group += nodes.tbody(
            "", *(row(self.link(key), paragraph(said(here))) for key, here in rows.items())
        )
        return [table]

    def link(self, key: str) -> nodes.paragraph:
        """A key, linked to where the page of the chart's values explains it."""
        chart, name = self.arguments[0], nodes.literal("", key)
        if key not in self.explained():
            return nodes.paragraph("", "", name)
        place = f"values-{chart}.html#{anchor(chart, key)}"
        return nodes.paragraph("", "", nodes.reference("", "", name, refuri=place))

    def explained(self) -> set[str]:
        """The keys of that page."""
        if self._explained is None:
            reference = chart_values.Reference(self.arguments[0])
            for path in reference.files:
                self.file(path.name)
            self._explained = {key.path for key in reference.rows()}
        return self._explained


def said(here: str | dict[str, Any]) -> str:
    """A row's verdict in words."""
    if isinstance(here, str):
        return here
    return "; ".join(
        words + str(here[verdict]) for verdict, words in VERDICTS.items() if verdict in here
    )


def row(*cells: nodes.Node) -> nodes.row:
    """A row of a table."""
    return nodes.row("", *(nodes.entry("", cell) for cell in cells))


def setup(app: Sphinx) -> dict[str, bool]:
    directives: Iterable[tuple[str, type[Directive]]] = (
        ("chart-values", ChartValues),
        ("chart-rolls", ChartRolls),
        ("chart-parity", ChartParity),
    )
    for name, directive in directives:
        app.add_directive(name, directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
