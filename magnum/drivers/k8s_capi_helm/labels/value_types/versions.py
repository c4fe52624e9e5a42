# SPDX-License-Identifier: Apache-2.0
"""Parse and compare versions of Kubernetes, Helm and charts."""

from __future__ import annotations

import re

from packaging.version import Version

_NUMBERS = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+")
_SEMANTIC = re.compile(
    r"v?(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)


def is_full_version(text: str) -> bool:
    """Whether *text* is a full version, with or without a ``v`` (https://semver.org)."""
    return _SEMANTIC.fullmatch(text) is not None


def parse(text: str) -> Version | None:
    """Major, minor and patch number of a semantic version; None where *text* begins otherwise.

    Pre-release and build do not count: PEP 440, which is what is compared, knows only some of them
    (https://packaging.python.org/en/latest/specifications/version-specifiers/).
    """
    numbers = _NUMBERS.match(text)
    return Version(numbers[0]) if numbers else None


def plain(text: object) -> str:
    """A version without its ``v``, "" when there is none."""
    return str(text or "").removeprefix("v")
