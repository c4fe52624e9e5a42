# SPDX-License-Identifier: Apache-2.0
"""Whether a verdict changes what Magnum says, and a verdict that ends nothing."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm.model import GroupVerdict, MagnumState, Verdict


def is_change(verdict: Verdict, state: MagnumState, health: str | None) -> bool:
    """Whether a verdict changes what Magnum says: then it is not made by what was watched alone.

    A watch may be behind, also behind what this very pass has just had Helm write.
    """
    rows = {one.name: one for one in state.groups}
    return (
        (verdict.status, verdict.health) != (state.status, health)
        # One of the two looks that an end asks for, as below.
        or bool(verdict.fingerprint and not state.status.endswith("_COMPLETE"))
        or any(
            one.gone
            or one.status != rows[one.name].status
            or one.node_count not in (None, rows[one.name].count)
            or (one.fingerprint and not one.status.endswith("_COMPLETE"))
            for one in verdict.groups
        )
    )


def without_ends(verdict: Verdict, state: MagnumState) -> Verdict:
    """What a verdict says anew of what goes on: it ends nothing, and is none of the two looks.

    An earlier look that it agrees with is kept, so that it counts; one that it does not is dropped.
    """
    rows = {one.name: one for one in state.groups}

    def group(one: GroupVerdict) -> GroupVerdict:
        row = rows[one.name]
        goes_on = one.status == row.status and not one.gone
        return dataclasses.replace(
            one,
            status=row.status,
            reason=one.reason if goes_on else row.reason,
            gone=False,
            fingerprint=one.fingerprint if one.fingerprint == row.ready_fingerprint else "",
        )

    goes_on = verdict.status == state.status
    return dataclasses.replace(
        verdict,
        status=state.status,
        reason=verdict.reason if goes_on else state.status_reason,
        groups=tuple(group(one) for one in verdict.groups),
        fingerprint=verdict.fingerprint if verdict.fingerprint == state.ready_fingerprint else "",
    )
