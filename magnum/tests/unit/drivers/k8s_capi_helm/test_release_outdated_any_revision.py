# SPDX-License-Identifier: Apache-2.0
"""Whatever older part of a release's history is shown, no verb and no pass moves anything by it.

One cluster gets a history; then every snapshot of its revisions that a loss or a restore can leave
is shown to every verb and to the periodic tasks alone. Snapshots with the newest revision in them
are carried out as ever. A run of the unit tests takes some of them, by lot but always the same;
``K8S_CAPI_HELM_SNAPSHOTS`` (a number, or ``all``) says how many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
import os
import random
import sys
import time
from typing import Any

from magnum import objects
from magnum.conductor.handlers import cluster_conductor
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import node_metadata
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.tests.unit.drivers.k8s_capi_helm import conductor_crash
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.test_conductor_crashes import Case
from magnum.tests.unit.drivers.k8s_capi_helm.test_release_outdated import WORDS

_RUNS = os.environ.get("K8S_CAPI_HELM_SNAPSHOTS", "")
_SOME = 8
_PASSES = 3
_STATUSES = ("deployed", "superseded", "failed", "pending-upgrade")

Snapshot = Mapping[int, str]


def outdated(newest: int) -> Iterator[Snapshot]:
    """What a loss or a restore may leave of a history, without its end."""
    for last in range(1, newest):
        for status in _STATUSES:
            yield _of(range(1, last + 1), status)
        yield _of([last], "deployed")
    for middle in range(1, newest - 1):
        yield _of([one for one in range(1, newest) if one != middle], "deployed")
    # The newest is there, and what was applied before it is not: it is a later one that failed.
    for status in ("superseded", "failed", "pending-upgrade"):
        yield _of(range(1, newest + 1), status)


def current(newest: int) -> Iterator[Snapshot]:
    """What may be left of a history with its end."""
    yield _of(range(1, newest + 1), "deployed")
    yield _of([newest], "deployed")
    for middle in range(1, newest):
        yield _of([one for one in range(1, newest + 1) if one != middle], "deployed")


def _of(numbers: Any, status: str) -> Snapshot:
    listed = list(numbers)
    return dict.fromkeys(listed, "superseded") | {listed[-1]: status}


class TestSnapshots(Case):
    def setUp(self) -> None:
        super().setUp()
        self.cloud.images["ubuntu-kube-1.36"] = ("image-3", "1.36.0")
        uuid = "31111111-2222-4333-8444-555555555555"
        self.last = self._template(uuid=uuid, name="last", image_id="ubuntu-kube-1.36")
        self.settled(groups=("gone", "extra"))
        for ask in (
            lambda: self.drop_group("gone"),
            lambda: self.upgrade(self.next),
            lambda: self.resize(3),
            lambda: self.change_group("extra", node_labels={"a": "b"}),
        ):
            ask()
            self.go_on()
        self.history = dict(self.helm.history[NAMESPACE, RELEASE])
        self.newest = max(self.history)

    def verbs(self) -> dict[str, Callable[[], Any]]:
        handler = cluster_conductor.Handler()
        return {
            "resize": lambda: self.resize(5),
            "resize-of-the-control-plane": lambda: self.resize(3, "default-master"),
            "update": lambda: self.quietly(
                handler.cluster_update, self.context, self.cluster(), 5, "HEALTHY", {}
            ),
            "nodegroup-create": lambda: self.add_group("more"),
            "nodegroup-update": lambda: self.change_group("extra", node_labels={"c": "d"}),
            "nodegroup-delete": lambda: self.drop_group("extra"),
            "upgrade": lambda: self.upgrade(self.last),
            "rests": lambda: None,
        }

    # The law --------------------------------------------------------------------------------------
    def test_nothing_moves_by_an_older_record(self) -> None:
        self.play(outdated(self.newest), self.verbs(), self.check_refused)

    def test_nor_what_is_in_progress(self) -> None:
        self.helm.refusal = errors.HelmInterrupted("It was killed.")
        self.resize(5)
        self.helm.refusal = None
        self.play(outdated(self.newest), {"resize": lambda: None}, self.check_waiting)

    def test_its_cluster_can_be_deleted(self) -> None:
        self.play(outdated(self.newest), {"delete": self.delete}, self.check_gone)

    def test_a_record_with_its_end_is_believed(self) -> None:
        self.play(current(self.newest), {"resize": lambda: self.resize(5)}, self.check_done)

    # How it is played -----------------------------------------------------------------------------
    def play(
        self,
        snapshots: Iterator[Snapshot],
        verbs: Mapping[str, Callable[[], Any]],
        check: Callable[[str, Callable[[], Any]], None],
    ) -> None:
        began, taken = (
            time.monotonic(),
            conductor_crash.Photograph("", self.minutes, self.develop()),
        )
        runs = [(name, shown) for shown in snapshots for name in verbs]
        if _RUNS != "all":
            lot = random.Random(self.id())  # noqa: S311 - no secret
            runs = lot.sample(runs, min(len(runs), int(_RUNS or _SOME)))
        wrong = []
        for name, shown in runs:
            self.restore(taken)
            self.helm.show(NAMESPACE, RELEASE, shown)
            self.helm.runs.clear()
            try:
                check(name, verbs[name])
            except Exception as error:
                wrong.append(f"{name} {dict(shown)}: {type(error).__name__} {error} {self.told()}")
        if _RUNS:
            seconds = time.monotonic() - began
            count = f"{len(runs)} runs, {len(wrong)} failed, {seconds:.0f} s"
            sys.stdout.write(f"{self._testMethodName}: {count}\n")
        self.assertEqual([], wrong)

    def check_refused(self, name: str, ask: Callable[[], Any]) -> None:
        things, rows = self.things(), self.wanted()
        answer = ask() or ""
        self.pass_by()
        assert not self.helm.runs, [verb for verb, _, _ in self.helm.runs]
        assert things == self.things(), "an object has changed"
        after = self.wanted()
        assert rows == {one: after[one] for one in rows}, "a row asks for something else"
        cluster = self.cluster()
        assert WORDS in cluster.health_status_reason["notice"], cluster.health_status_reason
        assert name == "rests" or WORDS in answer + self.words(), "nobody is told why"

    def check_waiting(self, name: str, ask: Callable[[], Any]) -> None:
        things = self.things()
        self.pass_by()
        assert not self.helm.runs, [verb for verb, _, _ in self.helm.runs]
        assert things == self.things(), "an object has changed"
        assert self.cluster().status == "UPDATE_IN_PROGRESS"
        assert WORDS in self.cluster().status_reason, "nobody is told why"
        self.put_back()
        self.go_on()
        self.is_as_the_database_says()
        assert self.entry()["machineCount"] == 5, "it is not carried on"

    def check_gone(self, name: str, ask: Callable[[], Any]) -> None:
        ask()
        self.go_on()
        assert self.is_gone(), "it is not gone"
        assert not self.left(), self.left()

    def check_done(self, name: str, ask: Callable[[], Any]) -> None:
        ask()
        self.go_on()
        self.is_as_the_database_says()
        assert self.entry()["machineCount"] == 5, "it is not done"

    def pass_by(self) -> None:
        """Magnum's tasks, while Cluster API has nothing to do."""
        for _ in range(_PASSES):
            self.status_task()
            self.health_task()

    def put_back(self) -> None:
        """The operator restores what was lost."""
        self.helm.history[NAMESPACE, RELEASE] = dict(self.history)
        self.helm.releases[NAMESPACE, RELEASE] = self.history[self.newest]

    # Looks ----------------------------------------------------------------------------------------
    def things(self) -> list[Json]:
        return [one for one in self.kube.everything() if one["kind"] != "Lease"]

    def wanted(self) -> dict[str, Any]:
        """What the rows of nodegroups ask for."""
        return {
            row.name: (
                row.node_count,
                node_metadata.node_labels(row),
                row.image_id,
                dict(row.labels or {}),
            )
            for row in self.cluster().nodegroups
        }

    def words(self) -> str:
        """What a tenant reads somewhere."""
        rows = [row for one in objects.Cluster.list(self.context) for row in (one, *one.nodegroups)]
        return " ".join(str(row.status_reason) for row in rows)
