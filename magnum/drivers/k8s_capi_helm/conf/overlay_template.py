# SPDX-License-Identifier: Apache-2.0
"""A text of an overlay as a template: sandboxed, with a small context, its result is data."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import re
from typing import Any

import jinja2
import jinja2.sandbox

#: One expression and nothing else: its result keeps its type.
_EXPRESSION = re.compile(r"\{\{(?P<source>[^{}]*)\}\}")
_MARKS = ("{{", "{%", "{#")


class Omitted:
    """What an expression gives that wants its key to be left out."""


OMIT = Omitted()


@dataclasses.dataclass(frozen=True, slots=True)
class Context:
    """What a template may ask for; nothing else is in reach.

    :ivar labels: the cluster's labels as typed values, defaults applied.
    :ivar kubernetes_version: without a leading ``v``.
    """

    cluster_name: str
    cluster_uuid: str
    project_id: str
    template_name: str
    kubernetes_version: str
    labels: Mapping[str, Any]

    def names(self) -> dict[str, Any]:
        """The names that a template sees."""
        return {
            "cluster": {
                "name": _data(self.cluster_name),
                "uuid": self.cluster_uuid,
                "project_id": self.project_id,
            },
            "template": {"name": _data(self.template_name)},
            "kubernetes_version": self.kubernetes_version,
            "labels": {name: _data(value) for name, value in self.labels.items()},
            "omit": OMIT,
        }


class UnusableOverlay(ValueError):
    """A text that cannot be rendered, in words for the operator."""


def render(text: str, context: Context) -> Any:
    """The value that a text of an overlay stands for; :data:`OMIT` where it wants no key.

    The text is the operator's. What is put in place of an expression is data: it is not looked at
    for templates again, and, as the YAML has been read before, it cannot become another key.

    :raises Unusable: it is no template, or asks for what is not there.
    """
    if not any(mark in text for mark in _MARKS):
        return text
    try:
        if found := _EXPRESSION.fullmatch(text.strip()):
            value = _ENVIRONMENT.compile_expression(found["source"], undefined_to_none=False)(
                **context.names()
            )
            return _plain(value)
        return _ENVIRONMENT.from_string(text).render(**context.names())
    except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise UnusableOverlay(f"{type(error).__name__}: {error}") from None


def _plain(value: Any) -> Any:
    """The value if it is one that YAML has."""
    if isinstance(value, jinja2.Undefined):
        raise UnusableOverlay(f"there is no {value._undefined_name}")
    if value is OMIT or value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(one) for key, one in value.items()}
    raise UnusableOverlay(f"the result is a {type(value).__name__}, which YAML does not have")


def _data(value: Any) -> Any:
    """A tenant's text, unless what reads the values later would take it for a template."""
    if isinstance(value, str) and any(mark in value for mark in _MARKS):
        return jinja2.StrictUndefined("it holds a template of its own, and is not passed on")
    return value


_ENVIRONMENT = jinja2.sandbox.ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined)
# Two renders of one text have to be equal.
_ENVIRONMENT.globals.clear()
del _ENVIRONMENT.filters["random"]
