# SPDX-License-Identifier: Apache-2.0
"""The directive ``magnum-fields``: every field of Magnum's and what the driver does with it."""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from magnum.drivers.k8s_capi_helm.magnum_objects.validation.fields import Effect, FieldOwner, FIELDS


class MagnumFields(SphinxDirective):
    """``.. magnum-fields:: cluster template``, ``cluster`` or ``nodegroup``."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        place = FieldOwner(self.arguments[0])
        found = nodes.definition_list()
        for field in FIELDS:
            if field.owner is not place or field.effect is Effect.MAGNUM:
                continue
            item = nodes.definition_list_item()
            item += nodes.term("", "", nodes.literal("", field.name))
            text = nodes.paragraph("", "", nodes.strong("", f"{field.effect.capitalize()}. "))
            text += nodes.Text(field.help)
            item += nodes.definition("", text)
            found += item
        return [found]


def setup(app: Sphinx) -> dict[str, bool]:
    directive: type[Directive] = MagnumFields
    app.add_directive("magnum-fields", directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
