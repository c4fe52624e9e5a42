# SPDX-License-Identifier: Apache-2.0
"""Complete messages for the operator's log that a tenant reads shortened.

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
from magnum.drivers.k8s_capi_helm.status.texts.public_text import LONGEST, public

#: So many characters of a message tell it from others, and fit into any text that was cut.
_BEGINNING = 40
#: So many characters of messages are looked through, those of the cluster's objects first.
_MOST = 64_000


def new_messages(verdict: Verdict, state: MagnumState, is_health: bool) -> set[str]:
    """What tenants will read that the row does not say yet.

    :param is_health: whether the health is written, and not the status.
    """
    if is_health:
        texts = column_limits.fit("health_status_reason", verdict.health_reason)
        return set(texts.values()) - set(state.health_reason.values())
    return {column_limits.fit("status_reason", verdict.reason) or ""} - {state.status_reason or ""}


def withheld_messages(observed: Observed, shown_texts: Iterable[str]) -> tuple[str, ...]:
    """The messages of a look that stand in one of the texts, and not as they were.

    :param shown_texts: what tenants read.
    :returns: each in one line, the longest cut.
    """
    texts = [text for text in shown_texts if text]
    withheld: dict[str, None] = {}
    remaining = _MOST if texts else 0
    for raw in dict.fromkeys(message[:LONGEST] for message in _messages(observed)):
        if remaining <= 0:
            break
        line = " ".join(raw.split())
        if any(line in text for text in texts):
            continue
        remaining -= len(raw)
        public_message = public(raw)
        if public_message != line and any(public_message[:_BEGINNING] in text for text in texts):
            withheld[line] = None
    return tuple(withheld)


def _messages(observed: Observed) -> Iterator[str]:
    for obj in (*observed.objects(), *present(observed.addons, observed.autoscaler)):
        for condition in conditions.items(obj):
            yield str(condition.get("message") or "")
        yield str(conditions.at_path(obj, "status", "failureMessage") or "")
    for event in present(observed.events):
        yield str(event.get("message") or "")
    yield from observed.server_faults.values()
