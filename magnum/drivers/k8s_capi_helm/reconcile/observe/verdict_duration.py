# SPDX-License-Identifier: Apache-2.0
"""For how long a verdict stays the same if nothing but the time changes."""

from __future__ import annotations

import dataclasses
import datetime

from magnum.drivers.k8s_capi_helm import status
from magnum.drivers.k8s_capi_helm.model import MagnumState, Observed, Verdict
from magnum.drivers.k8s_capi_helm.reconcile.observe import observe_cloud
from magnum.drivers.k8s_capi_helm.reconcile.process.evaluation_cache import (
    HEALTHY_HOLDS,
    VERDICT_HOLDS,
)

#: Longest first: what the time changes once stays changed.
_DURATIONS = (HEALTHY_HOLDS, VERDICT_HOLDS, datetime.timedelta(minutes=1))
#: Where OpenStack is asked for what it depends on, or where it changes soon.
_SHORTEST = datetime.timedelta(seconds=20)


def duration(
    observed: Observed, state: MagnumState, verdict: Verdict, now: datetime.datetime
) -> datetime.timedelta:
    """For how long a verdict is the same, at most.

    The rules are pure, so they tell today what they will tell then.

    :param verdict: on *observed* and *state* at *now*.
    :param now: aware, UTC.
    """
    if observe_cloud.is_cloud_needed(observed):
        return _SHORTEST

    def is_same(after: datetime.timedelta) -> bool:
        asof = observed.asof and observed.asof + after
        later = dataclasses.replace(observed, at=observed.at + after, asof=asof)
        if observe_cloud.is_cloud_needed(later):
            return False
        return status.evaluate(later, state, now + after) == verdict

    return next((after for after in _DURATIONS if is_same(after)), _SHORTEST)
