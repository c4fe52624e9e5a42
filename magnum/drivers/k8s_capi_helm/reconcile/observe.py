# SPDX-License-Identifier: Apache-2.0
"""Observe and evaluate one cluster: Lease, release, snapshot -> Verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import dataclasses
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors, status
from magnum.drivers.k8s_capi_helm.kube.informers import CachedReader
from magnum.drivers.k8s_capi_helm.magnum_objects import notices
from magnum.drivers.k8s_capi_helm.magnum_objects import reader as magnum_reader
from magnum.drivers.k8s_capi_helm.magnum_objects import state as magnum_state_reader
from magnum.drivers.k8s_capi_helm.model import (
    Json,
    LiveRelease,
    MagnumState,
    names,
    Observed,
    ReleaseRecord,
    Revisions,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.reconcile import (
    adoption,
    autoscaler_deployment,
    evaluation_inputs,
    observe_cluster,
    orphans,
    read_release,
    revisions,
)
from magnum.drivers.k8s_capi_helm.reconcile.caches import Inputs
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation, ReleaseSnapshot
from magnum.drivers.k8s_capi_helm.status import news, withheld
from magnum.drivers.k8s_capi_helm.status import nodegroups as status_nodegroups
from magnum.drivers.k8s_capi_helm.status.health import HEALTHY
from magnum.drivers.k8s_capi_helm.values import live as values_live
from magnum.drivers.k8s_capi_helm.values import upgrade_nodegroups

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
    :ivar inputs: what it was made of, if the same may give the same once more; None if not.
    """

    verdict: Verdict
    record: ReleaseRecord | None
    unreachable: bool
    unfinished: frozenset[str] = frozenset()
    lacking: bool = False
    rendered: frozenset[str] = frozenset()
    unnoted: Revisions | None = None
    autoscaler_is_due: bool = False
    inputs: Inputs | None = None

    @property
    def is_readable(self) -> bool:
        """Whether record and objects could be read."""
        return self.record is not None and not self.unreachable

    @property
    def waits_for_change(self) -> bool:
        """Whether nothing has to be done before an object of Magnum or Cluster API changes.

        What finds everything in place waits for its confirmation by a second snapshot.
        """
        record, verdict = self.record, self.verdict
        if record is None or self.unreachable:
            return False
        if self.lacking or self.autoscaler_is_due or self.unnoted:
            return False
        if verdict.status.endswith("_IN_PROGRESS"):
            return not verdict.fingerprint
        pending = record.operations or record.retired or record.deferred or record.tombstone
        return verdict.status.endswith("_COMPLETE") and verdict.health == HEALTHY and not pending


@dataclasses.dataclass(frozen=True, slots=True)
class ApplyOutcome:
    """What became of applying what Magnum's objects ask for.

    :ivar refusal: why it can not be carried out, "" if it can.
    :ivar waiting: why it is not applied yet, None if it is.
    :ivar known: record and release, as they were read for it; None to read them.
    """

    refusal: str = ""
    waiting: errors.DriverError | None = None
    known: ReleaseSnapshot | None = None


NOT_APPLIED = ApplyOutcome()


