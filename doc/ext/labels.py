# SPDX-License-Identifier: Apache-2.0
"""The directive ``cluster-labels``: every label with its default, an example and its help."""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from magnum.drivers.k8s_capi_helm import labels


def default(value: object) -> str:
    """A default as a user would write it; "" where nothing is the default."""
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def notes(label: labels.Label) -> Iterator[str]:
    """What else there is to know of a label."""
    yield f"Expected: {label.form.expected}."
    if label.sites == (labels.Site.TEMPLATE,):
        yield "Has an effect in cluster templates only."
    if labels.Site.NODEGROUP in label.sites:
        yield "A nodegroup can have its own."
    if label.aliases:
        yield f"Old name: {', '.join(label.aliases)}."


class ClusterLabels(SphinxDirective):
    """``.. cluster-labels::`` takes no arguments."""

    def run(self) -> list[nodes.Node]:
        found = nodes.definition_list()
        for label in labels.REGISTRY:
            item = nodes.definition_list_item()
            item += nodes.term("", "", nodes.literal("", label.name))
            body = nodes.definition("", nodes.paragraph("", label.help))
            body += nodes.paragraph("", " ".join(notes(label)))
            values = nodes.paragraph("", "Default: ")
            text = default(label.default)
            values += nodes.literal("", text) if text else nodes.emphasis("", "none")
            values += nodes.Text(". Example: ")
            values += nodes.literal("", label.example)
            values += nodes.Text(".")
            body += values
            item += body
            found += item
        return [found]


def setup(app: Sphinx) -> dict[str, bool]:
    directive: type[Directive] = ClusterLabels
    app.add_directive("cluster-labels", directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
