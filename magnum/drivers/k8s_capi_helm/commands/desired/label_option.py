# SPDX-License-Identifier: Apache-2.0
"""Labels as options of a command: NAME=VALUE, repeated."""

from __future__ import annotations

from collections.abc import Iterable

from magnum.drivers.k8s_capi_helm import errors


def read_labels(option: str, texts: Iterable[str]) -> dict[str, str]:
    """The labels of an option's texts.

    :param option: its name, for the message.
    :raises errors.InvalidRequest: a text has no name, or no value.
    """
    pairs = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not (name and separator):
            raise errors.InvalidRequest(
                f"An option takes labels as NAME=VALUE. {option} has '{text}'."
            )
        pairs[name] = value
    return pairs
