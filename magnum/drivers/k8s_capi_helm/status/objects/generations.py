# SPDX-License-Identifier: Apache-2.0
"""Whether a snapshot is as new as the last Helm revision.

A look that comes from a watch may be older than a change that was made a moment ago, and then shows
the cluster as it was, in place. What Helm has written has a generation; none older may be believed.
"""

from __future__ import annotations

from collections.abc import Iterator

from magnum.drivers.k8s_capi_helm.model import conditions, Json, MagnumState, Observed, present
from magnum.drivers.k8s_capi_helm.status.texts.issue import Issue


def applied_generations(observed: Observed) -> dict[str, int]:
    """Generations of what Helm writes of a release, by uid, as one look shows them."""
    generations = ((_uid(obj), _generation(obj)) for obj in _things(observed))
    return {uid: generation for uid, generation in generations if uid and generation}


def missing(observed: Observed, state: MagnumState) -> Issue | None:
    """An object that this look shows older than it was written; None without one.

    One that is not shown at all is missed by those who ask for it; one that was made anew since has
    another uid.
    """
    for obj in _things(observed):
        if _generation(obj) < state.applied_generations.get(_uid(obj), 0):
            title = f"{obj.get('kind')} {conditions.name(obj)}"
            return Issue(f"the change of {title} is not visible yet", is_unapplied=True)
    return None


def _uid(obj: Json) -> str:
    return str(conditions.metadata(obj).get("uid") or "")


def _generation(obj: Json) -> int:
    generation = conditions.metadata(obj).get("generation")
    return generation if isinstance(generation, int) else 0


def _things(observed: Observed) -> Iterator[Json]:
    return present(
        observed.cluster,
        observed.infrastructure,
        observed.control_plane,
        observed.machine_deployments,
        observed.addons,
    )