def evaluate(
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
    :param may_finish: whether the verdict may end what is in progress, or be one of the snapshots
        for that.
    """
    cluster_nodegroups, ports, known = list(cluster_nodegroups), run.clients, outcome.known
    magnum = evaluation_inputs.magnum_digest(run.settings, cluster, cluster_nodegroups)
    view = ports.reader()
    at_rest = include_health and all(
        read_release.is_settled(obj) for obj in (cluster, *cluster_nodegroups)
    )
    if not at_rest:
        ports.evaluations.forget_release(cluster.stack_id)
    for _ in range(2):
        key = evaluation_inputs.CacheKey(magnum, view) if at_rest else None
        read = read_release.read_release(run, cluster, cluster_nodegroups, known, key)
        subject = _Subject(run, cluster, cluster_nodegroups, read, outcome, include_health)
        observed = (known.observed if known else None) or subject.observe(view)
        verdict = status.evaluate(observed, subject.state, run.now)
        changes = not read.answered or (
            may_finish and news.is_change(verdict, subject.state, subject.health_of(verdict))
        )
        if not (read.kept and (changes or not verdict.fingerprint)):
            break
        # Record and release may be older than the change, or than what is not in place by them.
        ports.evaluations.forget(cluster.stack_id)
        known = None
    if view.watched and changes:
        observed = subject.observe(None)
        verdict = status.evaluate(observed, subject.state, run.now)
    if not may_finish:
        verdict = news.without_ends(verdict, subject.state)
    new_messages = withheld.new_messages(verdict, subject.state, include_health)
    _log_complete_messages(cluster, observed, new_messages)
    evaluation = _evaluation(subject, observed, verdict)
    if may_finish and not (outcome.refusal or outcome.waiting) and evaluation.waits_for_change:
        known = ReleaseSnapshot(read.record, read.live)
        made_of = evaluation_inputs.inputs(magnum, known, observed, include_health=include_health)
        return dataclasses.replace(evaluation, inputs=made_of)
    return evaluation


class _Subject:
    """A cluster that is evaluated: its rows, its release and what Magnum shows of it."""

    def __init__(
        self,
        run: Reconciliation,
        cluster: Any,
        cluster_nodegroups: list[Any],
        read: read_release.ReadRelease,
        outcome: ApplyOutcome,
        include_health: bool,
    ) -> None:
        self.run = run
        self.cluster = cluster
        self.rows = cluster_nodegroups
        self.read = read
        self.include_health = include_health
        self.state = magnum_state_reader.with_outcome(
            magnum_state_reader.magnum_state(cluster, cluster_nodegroups, read.record, read.live),
            applied=read.applied,
            only_new_nodegroups_missing=read.joining,
            refusal=outcome.refusal,
            waiting=outcome.waiting or read.outdated,
        )

    def health_of(self, verdict: Verdict) -> str | None:
        """The health that Magnum shows, as far as the verdict is about it."""
        return self.cluster.health_status if self.include_health else verdict.health

    @property
    def values(self) -> Json:
        """The values of the deployed release, {} without one."""
        return self.read.live.values if self.read.live else {}

    @property
    def own_images(self) -> frozenset[str]:
        """Nodegroups whose rows have an image of their own, by their names in the values."""
        return magnum_reader.own_images(self.cluster, self.rows)

    def observe(self, view: CachedReader | None) -> Observed:
        """A snapshot with what others than Cluster API know."""
        return observe_cluster.observe(
            self.run, self.cluster, self.read.live, view, include_health=self.include_health
        )


def _evaluation(subject: _Subject, observed: Observed, verdict: Verdict) -> Evaluation:
    """The verdict with its notices, and what the passes have to know besides."""
    read, values, own = subject.read, subject.values, subject.own_images
    record, live = read.record, read.live
    verdict = _with(verdict, "labels", _labels(live, subject.state))
    verdict = _with(verdict, "notice", " ".join(_notices(subject, observed)))
    unfinished = upgrade_nodegroups.unfinished_operations(record, values, own)
    failed = verdict.status.endswith("_FAILED") and not subject.state.refusal
    if failed and (live is not None or read.outdated) and not read.applied:
        # Its time is over, and Helm has not taken it yet: no row may say that it is done.
        unfinished |= upgrade_nodegroups.continued_operations(record)
    # Of a cluster that was adopted nobody knows what its rows mean, until Helm has run for it.
    has_run = live is not None and record is not None and bool(record.chart_digest)
    return Evaluation(
        verdict,
        record,
        unreachable=bool(observed.unreachable),
        unfinished=unfinished,
        lacking=has_run and not read.applied,
        rendered=frozenset(values_live.node_groups(values)),
        unnoted=revisions.unrecorded_revisions(record, live),
        autoscaler_is_due=autoscaler_deployment.is_due(live, subject.run.settings),
    )


def _notices(subject: _Subject, observed: Observed) -> Iterator[str]:
    """What the tenant should know of a cluster, whatever its health is."""
    read, values, settings = subject.read, subject.values, subject.run.settings
    record, state = read.record, subject.state
    sentences = (
        *notices.notices(subject.cluster, settings, values, subject.rows),
        upgrade_nodegroups.version_skew(record, values, subject.own_images),
        upgrade_nodegroups.missing_template_changes(record, values),
        orphans.notice(observed, state.health_reason.get("notice", "")),
        status_nodegroups.replica_drift(observed, state),
        autoscaler_deployment.notice(read.live, settings),
        adoption.notice(record, observed) if read.is_lost else revisions.notice(read.outdated),
    )
    yield from (sentence for sentence in sentences if sentence)


def _log_complete_messages(cluster: Any, observed: Observed, new_messages: set[str]) -> None:
    """Log in whole what the tenant is told a part of, when that is new."""
    for message in withheld.withheld_messages(observed, new_messages) if new_messages else ():
        LOG.info("Cluster %s: complete message: %s", cluster.uuid, message)


def _labels(live: LiveRelease | None, state: MagnumState) -> str:
    """The labels that the cluster was made with, site defaults included; as before if unknown."""
    if live is None:
        return state.health_reason.get("labels", "")
    annotations = live.values.get("clusterAnnotations") or {}
    prefix = f"{names.EFFECTIVE_LABEL}/"
    effective_labels = {
        key.removeprefix(prefix): annotations[key] for key in annotations if key.startswith(prefix)
    }
    return "; ".join(f"{name}={effective_labels[name]}" for name in sorted(effective_labels))


def _with(verdict: Verdict, key: str, text: str) -> Verdict:
    """What the tenant should know stays visible while it is true, whatever the health is."""
    if not text:
        return verdict
    return dataclasses.replace(verdict, health_reason={**verdict.health_reason, key: text})
