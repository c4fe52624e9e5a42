# SPDX-License-Identifier: Apache-2.0
"""Look at one cluster and judge it: record, live release, objects, Nova's faults -> Verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
import dataclasses
import datetime
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors, status
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.kube import snapshot
from magnum.drivers.k8s_capi_helm.magnum_objects import notices
from magnum.drivers.k8s_capi_helm.magnum_objects import reader as magnum_reader
from magnum.drivers.k8s_capi_helm.magnum_objects import state as magnum_state_reader
from magnum.drivers.k8s_capi_helm.model import (
    GroupVerdict,
    LiveRelease,
    MagnumState,
    names,
    Observed,
    operation,
    ReleaseRecord,
    Revisions,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.reconcile import (
    adoption,
    autoscaler_deployment,
    nodegroups,
    observe_cloud,
    orphans,
    ownership,
    reconciler,
    revisions,
)
from magnum.drivers.k8s_capi_helm.reconcile.clients import Clients
from magnum.drivers.k8s_capi_helm.reconcile.context import ReleaseSnapshot
from magnum.drivers.k8s_capi_helm.status import nodegroups as status_nodegroups
from magnum.drivers.k8s_capi_helm.status import withheld
from magnum.drivers.k8s_capi_helm.values import live as values_live
from magnum.drivers.k8s_capi_helm.values import rollout

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Evaluation:
    """A verdict and the record that it was judged by.

    :ivar unfinished: ids of operations that go on, whatever the verdict.
    :ivar lacking: the rows ask for something that the release does not have, which is known to have
        had all of it once.
    :ivar rendered: nodegroups that the release has, by their names in the chart's values.
    :ivar unnoted: revisions of the release that the record does not know of, None for none.
    :ivar autoscaler_is_due: its autoscaler is another one than the operator has set.
    """

    verdict: Verdict
    record: ReleaseRecord | None
    unreachable: bool
    unfinished: frozenset[str] = frozenset()
    lacking: bool = False
    rendered: frozenset[str] = frozenset()
    unnoted: Revisions | None = None
    autoscaler_is_due: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class _Release:
    """What was read of a release.

    :ivar applied: whether that is all that was asked for.
    :ivar joining: whether it is all but for nodegroups whose requests are still being checked.
    :ivar answered: whether there was an answer.
    :ivar kept: it was not read now, but a while ago.
    :ivar outdated: why the release that is there is not believed; there is none in *live* then.
    """

    record: ReleaseRecord | None = None
    live: LiveRelease | None = None
    applied: bool = False
    joining: bool = False
    answered: bool = False
    kept: bool = False
    outdated: errors.ReleaseOutdated | None = None

    @property
    def is_lost(self) -> bool:
        """Whether there is no release, not even one that is refused."""
        return self.answered and self.live is None and self.outdated is None


def evaluate(
    ports: Clients,
    cluster: Any,
    rows: Iterable[Any],
    conf: Any,
    now: datetime.datetime,
    *,
    cloud: Callable[[], Cloud],
    refusal: str = "",
    waiting: errors.DriverError | None = None,
    polled: bool = False,
    ends: bool = True,
    known: ReleaseSnapshot | None = None,
) -> Evaluation:
    """Look and judge: by what is watched while that is no news, else by a look of its own.

    :param refusal: why what was asked for can not be carried out, "" if it can.
    :param waiting: why it is not applied yet, None if it is.
    :param polled: whether the health is asked for as well.
    :param ends: whether the verdict may end what is in progress, or be one of the looks for that.
    :param known: record and release, as this pass has read them; None to read them.
    """
    namespace, release = magnum_reader.namespace(cluster, conf), cluster.stack_id
    rows = list(rows)
    view = ports.reader()
    at_rest = polled and all(_rests(one) for one in (cluster, *rows))
    whole = at_rest and ports.informers is not None and ports.informers.is_whole(view)
    if not at_rest:
        ports.settled.forget(release)
    place = view.place if at_rest else None
    read = _read(ports, cluster, rows, conf, now, place=place, whole=whole, known=known)
    record, live = read.record, read.live
    state = magnum_state_reader.magnum_state(
        cluster,
        rows,
        record,
        live,
        applied=read.applied,
        joining=read.joining,
        refusal=refusal,
        waiting=waiting or read.outdated,
    )

    def judged(reader: snapshot.Reader, at: datetime.datetime) -> tuple[Observed, Verdict]:
        observed = snapshot.take_snapshot(reader, namespace, release, at)
        if not observed.unreachable:
            observed = ports.controller_check.heard(ports.kube, observed, _said(state))
            owner, resting = ownership.owner(cluster, conf), cluster.status.endswith("_COMPLETE")
            said = state.health_reason.get("credential", "")
            observed = observe_cloud.add_cloud_observations(
                ports, observed, owner, live, cloud, resting=resting, said=said
            )
            if polled and resting:
                said = state.health_reason.get("inside", "")
                inside = ports.addon_check.inside(ports.kube, namespace, release, observed, said)
                observed = dataclasses.replace(observed, inside=inside)
        return observed, status.evaluate(observed, state, now)

    observed, verdict = judged(view, now - datetime.timedelta(seconds=view.behind))
    health = cluster.health_status if polled else verdict.health
    news = not read.answered or (ends and _is_news(verdict, state, health))
    if read.kept and (news or not verdict.fingerprint):
        # Record and release may be older than the news, or than what is not in place by them.
        ports.settled.forget(release)
        return evaluate(ports, cluster, rows, conf, now, cloud=cloud, polled=polled)
    if view.watched and news:
        observed, verdict = judged(ports.kube, now)
    if not ends:
        verdict = _refreshed(verdict, state)
    _keep_in_log(cluster, observed, withheld.new_messages(verdict, state, polled))
    values = live.values if live else {}
    verdict = _with(verdict, "labels", _labels(live, state))
    own = magnum_reader.own_images(cluster, rows)
    told = (
        *notices.notices(cluster, conf, values, rows),
        rollout.version_skew(record, values, own),
        rollout.missing_template_changes(record, values),
        orphans.notice(observed, state.health_reason.get("notice", "")),
        status_nodegroups.drifted_replicas(observed, state),
        autoscaler_deployment.notice(live, conf),
        adoption.notice(record, observed) if read.is_lost else revisions.notice(read.outdated),
    )
    verdict = _with(verdict, "notice", " ".join(one for one in told if one))
    unfinished = rollout.unfinished(record, values, own)
    failed = verdict.status.endswith("_FAILED") and not state.refusal
    if failed and (live is not None or read.outdated) and not read.applied:
        # Its time is over, and Helm has not taken it yet: no row may say that it is done.
        unfinished |= rollout.continued(record)
    # Of a cluster that was taken over nobody knows what its rows mean, until Helm has run for it.
    has_run = live is not None and record is not None and bool(record.chart_digest)
    lacking = has_run and not read.applied
    rendered = frozenset(values_live.node_groups(values))
    unreachable = bool(observed.unreachable)
    return Evaluation(
        verdict,
        record,
        unreachable,
        unfinished,
        lacking,
        rendered,
        unnoted=revisions.unrecorded_revisions(record, live),
        autoscaler_is_due=autoscaler_deployment.is_due(live, conf),
    )


def _said(state: MagnumState) -> str:
    """What the rows say of a cluster now, in words."""
    return "\n".join((state.status_reason or "", *state.health_reason.values()))


def _keep_in_log(cluster: Any, observed: Observed, told: set[str]) -> None:
    """Log in whole what the tenant is told a part of, when that is new."""
    for message in withheld.withheld_messages(observed, told) if told else ():
        LOG.info("Cluster %s: the whole of what is told of it: %s", cluster.uuid, message)


def _rests(row: Any) -> bool:
    """Whether nothing is to be done about it; a nodegroup's row of long ago may have no status."""
    return (row.status or "").endswith("_COMPLETE")


