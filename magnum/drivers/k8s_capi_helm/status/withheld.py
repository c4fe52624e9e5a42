# SPDX-License-Identifier: Apache-2.0
"""Withheld: messages of which a tenant is told a part only, whole, for the operator's log.

A tenant's cluster can make each of them long, and there be many: what is looked through is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from magnum.drivers.k8s_capi_helm.errors import column_limits
from magnum.drivers.k8s_capi_helm.model import (
    conditions,
    MagnumState,
    Observed,
    present,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.status.public_text import LONGEST, public

#: So many characters of a message tell it from others, and fit into any text that was cut.
_BEGINNING = 40
#: So many characters of messages are looked through, those of the cluster's objects first.
_MOST = 64_000


def new_messages(verdict: Verdict, state: MagnumState, polled: bool) -> set[str]:
    """What tenants will read that the row does not say yet.

    :param polled: whether the health is written, and not the status.
    """
    if polled:
        texts = column_limits.fit("health_status_reason", verdict.health_reason)
        return set(texts.values()) - set(state.health_reason.values())
    return {column_limits.fit("status_reason", verdict.reason) or ""} - {state.status_reason or ""}


def withheld_messages(observed: Observed, told: Iterable[str]) -> tuple[str, ...]:
    """The messages of a look that stand in one of the texts, and not as they were.

    :param told: what tenants read.
    :returns: each in one line, the longest cut.
    """
    texts = [one for one in told if one]
    found: dict[str, None] = {}
    room = _MOST if texts else 0
    for raw in dict.fromkeys(message[:LONGEST] for message in _messages(observed)):
        if room <= 0:
            break
        line = " ".join(raw.split())
        if any(line in one for one in texts):
            continue
        room -= len(raw)
        shown = public(raw)
        if shown != line and any(shown[:_BEGINNING] in one for one in texts):
            found[line] = None
    return tuple(found)


def _messages(observed: Observed) -> Iterator[str]:
    for thing in (*observed.objects(), *present(observed.addons, observed.autoscaler)):
        for one in conditions.items(thing):
            yield str(one.get("message") or "")
        yield str(conditions.at_path(thing, "status", "failureMessage") or "")
    for event in present(observed.events):
        yield str(event.get("message") or "")
    yield from observed.server_faults.values()
