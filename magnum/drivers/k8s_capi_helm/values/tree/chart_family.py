# SPDX-License-Identifier: Apache-2.0
"""Refuse features of the bundled chart for charts of other families."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import Json, names

#: Keys of the values that only this project's chart knows, and who asks for them. ``*`` stands for
#: every entry of a list. A foreign chart has no closed schema: it would take such a key in silence.
OWN: Mapping[tuple[str, ...], str] = {
    ("proxy",): "http_proxy, https_proxy or no_proxy of the cluster template",
    ("apiServer", "port"): "apiserver_port of the cluster template",
}


def check_family(values: Json, family: str, live: Json | None = None) -> None:
    """Refuse values that the chart would not understand.

    :param family: of the chart that the values are for, "" for a foreign one.
    :param live: values of the live release: what is there already was no part of this request.
    :raises errors.InvalidRequest: naming what asked for them.
    """
    if family == names.CHART_FAMILY:
        return
    for path, asker in OWN.items():
        requested = list(_found(values, path))
        if requested and requested != list(_found(live or {}, path)):
            raise errors.InvalidRequest(
                f"The chart of this cluster does not support what {asker} asks for. Leave it out, "
                "or ask the cloud's operator for another chart."
            )


def _found(values: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """What stands at a path; nothing where it is not there."""
    if not path:
        yield values
    elif path[0] == "*" and isinstance(values, list):
        for entry in values:
            yield from _found(entry, path[1:])
    elif isinstance(values, Mapping) and path[0] in values:
        yield from _found(values[path[0]], path[1:])