def _is_news(verdict: Verdict, state: MagnumState, health: str | None) -> bool:
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


def _refreshed(verdict: Verdict, state: MagnumState) -> Verdict:
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


def _read(
    ports: Clients,
    cluster: Any,
    rows: list[Any],
    conf: Any,
    now: datetime.datetime,
    *,
    place: str | None,
    whole: bool,
    known: ReleaseSnapshot | None,
) -> _Release:
    """What there is of a release.

    :param place: of which management cluster it may be kept for the next pass; None if not.
    :param whole: whether everything else is watched, so that what was kept may be used.
    :param known: as this pass has read it, None to read it.
    """
    namespace, release = magnum_reader.namespace(cluster, conf), cluster.stack_id
    try:
        recent = nodegroups.is_recent(ports, now)
        request = magnum_reader.cluster_request(cluster, rows, conf, is_recent=recent)
        kept = ports.settled.get(request, place) if whole and place is not None else None
        if kept is not None and reconciler.is_applied(kept[1], request, kept[0]):
            return _Release(*kept, applied=True, answered=True, kept=True)
        if known is None:
            known = ReleaseSnapshot(
                ports.leases.read(namespace, release), ports.helm.live(namespace, release)
            )
        record, live = known.record, known.live
        if outdated := revisions.outdated(record, live):
            LOG.warning("Cluster %s: %s %s", cluster.uuid, outdated, outdated.detail)
            return _Release(record, answered=True, outdated=outdated)
        if place is not None and revisions.unrecorded_revisions(record, live) is None:
            ports.settled.keep(request, place, record, live)
        request = operation.without_deleted(request, record)
        applied = reconciler.is_applied(live, request, record)
        joining = not applied and reconciler.is_joining(live, request, record)
        return _Release(record, live, applied, joining, answered=True)
    except errors.DriverError as error:
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
        return _Release()


def _labels(live: LiveRelease | None, state: MagnumState) -> str:
    """The labels that the cluster was made with, site defaults included; as before if unknown."""
    if live is None:
        return state.health_reason.get("labels", "")
    annotations = live.values.get("clusterAnnotations") or {}
    prefix = f"{names.EFFECTIVE_LABEL}/"
    found = {
        key.removeprefix(prefix): annotations[key] for key in annotations if key.startswith(prefix)
    }
    return "; ".join(f"{name}={found[name]}" for name in sorted(found))


def _with(verdict: Verdict, key: str, text: str) -> Verdict:
    """What the tenant should know stays visible while it is true, whatever the health is."""
    if not text:
        return verdict
    return dataclasses.replace(verdict, health_reason={**verdict.health_reason, key: text})
