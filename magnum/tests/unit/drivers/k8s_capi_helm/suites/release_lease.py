# SPDX-License-Identifier: Apache-2.0
"""What the Lease of a release promises: a record that loses nothing, a lock with one holder.

Time is a number that the tests set. Two ``ReleaseLeases`` with clocks of their own are two
conductors.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import threading
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.lease import codec, ReleaseLeases
from magnum.drivers.k8s_capi_helm.model import names, Operation, RetiredCredential, Verb
from magnum.tests.unit.drivers.k8s_capi_helm.suites.kube_client import KubeClientSuite

RELEASE = "demo-abcdefghijkl"
DURATION = 60
START = datetime.datetime(2026, 11, 21, 12, 0, tzinfo=datetime.timezone.utc)


class Clock:
    """Seconds that pass when somebody waits for them."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.on_pause: list[Any] = []

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        """Let the seconds pass, and whatever a test wants to happen meanwhile."""
        self.now += seconds
        for action in self.on_pause:
            action()


def operation(identity: str, **extra: Any) -> Operation:
    """A pending operation."""
    return Operation(id=identity, verb=Verb.RESIZE, started_at=START, **extra)


class OperationsSuite(KubeClientSuite):
    """Mixed into a TestCase whose ``setUp`` sets ``kube`` to a client that may do anything."""

    assertEqual: Any
    assertIn: Any
    assertIsNone: Any
    assertRaises: Any
    assertLess: Any
    assertTrue: Any
    assertFalse: Any
    assertNotEqual: Any

    def conductor(self, name: str = "one", clock: Clock | None = None) -> ReleaseLeases:
        """The Operations of a conductor."""
        clock = clock or Clock()
        return ReleaseLeases(
            self.kube, holder=name, lease_duration=DURATION, clock=clock, pause=clock.pause
        )

    def opened(self, name: str = "one", clock: Clock | None = None) -> tuple[ReleaseLeases, str]:
        """A conductor, and a namespace in which the release has its Lease."""
        namespace = self.make_namespace()
        operations = self.conductor(name, clock)
        operations.open(namespace, RELEASE, cluster_uuid="uuid-1", project_id="project-1")
        return operations, namespace

    def dead_holder(self) -> str:
        """A namespace where the release's lock is held by a conductor that is no more."""
        _, namespace = self.opened()
        lease = self.kube.get(names.LEASE, namespace, f"{RELEASE}-magnum")
        lease["spec"] = {
            "holderIdentity": "dead/1",
            "leaseDurationSeconds": DURATION,
            "renewTime": "2040-01-01T00:00:00.000000Z",
        }
        self.kube.replace(names.LEASE, lease)
        return namespace

    def assertBusy(self, operations: ReleaseLeases, namespace: str, *, wait: float) -> Any:
        """The lock is not to be had; returns the error."""

        def take() -> None:
            with operations.acquire(namespace, RELEASE, wait=wait):
                pass

        return self.assertRaises(errors.Busy, take)


