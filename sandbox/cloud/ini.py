# SPDX-License-Identifier: Apache-2.0
"""Configuration files of oslo.config, readable by the owner only."""

from collections.abc import Mapping
import os
from pathlib import Path
import sys

Sections = dict[str, dict[str, object]]


def merged(base: Sections, more: Mapping[str, Mapping[str, object]]) -> Sections:
    """The options of both; of one that is in both, the second's."""
    return {
        section: {**base.get(section, {}), **more.get(section, {})}
        for section in dict.fromkeys([*base, *more])
    }


def ini(sections: Mapping[str, Mapping[str, object]]) -> str:
    """The text of an oslo.config file; ``$`` is not expanded."""
    lines = []
    for section, options in sections.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {str(value).replace('$', '$$')}" for key, value in options.items()]
        lines.append("")
    return "\n".join(lines)


def packaged(service: str, file: str) -> Path:
    """A file that the service's own package installed below the virtual environment's etc."""
    return Path(sys.prefix) / "etc" / service / file


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, as it may hold a password."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".draft")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)
