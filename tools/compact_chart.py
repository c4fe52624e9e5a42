# SPDX-License-Identifier: Apache-2.0
"""Take out of a copy of a chart what Helm would keep in every revision and nobody reads there.

Helm puts a chart's schema and its other files into the Secret of each revision. A schema's
descriptions and a README are for readers of the repository. The driver's wheel and the charts'
packages go without them, and have the same bytes; setup.py imports this module, so it needs nothing
but Python.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: Keywords for readers (https://json-schema.org/understanding-json-schema/reference/annotations).
_FOR_READERS = frozenset({"title", "description"})
#: Keywords with a schema for each name, which may be one of the above.
_NAMED = frozenset({"properties", "patternProperties", "definitions", "dependencies"})
#: Keywords with values, and no schemas.
_VALUES = frozenset({"enum", "const", "default", "examples"})


def compact(chart: Path) -> None:
    """Change a chart, and the charts inside it, in place.

    :param chart: a copy without links.
    """
    for path in list(chart.rglob("README.md")):
        path.unlink()
    for path in chart.rglob("values.schema.json"):
        schema = rules(json.loads(path.read_text(encoding="utf-8")))
        path.write_text(json.dumps(schema, separators=(",", ":")) + "\n", encoding="utf-8")


def rules(schema: Any) -> Any:
    """A JSON Schema that accepts the same values, without the texts for readers."""
    if isinstance(schema, list):
        return [rules(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _below(key, value)
        for key, value in schema.items()
        if key not in _FOR_READERS or not isinstance(value, str)
    }


def _below(key: str, value: Any) -> Any:
    if key in _VALUES:
        return value
    if key in _NAMED and isinstance(value, dict):
        return {name: rules(part) for name, part in value.items()}
    return rules(value)
