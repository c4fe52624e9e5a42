# SPDX-License-Identifier: Apache-2.0
"""Evaluation: a verdict with what the passes have to know besides, and whether it is kept."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from magnum.drivers.k8s_capi_helm.model import ReleaseRecord, Revisions, Verdict
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.process.evaluation_cache import Inputs, Versions
from magnum.drivers.k8s_capi_helm.status.health import HEALTHY


@dataclasses.dataclass(frozen=True, slots=True)
class Evaluation:
    """A verdict and the record that it was judged by.

    :ivar is_cached: record and release were not read now, but a while ago.
    :ivar unfinished_operations: ids of operations that go on, whatever the verdict.
    :ivar is_release_incomplete: the rows ask for something that the release does not have, which is
        known to have had all of it once.
    :ivar is_release_newer: Magnum's rows are of a backup, from before the release was changed.
    :ivar rendered_nodegroups: nodegroups that the release has, by their names in the chart's
        values.
    :ivar unrecorded_revisions: revisions of the release that the record does not know of, None for
        none.
    :ivar autoscaler_is_due: its autoscaler is another one than the operator has set.
    :ivar inputs: what it was made of, if the same may give the same once more; None if not.
    :ivar duration: for how long the verdict is the same if nothing but the time changes, at most.
    """

    verdict: Verdict
    record: ReleaseRecord | None
    unreachable: bool
    is_cached: bool = False
    unfinished_operations: frozenset[str] = frozenset()
    is_release_incomplete: bool = False
    is_release_newer: bool = False
    rendered_nodegroups: frozenset[str] = frozenset()
    unrecorded_revisions: Revisions | None = None
    autoscaler_is_due: bool = False
    inputs: Inputs | None = None
    duration: datetime.timedelta = datetime.timedelta(0)

    def keep(self, run: Reconciliation, cluster: Any, versions: Versions | None) -> None:
        """Keep a verdict that changed nothing, if the same inputs may give it once more.

        :param versions: of the cluster, as read before anything was read for the evaluation.
        """
        if self.inputs is not None:
            run.clients.evaluations.keep_verdict(
                release_of(cluster.stack_id),
                self.inputs,
                self.verdict,
                run.now,
                self.duration,
                versions,
            )

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
        if self.is_release_incomplete or self.autoscaler_is_due or self.unrecorded_revisions:
            return False
        if verdict.status.endswith("_IN_PROGRESS"):
            return not verdict.fingerprint
        pending = (
            record.operations or record.retired_credentials or record.deferred or record.tombstone
        )
        return verdict.status.endswith("_COMPLETE") and verdict.health == HEALTHY and not pending
