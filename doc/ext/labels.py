# SPDX-License-Identifier: Apache-2.0
"""Directives ``cluster-labels`` and ``refused-labels``: every label, and what other drivers had.

What a label moves is in effects/labels.yaml of the driver, which a test of the charts makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from magnum.drivers.k8s_capi_helm import labels
from magnum.drivers.k8s_capi_helm.commands.explain import effects
from magnum.drivers.k8s_capi_helm.labels import unsupported

EFFECTS = effects.DIRECTORY / "labels.yaml"


def default(value: object) -> str:
    """A default as a user would write it; "" where nothing is the default."""
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def notes(label: labels.Label) -> Iterator[str]:
    """Further notes on a label."""
    yield f"Expected: {label.label_type.expected}."
    if label.scopes == (labels.LabelScope.TEMPLATE,):
        yield "Has an effect in cluster templates only."
    if labels.LabelScope.NODEGROUP in label.scopes:
        yield "Can be set on a nodegroup."
    if label.immutable:
        yield "Only for a new cluster."
    if label.requires_bundled_chart:
        yield "Requires the bundled chart."
    if label.is_for_rollouts:
        yield "For the operator's rollouts; it changes nothing in the cluster."
    if label.aliases:
        yield f"Old name: {', '.join(label.aliases)}."


def listed(title: str, texts: Iterable[str]) -> nodes.paragraph:
    """A paragraph of literals."""
    found = nodes.paragraph("", title)
    for number, text in enumerate(texts):
        found += [nodes.Text(", " if number else ""), nodes.literal("", text)]
    found += nodes.Text(".")
    return found


class ClusterLabels(SphinxDirective):
    """``.. cluster-labels::`` takes no arguments."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(EFFECTS))
        known = effects.label_effects()
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
            if moved := known.get(label.name):
                body += listed("The example moves the values ", moved.values)
                body += listed("and with them ", moved.objects)
            item += body
            found += item
        return [found]


class RefusedLabels(SphinxDirective):
    """``.. refused-labels::`` takes no arguments."""

    def run(self) -> list[nodes.Node]:
        found = nodes.definition_list()
        for name, reason in unsupported.REFUSED.items():
            found += described(name, reason)
        operators = nodes.definition_list()
        for name, reason in unsupported.OPERATORS.items():
            operators += described(name, f"It has no effect: {reason}")
        return [
            found,
            nodes.paragraph("", "Set by the cloud's operator; these labels have no effect:"),
            operators,
            listed(
                "Versions that come with the charts or with Kubernetes, so that these labels have "
                "no effect: ",
                sorted(unsupported.BUNDLED),
            ),
            listed(
                "Labels for Magnum's former Heat driver, without effect: ", sorted(unsupported.HEAT)
            ),
        ]


def described(name: str, text: str) -> nodes.definition_list_item:
    """A name and what is to be said of it."""
    item = nodes.definition_list_item()
    item += nodes.term("", "", nodes.literal("", name))
    item += nodes.definition("", nodes.paragraph("", text))
    return item


def setup(app: Sphinx) -> dict[str, bool]:
    directives: dict[str, type[Directive]] = {
        "cluster-labels": ClusterLabels,
        "refused-labels": RefusedLabels,
    }
    for name, directive in directives.items():
        app.add_directive(name, directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
