# SPDX-License-Identifier: Apache-2.0
"""Directive ``cluster-causes``: what ``k8s-capi-helm why`` advises, by words and by class."""

from __future__ import annotations

from collections.abc import Iterable

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from magnum.drivers.k8s_capi_helm.commands.why import advice


def row(first: str, second: str) -> nodes.definition_list_item:
    """What a reason has, and what to do about it."""
    item = nodes.definition_list_item()
    item += nodes.term("", "", nodes.literal("", first))
    item += nodes.definition("", nodes.paragraph("", second))
    return item


def listed(rows: Iterable[tuple[str, str]]) -> nodes.definition_list:
    """A definition list of pairs."""
    return nodes.definition_list("", *(row(*pair) for pair in rows))


class ClusterCauses(SphinxDirective):
    """``.. cluster-causes::`` takes no arguments."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(advice.__file__))
        classes = [(f"{cause.value}: ...", text) for cause, text in advice.ADVICE.items()]
        return [
            nodes.paragraph("", "Reasons with one of these words, whatever their class:"),
            listed((f"... {words} ...", text) for words, text in advice.SPECIAL.items()),
            nodes.paragraph("", "Other reasons, by their class:"),
            listed([*classes, ("waiting: ...", advice.WAIT)]),
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("cluster-causes", ClusterCauses)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
