# SPDX-License-Identifier: Apache-2.0
"""Render a string of an overlay as a sandboxed Jinja2 template; the result is data."""

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


class OmittedValue:
    """The result of an expression whose key is omitted."""


OMIT = OmittedValue()


@dataclasses.dataclass(frozen=True, slots=True)
class Context:
    """The variables that a template can use; there are no others.

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
    """A string that cannot be rendered; the message is for the operator."""


def render_template(text: str, context: Context) -> Any:
    """The value of a string of an overlay; :data:`OMIT` if the key is omitted.

    The string is the operator's. The result of an expression is data: it is not rendered again, and
    cannot become another key, because the YAML is parsed first.

    :raises UnusableOverlay: the template is invalid, or uses an undefined variable.
    """
    if not any(mark in text for mark in _MARKS):
        return text
    try:
        if match := _EXPRESSION.fullmatch(text.strip()):
            value = _ENVIRONMENT.compile_expression(match["source"], undefined_to_none=False)(
                **context.names()
            )
            return _plain(value)
        return _ENVIRONMENT.from_string(text).render(**context.names())
    except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise UnusableOverlay(f"{type(error).__name__}: {error}") from None


def _plain(value: Any) -> Any:
    """The value, if YAML has its type."""
    if isinstance(value, jinja2.Undefined):
        raise UnusableOverlay(f"{value._undefined_name} is not defined")
    if value is OMIT or value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(item) for key, item in value.items()}
    raise UnusableOverlay(f"the result is a {type(value).__name__}, which is not a YAML type")


def _data(value: Any) -> Any:
    """A tenant's text; undefined if a later reader of the values would render it as a template."""
    if isinstance(value, str) and any(mark in value for mark in _MARKS):
        return jinja2.StrictUndefined("it contains template syntax of its own and is not passed on")
    return value


_ENVIRONMENT = jinja2.sandbox.ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined)
# Two renders of one text have to be equal.
_ENVIRONMENT.globals.clear()
del _ENVIRONMENT.filters["random"]
