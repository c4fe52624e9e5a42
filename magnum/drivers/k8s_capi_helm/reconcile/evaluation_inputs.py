# SPDX-License-Identifier: Apache-2.0
"""Whether a reconciliation finds everything as the last evaluation did; nothing is evaluated then.

Record, release and objects are read all the same, and the checks of credentials, controllers and
addons have their turns: what is saved is to decide the same once more, and to look for changes that
are not there. What could not be read is never taken for unchanged.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
import dataclasses
import hashlib
import json
from typing import Any

from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.magnum_objects import reader, refresh
from magnum.drivers.k8s_capi_helm.model import (
    Json,
    LiveRelease,
    Missing,
    Observed,
    ReleaseRecord,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.reconcile import observe_cluster
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation, ReleaseSnapshot
from magnum.drivers.k8s_capi_helm.reconcile.evaluation_cache import Inputs

#: Groups of options that an evaluation may depend on.
_GROUPS = ("capi_helm", "capi_helm_cluster_labels", "drivers", "cinder")
#: Parts of a snapshot that are objects of the management cluster.
_OBJECTS = (
    "cluster",
    "infrastructure",
    "control_plane",
    "machine_deployments",
    "machine_sets",
    "machines",
    "servers",
    "addons",
    "events",
    "autoscaler",
)
#: Parts that are observed elsewhere. Those that are left out are times, which have no end here.
_OTHERS = ("server_faults", "failed_balancer", "credential", "inside", "silent")


@dataclasses.dataclass(frozen=True, slots=True)
class SnapshotCheck:
    """What was read where an evaluation is remembered.

    :ivar verdict: that of the evaluation, None where something has changed.
    """

    known: ReleaseSnapshot
    verdict: Verdict | None


def read(
    run: Reconciliation,
    cluster: Any,
    rows: list[Any],
    *,
    include_health: bool = False,
    record: ReleaseRecord | None = None,
) -> SnapshotCheck | None:
    """Read everything that a verdict depends on, and compare it with the last evaluation.

    :param include_health: whether the health is asked for.
    :param record: of the release, as it was read a moment ago; None to read it.
    :returns: None where no evaluation of these rows is remembered, and nothing is read.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    ports, release = run.clients, cluster.stack_id
    magnum = magnum_digest(run.settings, cluster, rows)
    if not ports.evaluations.is_evaluated(release, magnum, include_health=include_health):
        return None
    view, kept = ports.reader(), None
    if include_health and ports.informers is not None and ports.informers.is_whole(view):
        kept = ports.evaluations.release(release, magnum, view.place)
    if kept is None:
        namespace = reader.namespace(cluster, run.settings)
        record = record or ports.leases.read(namespace, release)
        live = ports.helm.live(namespace, release)
    else:
        record, live = kept
    known = ReleaseSnapshot(record, live, is_kept=kept is not None)
    if record is None or live is None:
        return SnapshotCheck(known, None)
    observed = observe_cluster.observe(run, cluster, live, view, include_health=include_health)
    found = inputs(magnum, known, observed, include_health=include_health)
    verdict = ports.evaluations.verdict(release, found, run.now) if found else None
    return SnapshotCheck(dataclasses.replace(known, observed=observed), verdict)


def inputs(
    magnum: str, snapshot: ReleaseSnapshot, observed: Observed, *, include_health: bool
) -> Inputs | None:
    """Everything that a verdict depends on, None where something could not be read."""
    versions = _versions(observed)
    if snapshot.record is None or snapshot.live is None or versions is None:
        return None
    return Inputs(magnum, include_health, snapshot.record, _digest(snapshot.live), versions)


def magnum_digest(settings: Settings, cluster: Any, rows: list[Any]) -> str:
    """A digest of Magnum's objects and of the options."""
    options = [(group, *sorted(dict(settings[group]).items())) for group in _groups(settings)]
    text = repr((refresh.content(cluster), [refresh.content(row) for row in rows], options))
    return hashlib.sha256(text.encode()).hexdigest()


def _groups(settings: Settings) -> Iterator[str]:
    return (group for group in _GROUPS if group in settings)


def _digest(live: LiveRelease) -> str:
    text = json.dumps(dataclasses.asdict(live), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _versions(observed: Observed) -> Hashable:
    """Versions of all that was observed, None where something could not be read."""
    if observed.unreachable:
        return None
    found: list[Hashable] = [repr(getattr(observed, part)) for part in _OTHERS]
    for name in _OBJECTS:
        part = getattr(observed, name)
        if part is Missing.UNREADABLE:
            return None
        things = part if isinstance(part, tuple) else (part,)
        found.append((name, tuple(_version(one) for one in things)))
    return tuple(found)


def _version(thing: Json | Missing | None) -> Hashable:
    """uid and resourceVersion of an object; its content where it has none."""
    if not isinstance(thing, dict):
        return thing
    metadata = thing.get("metadata") or {}
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    return (uid, version) if uid and version else json.dumps(thing, sort_keys=True)
