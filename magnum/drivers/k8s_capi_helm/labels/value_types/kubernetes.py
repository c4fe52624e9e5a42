# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' own syntax of label keys and values.

The rules are those of
https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set.
"""

from __future__ import annotations

import re

_DNS_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\Z")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?\Z")


def is_label_key(text: str) -> bool:
    """Whether Kubernetes takes *text* as the key of a label or taint
    (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set).
    """
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= 253 and _DNS_NAME.match(prefix)):
        return False
    return bool(name) and is_label_value(name)


def is_label_value(text: str) -> bool:
    """Whether Kubernetes takes *text* as the value of a label; it may be empty."""
    return len(text) <= 63 and bool(_LABEL_VALUE.match(text))
