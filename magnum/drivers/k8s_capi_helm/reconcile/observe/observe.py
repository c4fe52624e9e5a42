# SPDX-License-Identifier: Apache-2.0
"""Observe and evaluate one cluster: Lease, release, snapshot -> Verdict."""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors, status
from magnum.drivers.k8s_capi_helm.kube.watch.informers import CachedReader
from magnum.drivers.k8s_capi_helm.magnum_objects import state as magnum_state_reader
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader as magnum_reader
from magnum.drivers.k8s_capi_helm.model import (
    Json,
    names,
    Observed,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import (
    Reconciliation,
    ReleaseSnapshot,
)
from magnum.drivers.k8s_capi_helm.reconcile.observe import (
    cluster_notices,
    evaluation_inputs,
    observe_cluster,
    read_release,
    verdict_duration,
)
from magnum.drivers.k8s_capi_helm.reconcile.observe.evaluation import Evaluation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.release import autoscaler_deployment, revisions
from magnum.drivers.k8s_capi_helm.status import news
from magnum.drivers.k8s_capi_helm.status.texts import complete_messages
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade_nodegroups

LOG = logging.getLogger(__name__)

#: What tells why something is not in place, and never that it is: a watch may be behind with it.
_CAUSES = frozenset({names.EVENT, names.OPENSTACK_SERVER, names.MACHINE_SET})
#: What says itself that it has carried out what Helm has written last, and does not change with the
#: nodes: the second snapshot may have it from a watch. It was so then, for that generation.
SELF_REPORTED = frozenset({names.OPENSTACK_CLUSTER, names.HELM_RELEASE, names.MANIFESTS})


@dataclasses.dataclass(frozen=True, slots=True)
class ApplyOutcome:
    """What became of applying what Magnum's objects ask for.

    :ivar refusal: why it can not be carried out, "" if it can.
    :ivar waiting_error: why it is not applied yet, None if it is.
    :ivar snapshot: record and release, as they were read for it; None to read them.
    """

    refusal: str = ""
    waiting_error: errors.DriverError | None = None
    snapshot: ReleaseSnapshot | None = None


NOT_APPLIED = ApplyOutcome()


def evaluate_cluster(
    run: Reconciliation,
    cluster: Any,
    cluster_nodegroups: Iterable[Any],
    outcome: ApplyOutcome = NOT_APPLIED,
    *,
    include_health: bool = False,
    may_finish: bool = True,
) -> Evaluation:
    """Observe and evaluate: by what is watched while that changes nothing, else by a snapshot.

    :param outcome: of applying what the rows ask for.
    :param include_health: whether the health is asked for as well.
    :param may_finish: whether the verdict may end what is in progress.
    """
    case = _Case(run, cluster, list(cluster_nodegroups), outcome, include_health, may_finish)
    magnum = evaluation_inputs.magnum_digest(run.settings, cluster, case.nodegroups)
    judgement = _judge(case, magnum)
    subject, observed, verdict = judgement.subject, judgement.observed, judgement.verdict
    if not may_finish:
        verdict = news.without_ends(verdict, subject.state)
    new_messages = complete_messages.new_messages(verdict, subject.state, include_health)
    _log_complete_messages(cluster, observed, new_messages)
    evaluation = _evaluation(subject, observed, verdict)
    if (
        may_finish
        and not (outcome.refusal or outcome.waiting_error)
        and evaluation.waits_for_change
    ):
        known = ReleaseSnapshot(subject.read.record, subject.read.live)
        made_of = evaluation_inputs.inputs(magnum, known, observed, include_health=include_health)
        duration = verdict_duration.duration(observed, subject.state, judgement.verdict, run.now)
        return dataclasses.replace(evaluation, inputs=made_of, duration=duration)
    return evaluation


@dataclasses.dataclass(frozen=True, slots=True)
class _Case:
    """What is evaluated, and what for: the arguments of :func:`evaluate_cluster`."""

    run: Reconciliation
    cluster: Any
    nodegroups: list[Any]
    outcome: ApplyOutcome
    include_health: bool
    may_finish: bool

    def cache_key(self, magnum: str, view: CachedReader) -> evaluation_inputs.CacheKey:
        """Under which record and release may be cached.

        :param magnum: digest of Magnum's objects and of the options.
        """
        is_settled = evaluation_inputs.is_settled(self.cluster, self.nodegroups)
        return evaluation_inputs.CacheKey(magnum, view, self.include_health and is_settled)


@dataclasses.dataclass(frozen=True, slots=True)
class _Judgement:
    """A verdict, what it is about and what it was made of.

    :ivar changes: whether Magnum shows something else until now, or may.
    """

    subject: _Subject
    observed: Observed
    verdict: Verdict
    changes: bool


def _judge(case: _Case, magnum: str) -> _Judgement:
    """The verdict by what was read for the reconciliation, by what is cached, or by a snapshot.

    :param magnum: digest of Magnum's objects and of the options.
    """
    evaluations, release = case.run.clients.evaluations, release_of(case.cluster.stack_id)
    view, known = case.run.clients.reader(), case.outcome.snapshot
    key = case.cache_key(magnum, view)
    if not key.is_settled:
        evaluations.forget_release(release)
    judgement = _judge_by(case, known, key, view)
    if confirmed := _confirmed(judgement, view):
        return confirmed
    is_missing = key.is_settled and not judgement.verdict.fingerprint
    if judgement.subject.read.is_cached and (judgement.changes or is_missing):
        # Record and release may be older than the change, or than what is not in place by them.
        evaluations.forget(release)
        known = None
        judgement = _judge_by(case, known, key, view)
    if _needs_objects(judgement, view) and not (known and known.objects):
        return _with_objects(judgement, view.only(_CAUSES))
    return judgement


def _confirmed(judgement: _Judgement, view: CachedReader) -> _Judgement | None:
    """A verdict that only completes, made once more; None where it is another one.

    The Lease is not read before it is written: the API server refuses the write where it has
    another version than the record, and Helm runs under the lock of the Lease only.
    """
    subject, case = judgement.subject, judgement.subject.case
    known = case.outcome.snapshot
    is_read = not view.watched or (known is not None and known.objects is not None)
    if is_read or case.include_health or not judgement.changes:
        return None
    if not news.only_completes(judgement.verdict, subject.state):
        return None
    confirmed = _with_objects(judgement, view.only(_CAUSES | SELF_REPORTED))
    return confirmed if news.only_completes(confirmed.verdict, subject.state) else None


def _with_objects(judgement: _Judgement, view: CachedReader) -> _Judgement:
    """The verdict once more, by the objects that *view* reads."""
    subject = judgement.subject
    observed = subject.observe(view)
    verdict = status.evaluate(observed, subject.state, subject.case.run.now)
    return dataclasses.replace(judgement, observed=observed, verdict=verdict)


def _needs_objects(judgement: _Judgement, view: CachedReader) -> bool:
    """Whether a verdict is made once more, by what the management cluster says now."""
    subject, record = judgement.subject, judgement.subject.read.record
    if not view.watched or judgement.changes:
        return view.watched
    if record is None or not news.is_first_snapshot(judgement.verdict, subject.state):
        return False
    # The Lease was read now: one that the watches do not know yet says that they are behind.
    owner = ownership.owner(subject.cluster, subject.case.run.settings)
    watched_version = view.version(names.LEASE, owner.namespace, names.lease(owner.release))
    return watched_version != record.version


def _judge_by(
    case: _Case,
    known: ReleaseSnapshot | None,
    key: evaluation_inputs.CacheKey,
    view: CachedReader,
) -> _Judgement:
    """The verdict by record, release and objects, as far as they are known, and read else.

    :param key: under which record and release may be cached.
    :param view: through which objects are read that are not known.
    """
    read = read_release.read_release(case.run, case.cluster, case.nodegroups, known, key)
    subject = _Subject(case, read)
    observed = known.observed if known else None
    if observed is None:
        observed = subject.observe(view, known.objects if known else None)
    verdict = status.evaluate(observed, subject.state, case.run.now)
    changes = not read.is_readable or (
        case.may_finish and news.is_change(verdict, subject.state, subject.health_of(verdict))
    )
    return _Judgement(subject, observed, verdict, changes)


class _Subject:
    """A cluster that is evaluated: its rows, its release and what Magnum shows of it."""

    def __init__(self, case: _Case, read: read_release.ReadRelease) -> None:
        self.case = case
        self.cluster = case.cluster
        self.rows = case.nodegroups
        self.read = read
        outcome = case.outcome
        self.state = magnum_state_reader.with_outcome(
            magnum_state_reader.magnum_state(self.cluster, self.rows, read.record, read.live),
            is_applied=read.is_applied,
            only_new_nodegroups_missing=read.only_new_nodegroups_missing,
            refusal=outcome.refusal,
            waiting_error=outcome.waiting_error or read.outdated,
        )

    def health_of(self, verdict: Verdict) -> str | None:
        """The health that Magnum shows, as far as the verdict is about it."""
        return self.cluster.health_status if self.case.include_health else verdict.health

    @property
    def values(self) -> Json:
        """The values of the deployed release, {} without one."""
        return self.read.live.values if self.read.live else {}

    @property
    def own_images(self) -> frozenset[str]:
        """Nodegroups whose rows have an image of their own, by their names in the values."""
        return magnum_reader.own_images(self.cluster, self.rows)

    def observe(self, view: CachedReader | None, objects: Observed | None = None) -> Observed:
        """A snapshot with what others than Cluster API know.

        :param objects: as they were read a moment ago; None to read them.
        """
        case = self.case
        return observe_cluster.observe(
            case.run,
            case.cluster,
            self.read.live,
            view,
            objects,
            include_health=case.include_health,
        )


def _evaluation(subject: _Subject, observed: Observed, verdict: Verdict) -> Evaluation:
    """The verdict with its notices, and what the passes have to know besides."""
    read, values, own = subject.read, subject.values, subject.own_images
    record, live = read.record, read.live
    verdict = _with(verdict, "labels", cluster_notices.label_text(live, subject.state))
    settings, state = subject.case.run.settings, subject.state
    sentences = cluster_notices.cluster_notices(
        settings, subject.cluster, subject.rows, read, state, observed
    )
    verdict = _with(verdict, "notice", " ".join(sentences))
    unfinished = upgrade_nodegroups.unfinished_operations(record, values, own)
    failed = verdict.status.endswith("_FAILED") and not subject.state.refusal
    if failed and (live is not None or read.outdated) and not read.is_applied:
        # Its time is over, and Helm has not taken it yet: no row may say that it is done.
        unfinished |= upgrade_nodegroups.continued_operations(record)
    # Of a cluster that was adopted nobody knows what its rows mean, until Helm has run for it.
    has_run = live is not None and record is not None and bool(record.chart_digest)
    return Evaluation(
        verdict,
        record,
        unreachable=bool(observed.unreachable),
        unfinished_operations=unfinished,
        is_cached=read.is_cached,
        is_release_incomplete=has_run and not read.is_applied,
        is_release_newer=read.is_newer,
        rendered_nodegroups=frozenset(values_live.node_groups(values)),
        unrecorded_revisions=revisions.unrecorded_revisions(record, live),
        autoscaler_is_due=autoscaler_deployment.is_due(live, settings),
    )


def _log_complete_messages(cluster: Any, observed: Observed, new_messages: set[str]) -> None:
    """Log in whole what the tenant is told a part of, when that is new."""
    if not new_messages:
        return
    for message in complete_messages.withheld_messages(observed, new_messages):
        LOG.info("Cluster %s: complete message: %s", cluster.uuid, message)


def _with(verdict: Verdict, key: str, text: str) -> Verdict:
    """What the tenant should know stays visible while it is true, whatever the health is."""
    if not text:
        return verdict
    return dataclasses.replace(verdict, health_reason={**verdict.health_reason, key: text})
