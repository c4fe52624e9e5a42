# SPDX-License-Identifier: Apache-2.0
"""An issue: one sentence, and the class of its cause."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import re

from magnum.drivers.k8s_capi_helm.errors import Cause, column_limits
from magnum.drivers.k8s_capi_helm.model import conditions, GroupState
from magnum.drivers.k8s_capi_helm.status.texts import json_sentence

#: Longest reason, in characters: one line in ``openstack coe cluster show`` and in Horizon.
REASON_LIMIT = 250

#: First match wins. Patterns are words of Nova, Neutron, Octavia, Cinder, Keystone and Cluster API.
_CAUSES: tuple[tuple[Cause, str], ...] = (
    (Cause.QUOTA, r"quota|overlimit|OverQuota|exceeds allowed"),
    (
        Cause.CAPACITY,
        r"no valid host|not enough hosts|insufficient (?:compute )?(?:capacity|resources)",
    ),
    (Cause.CREDENTIAL, r"\b401\b|unauthori[sz]ed|authenticat|application credential"),
    (Cause.PERMISSION, r"\b403\b|forbidden|policy does(?:n't| not) allow"),
    (Cause.IMAGE, r"\bimages?\b"),
    (Cause.REQUEST, r"\bflavors?\b|keypair|key_name|availability zone|volume type"),
    (
        Cause.NETWORK,
        r"network|subnet|router|security ?group|floating ?ip|load ?balancer|listener|\bports?\b"
        r"|\bpool\b",
    ),
    (Cause.BOOTSTRAP, r"bootstrap|kubelet|kubeadm|\bnode\b"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Issue:
    """Something that is not in place.

    :ivar text: what, with names and numbers, without the class in front.
    :ivar cause: who has to move; None when it is only a matter of time.
    :ivar group: the group that it is about, None for the cluster as a whole.
    :ivar since: when it began, as far as anybody says (aware).
    :ivar is_unapplied: the request is not on the management cluster yet, so that what the objects
        say is about an earlier one.
    """

    text: str
    cause: Cause | None = None
    group: GroupState | None = None
    since: datetime.datetime | None = None
    is_unapplied: bool = False

    def line(self) -> str:
        """The finding as a reason: its class in front, one bounded line."""
        return shorten_reason(f"{self.cause.value if self.cause else 'waiting'}: {self.text}")


def reason_class(text: str) -> str:
    """The class in front of a reason; "" without one, as of what is only a matter of time."""
    head = text.partition(":")[0]
    return head if head in {cause.value for cause in Cause} else ""


def row_class(status: str, reason: str) -> str:
    """The class of the reason of one of Magnum's rows.

    Magnum saves a refusal as the driver says it to the client, without a class in front: so what
    has failed with such a reason is a request that has to be corrected, or needs a higher quota.
    """
    if reason_class(reason) or not reason or not status.endswith("_FAILED"):
        return reason_class(reason)
    is_quota = cause_of(reason, Cause.REQUEST) is Cause.QUOTA
    return str(Cause.QUOTA if is_quota else Cause.REQUEST)


def shorten_reason(text: str, limit: int = REASON_LIMIT) -> str:
    """*text* as one line of at most *limit* characters, which ends with a whole word."""
    return column_limits.shorten(" ".join(conditions.words(text).split()), limit)


def clause(text: str) -> str:
    """A text without its full stop, so that the line can continue; a cut one keeps its dots.

    Many sentences of OpenStack and Cluster API end with one.
    """
    return text if text.endswith("..") else text.removesuffix(".")


def about(text: str, title: str) -> str:
    """A message and the object that it is about."""
    return f"{clause(text)} ({title})"


def joined_reasons(first: str, last: str) -> str:
    """Two sentences as one line; if they do not fit, it is the first that is cut, down to half."""
    first = clause(first)
    limit = max(REASON_LIMIT // 2, REASON_LIMIT - len(last) - 2)
    return shorten_reason(f"{shorten_reason(first, limit)}; {last}")


def cause_of(text: str, default: Cause = Cause.INTERNAL) -> Cause:
    """Who has to move, by the words of a service's or controller's message."""
    text = conditions.words(text)
    for cause, pattern in _CAUSES:
        if re.search(pattern, text, re.IGNORECASE):
            return cause
    return default


def unwrap_message(text: str) -> str:
    """The sentence that a person can use out of a controller's message.

    CAPO passes on a whole HTTP answer, ``... but got 403 instead: {"forbidden": {"message": "Quota
    exceeded ..."}}``; the sentence in its JSON is what the tenant needs. A text without is
    returned as it is, as far as it is read (:data:`conditions.LONGEST`).
    """
    return _unwrapped(conditions.words(text))


@functools.lru_cache(maxsize=256)
def _unwrapped(text: str) -> str:
    """Several questions of a pass are about the same message, and so are those of the next pass."""
    return json_sentence.extract_sentence(text) or text
