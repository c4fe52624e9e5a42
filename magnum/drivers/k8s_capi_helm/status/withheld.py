# SPDX-License-Identifier: Apache-2.0
"""Withheld: messages of which a tenant is told a part only, whole, for the operator's log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from magnum.drivers.k8s_capi_helm import conditions
from magnum.drivers.k8s_capi_helm.model import Json, Observed, present
from magnum.drivers.k8s_capi_helm.status.public_text import public

#: So many characters of a message tell it from others, and fit into any text that was cut.
_BEGINNING = 40


def withheld(observed: Observed, told: Iterable[str]) -> tuple[str, ...]:
    """The messages of a look that stand in one of the texts, and not as they were.

    :param told: what tenants read.
    """
    texts = [one for one in told if one]
    found: dict[str, None] = {}
    for raw in _messages(observed):
        line = " ".join(raw.split())
        shown = public(raw)
        if shown != line and any(shown[:_BEGINNING] in one for one in texts):
            found[line] = None
    return tuple(found)


def _messages(observed: Observed) -> Iterator[str]:
    for thing in _things(observed):
        for one in conditions.listed(thing):
            yield str(one.get("message") or "")
        yield str(conditions.dig(thing, "status", "failureMessage") or "")
    for event in present(observed.events):
        yield str(event.get("message") or "")
    yield from observed.server_faults.values()


def _things(observed: Observed) -> Iterator[Json]:
    return present(
        observed.cluster,
        observed.infrastructure,
        observed.control_plane,
        observed.machine_deployments,
        observed.machine_sets,
        observed.machines,
        observed.servers,
        observed.addons,
        observed.autoscaler,
    )
