# SPDX-License-Identifier: Apache-2.0
"""Limits on the number and total size of labels.

Magnum's API takes any number of any length; only its column bounds them, in MySQL
(``errors/column_limits.py``). This driver and the drivers before it know some 150 labels.
"""

from __future__ import annotations

from collections.abc import Mapping

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.errors import column_limits

#: Labels of a cluster or a nodegroup: all that any driver knows, and a hundred of a cloud's own.
MOST = 256
#: Room for the labels of templates of later upgrades, which come on top.
_ROOM = 2


def check_new(texts: Mapping[str, str], subject: str) -> None:
    """Refuse more labels than every pass can be expected to read.

    :param subject: e.g. ``The cluster``.
    :raises errors.InvalidRequest: naming number or size, and the bound.
    """
    _check(texts, subject, MOST, column_limits.LABELS)


def check_merged(texts: Mapping[str, str], previous: Mapping[str, str], subject: str) -> None:
    """Refuse labels of a new template that leave a cluster (or nodegroup) with too many.

    :param previous: labels before the upgrade; one that has too many from before can be upgraded.
    :raises errors.InvalidRequest: naming number or size, and the bound.
    """
    if len(texts) > len(previous) or column_limits.encoded_size(
        dict(texts)
    ) > column_limits.encoded_size(dict(previous)):
        _check(
            texts,
            f"With the labels of the new template {subject}",
            _ROOM * MOST,
            column_limits.TEXT,
        )


def _check(texts: Mapping[str, str], subject: str, max_labels: int, max_size: int) -> None:
    if len(texts) > max_labels:
        raise errors.InvalidRequest(
            f"{subject} has {len(texts)} labels, and at most {max_labels} are allowed. Leave out "
            "those that have no effect."
        )
    size = column_limits.encoded_size(dict(texts))
    if size > max_size:
        longest_name = max(texts, key=lambda name: len(texts[name]))
        shortened = column_limits.shorten(longest_name, column_limits.STRING)
        raise errors.InvalidRequest(
            f"{subject} has labels of {size} bytes together, as Magnum stores them (JSON), and at "
            f"most {max_size} are allowed. The longest is '{shortened}': shorten it or leave it "
            "out."
        )