class RecordTests(OperationsSuite):
    """The promises of the record."""

    def test_open_makes_the_lease_once(self) -> None:
        operations, namespace = self.opened()
        lease = self.kube.get(names.LEASE, namespace, f"{RELEASE}-magnum")
        self.assertEqual(
            {
                names.LABEL_UUID: "uuid-1",
                names.LABEL_PROJECT: "project-1",
                names.LABEL_CLUSTER_NAME: RELEASE,
            },
            lease["metadata"]["labels"],
        )
        operations.add(namespace, RELEASE, operation("a"))
        again = self.conductor("two").open(
            namespace, RELEASE, cluster_uuid="uuid-1", project_id="project-1"
        )
        self.assertEqual([operation("a")], list(again.operations))
        self.assertEqual(
            ("uuid-1", "project-1", ""), (again.cluster_uuid, again.project_id, again.holder)
        )

    def test_what_a_verdict_leaves(self) -> None:
        one, namespace = self.opened()
        one.add(namespace, RELEASE, operation("a"))
        judged = one.add(namespace, RELEASE, operation("b"))
        record = one.record_verdict(
            namespace,
            RELEASE,
            judged,
            ids=frozenset({"a"}),
            same_version=True,
            ready_fingerprint="f",
            nodegroup_ready_fingerprints={"g": "h"},
        )
        self.assertEqual((operation("b"),), record.operations)
        self.assertEqual("f", record.ready_fingerprint)
        self.assertEqual({"g": "h"}, record.nodegroup_ready_fingerprints)
        self.assertEqual(record, one.read(namespace, RELEASE))

    def test_a_verdict_about_other_operations_leaves_nothing(self) -> None:
        one, namespace = self.opened()
        judged = one.add(namespace, RELEASE, operation("a"))
        later = self.conductor("two").add(namespace, RELEASE, operation("b"))
        for same_version in (True, False):
            error = self.assertRaises(
                errors.Conflict,
                one.record_verdict,
                namespace,
                RELEASE,
                judged,
                ids=frozenset({"a"}),
                same_version=same_version,
                ready_fingerprint="f",
            )
            self.assertIn(f"Nothing of Lease '{names.lease(RELEASE)}' was overwritten", str(error))
        self.assertEqual(later, one.read(namespace, RELEASE))

    def test_operations_that_another_conductor_has_ended_are_not_ones_own(self) -> None:
        """It has completed what this one fails."""
        one, namespace = self.opened()
        judged = one.add(namespace, RELEASE, operation("a"))
        two = self.conductor("two")
        verdict = {"ids": frozenset({"a"}), "same_version": False}
        later = two.record_verdict(namespace, RELEASE, judged, ready_fingerprint="f", **verdict)
        failed = functools.partial(one.record_verdict, namespace, RELEASE, judged, **verdict)
        self.assertRaises(errors.Conflict, failed, ready_fingerprint="")
        self.assertEqual(later, one.read(namespace, RELEASE))

    def test_another_version_is_a_change_where_it_has_to_be_the_same(self) -> None:
        one, namespace = self.opened()
        judged = one.add(namespace, RELEASE, operation("a"))
        later = self.conductor("two").remember(namespace, RELEASE, chart_source="s")
        verdict = functools.partial(one.record_verdict, namespace, RELEASE, judged, ids=frozenset())
        self.assertRaises(errors.Conflict, verdict, same_version=True, ready_fingerprint="f")
        self.assertEqual(later, one.read(namespace, RELEASE))
        verdict(same_version=False, ready_fingerprint="f")
        record = one.read(namespace, RELEASE)
        self.assertEqual(("f", "s"), (record.ready_fingerprint, record.chart_source))

    def test_the_lease_of_another_cluster_is_refused(self) -> None:
        operations, namespace = self.opened()
        error = self.assertRaises(
            errors.NotOwned,
            operations.open,
            namespace,
            RELEASE,
            cluster_uuid="uuid-2",
            project_id="project-1",
        )
        self.assertIn("uuid-2", str(error))
        self.assertEqual("uuid-1", operations.read(namespace, RELEASE).cluster_uuid)

    def test_without_a_namespace_there_is_a_conflict_in_the_end(self) -> None:
        clock = Clock()
        self.assertRaises(
            errors.Conflict,
            self.conductor(clock=clock).open,
            "no-such-namespace",
            RELEASE,
            cluster_uuid="u",
            project_id="p",
        )
        self.assertLess(clock.now, 1000 + DURATION)

    def test_without_a_lease(self) -> None:
        operations, namespace = self.conductor(), self.make_namespace()
        self.assertIsNone(operations.read(namespace, RELEASE))
        self.assertRaises(errors.Conflict, operations.add, namespace, RELEASE, operation("a"))
        self.assertRaises(errors.Conflict, operations.finish, namespace, RELEASE, ["a"])
        self.assertRaises(
            errors.Conflict, operations.remember, namespace, RELEASE, ready_fingerprint="x"
        )
        self.assertRaises(errors.Conflict, operations.set_tombstone, namespace, RELEASE)
        hold = operations.acquire(namespace, RELEASE, wait=5)
        self.assertRaises(errors.Conflict, hold.__enter__)
        self.assertTrue(operations.delete_finished(namespace, RELEASE))

    def test_operations_come_and_go(self) -> None:
        operations, namespace = self.opened()
        until = START + datetime.timedelta(minutes=5)
        first = operation("a", groups=("x", "y"), deadline=until, nodegroup_uuid="r-1")
        operations.add(namespace, RELEASE, first)
        operations.add(namespace, RELEASE, operation("b"))
        operations.add(namespace, RELEASE, operation("c"))
        self.assertEqual(
            (first, operation("b"), operation("c")),
            operations.read(namespace, RELEASE).operations,
        )
        operations.add(namespace, RELEASE, operation("b"))
        self.assertEqual(3, len(operations.read(namespace, RELEASE).operations))
        operations.finish(namespace, RELEASE, ["a", "c", "never there"])
        self.assertEqual((operation("b"),), operations.read(namespace, RELEASE).operations)
        operations.finish(namespace, RELEASE, ["b"])
        self.assertEqual((), operations.read(namespace, RELEASE).operations)

    def test_an_update_brings_nothing_back_and_keeps_the_order(self) -> None:
        operations, namespace = self.opened()
        first, second = operation("a", target_node_count=3), operation("b")
        operations.add(namespace, RELEASE, first)
        operations.add(namespace, RELEASE, second)
        done = dataclasses.replace(first, target_node_count=None)
        operations.update(namespace, RELEASE, done)
        self.assertEqual((done, second), operations.read(namespace, RELEASE).operations)
        operations.finish(namespace, RELEASE, ["a"])
        operations.update(namespace, RELEASE, done)
        self.assertEqual((second,), operations.read(namespace, RELEASE).operations)

    def test_what_only_an_upgrade_has(self) -> None:
        operations, namespace = self.opened()
        asked = dataclasses.replace(
            operation("a"), verb=Verb.UPGRADE, template="t-2", max_batch_size=3
        )
        for one in (asked, dataclasses.replace(asked, is_accepted=True)):
            operations.add(namespace, RELEASE, one)
            self.assertEqual((one,), operations.read(namespace, RELEASE).operations)

    def test_an_operation_of_a_newer_version_is_kept_but_not_shown(self) -> None:
        operations, namespace = self.opened()
        operations.add(namespace, RELEASE, operation("a"))
        lease = self.kube.get(names.LEASE, namespace, f"{RELEASE}-magnum")
        key = codec.OPERATIONS
        text = lease["metadata"]["annotations"][key].replace('"resize"', '"levitate"')
        lease["metadata"]["annotations"][key] = text
        self.kube.replace(names.LEASE, lease)
        operations.add(namespace, RELEASE, operation("b"))
        self.assertEqual((operation("b"),), operations.read(namespace, RELEASE).operations)
        lease = self.kube.get(names.LEASE, namespace, f"{RELEASE}-magnum")
        self.assertIn("levitate", lease["metadata"]["annotations"][key])

    def test_one_that_is_to_be_alone(self) -> None:
        operations, namespace = self.opened()
        operations.add(namespace, RELEASE, operation("a"), alone=True)
        other = (namespace, RELEASE, operation("b"))
        error = self.assertRaises(errors.InvalidRequest, operations.add, *other, alone=True)
        self.assertIn("Another resize of this cluster is in progress", str(error))
        operations.add(namespace, RELEASE, operation("a"), alone=True)
        self.assertEqual((operation("a"),), operations.read(namespace, RELEASE).operations)

    def test_who_waits_for_the_lock_is_told_of_another_change_only_if_there_is_one(self) -> None:
        operations, namespace = self.opened()
        operations.add(namespace, RELEASE, operation("a"))
        with operations.acquire(namespace, RELEASE, wait=5):
            alone = self.assertBusy(operations, namespace, wait=0)
            operations.add(namespace, RELEASE, operation("b"))
            second = self.assertBusy(operations, namespace, wait=0)
        self.assertEqual("The change is being applied to the management cluster.", str(alone))
        self.assertTrue(str(second).startswith("Another change of this cluster is being applied."))

    def test_twenty_at_once_lose_nothing(self) -> None:
        operations, namespace = self.opened()
        failures: list[Exception] = []

        def add(number: int) -> None:
            # Conductors of their own, with real pauses: this is about real races.
            mine = ReleaseLeases(self.kube, holder=f"c{number}", lease_duration=DURATION)
            try:
                mine.add(namespace, RELEASE, operation(f"{number:02}"))
            except errors.DriverError as error:
                failures.append(error)

        threads = [threading.Thread(target=add, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual([], failures)
        found = sorted(entry.id for entry in operations.read(namespace, RELEASE).operations)
        self.assertEqual([f"{number:02}" for number in range(20)], found)

    def test_what_is_remembered(self) -> None:
        operations, namespace = self.opened()
        operations.remember(
            namespace, RELEASE, ready_fingerprint="look", chart_source="bundled", chart_digest="d1"
        )
        operations.remember(namespace, RELEASE, chart_digest="d2")
        record = operations.read(namespace, RELEASE)
        self.assertEqual(
            ("look", "bundled", "d2"),
            (record.ready_fingerprint, record.chart_source, record.chart_digest),
        )
        operations.remember(namespace, RELEASE, ready_fingerprint="")
        self.assertEqual("", operations.read(namespace, RELEASE).ready_fingerprint)

    def test_a_lease_is_discarded_by_its_cluster(self) -> None:
        operations, namespace = self.opened()
        operations.delete(namespace, "uuid-2")
        self.assertIsNotNone(operations.read(namespace, RELEASE))
        operations.delete(namespace, "uuid-1")
        self.assertIsNone(operations.read(namespace, RELEASE))
        operations.delete(namespace, "uuid-1")

    def test_credentials_that_are_to_go(self) -> None:
        operations, namespace = self.opened()
        old, begun = (
            RetiredCredential("ac-1", "u1", START),
            RetiredCredential("", "u2", START, "magnum-x-1"),
        )
        again = dataclasses.replace(begun, name="magnum-x-2")
        for one in (old, begun, again, begun):
            operations.retire(namespace, RELEASE, one)
        self.assertEqual(
            {old, begun, again}, set(operations.read(namespace, RELEASE).retired_credentials)
        )
        operations.forget(namespace, RELEASE, ["ac-1", "magnum-x-1", ""])
        self.assertEqual((again,), operations.read(namespace, RELEASE).retired_credentials)

    def test_a_tombstone_is_swept_and_nothing_else(self) -> None:
        operations, namespace = self.opened()
        operations.add(namespace, RELEASE, operation("a"))
        self.assertFalse(operations.delete_finished(namespace, RELEASE))
        self.assertEqual({}, operations.tombstones(namespace))
        operations.set_tombstone(namespace, RELEASE)
        self.assertEqual({RELEASE: "uuid-1"}, operations.tombstones(namespace))
        record = operations.read(namespace, RELEASE)
        self.assertTrue(record.tombstone)
        self.assertEqual(("uuid-1", ()), (record.cluster_uuid, record.operations))
        self.assertTrue(operations.delete_finished(namespace, RELEASE))
        self.assertIsNone(operations.read(namespace, RELEASE))
