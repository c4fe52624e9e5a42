# SPDX-License-Identifier: Apache-2.0
"""What conductors of two versions promise each other on one Lease.

The newer version is made of this one's source (``next_version``).
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import datetime
import json
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.lease import codec, record_format
from magnum.drivers.k8s_capi_helm.model import DeferredChange, names, RetiredCredential, Revisions
from magnum.tests.unit.drivers.k8s_capi_helm import next_version
from magnum.tests.unit.drivers.k8s_capi_helm.suites import release_lease
from magnum.tests.unit.drivers.k8s_capi_helm.suites.release_lease import DURATION, RELEASE, START

_LATER = START + datetime.timedelta(minutes=5)
_STAMPS = (record_format.FORMAT, record_format.WRITER)
REFUSAL = (
    f"The record of cluster operations, Lease '{RELEASE}-magnum', has a newer format, which this "
    "conductor cannot read. Version 2.0.0 of the driver wrote it in format 2; this is version "
    f"{record_format.VERSION}. Nothing was changed. Ask the operator to run version 2.0.0 or newer "
    "on all hosts of magnum-conductor."
)
_ACCIDENT = (
    f"The record of cluster operations, Lease '{RELEASE}-magnum', has the format 2, which no other "
    "version is recorded to have written. Nothing was changed. Ask the operator to correct its "
    f"annotation '{record_format.FORMAT}': version {record_format.VERSION} of the driver writes 1."
)


class RollingSuite(release_lease.OperationsSuite):
    """Two conductors, the older with this version, the newer with another one."""

    version = "more_keys"
    #: Makes a client that may do anything.
    management: Callable[[], Any]

    def setUp(self) -> None:
        super().setUp()
        self.kube = self.management()
        self.newer_package = next_version.load(self.version)
        self.clock = release_lease.Clock()
        self.older, self.namespace = self.opened("older", self.clock)
        self.newer = self.newer_package.lease.ReleaseLeases(
            self.kube,
            holder="newer",
            lease_duration=DURATION,
            clock=self.clock,
            pause=self.clock.pause,
        )
        self.place = (self.namespace, RELEASE)

    def asked(self, identity: str, **fields: Any) -> Any:
        """An operation as the newer version has it."""
        model = self.newer_package.model
        values = {"verb": model.Verb.RESIZE, "started_at": START, "note": "of 1.1", **fields}
        return model.Operation(id=identity, **values)

    def lease(self) -> Any:
        return self.kube.get(names.LEASE, self.namespace, names.lease(RELEASE))

    def notes(self) -> Any:
        return self.lease()["metadata"]["annotations"]

    def entries(self, key: str) -> Any:
        return json.loads(self.notes()[key])


class MoreKeysTests(RollingSuite):
    """A newer version with more keys, and this one, by turns."""

    def test_both_know_what_the_other_has_recorded(self) -> None:
        self.newer.add(*self.place, self.asked("a"))
        self.older.add(*self.place, release_lease.operation("b"))
        self.assertEqual(["a", "b"], [one.id for one in self.older.read(*self.place).operations])
        found = self.newer.read(*self.place).operations
        self.assertEqual([("a", "of 1.1"), ("b", "")], [(one.id, one.note) for one in found])

    def test_an_update_by_the_older_keeps_the_keys_of_the_newer(self) -> None:
        self.newer.add(*self.place, self.asked("a", target_node_count=3))
        [operation] = self.older.read(*self.place).operations
        self.older.update(*self.place, dataclasses.replace(operation, target_node_count=None))
        [found] = self.newer.read(*self.place).operations
        self.assertEqual((None, "of 1.1"), (found.target_node_count, found.note))

    def test_a_series_that_the_older_continues_keeps_them(self) -> None:
        self.newer.add(*self.place, self.asked("a", groups=("w",), deadline=_LATER))
        mine = release_lease.operation("b", groups=("w",), deadline=_LATER)
        self.older.add(*self.place, mine)
        [found] = self.newer.read(*self.place).operations
        self.assertEqual(("b", "of 1.1"), (found.id, found.note))

    def test_a_value_that_the_older_does_not_change_stays_as_it_was_written(self) -> None:
        self.newer.add(*self.place, self.asked("a"))
        lease = self.lease()
        entry = json.loads(lease["metadata"]["annotations"][codec.OPERATIONS])[0]
        entry["resolved"] = {"images": {"i": ["id", "1.35.0", "ubuntu", "more"]}, "more": 1}
        lease["metadata"]["annotations"][codec.OPERATIONS] = json.dumps([entry])
        self.kube.replace(names.LEASE, lease)
        [operation] = self.older.read(*self.place).operations
        self.older.update(*self.place, dataclasses.replace(operation, target_node_count=2))
        [found] = self.entries(codec.OPERATIONS)
        self.assertEqual((2, entry["resolved"]), (found["count"], found["resolved"]))

    def test_credentials_and_deferred_changes_and_revisions_keep_them(self) -> None:
        model = self.newer_package.model
        self.newer.retire(*self.place, model.RetiredCredential("c-1", "u1", START))
        self.older.retire(*self.place, RetiredCredential("c-2", "u1", START))
        change = DeferredChange("a", ({}, {}), {"w": ({}, {"x": 1})}, ({}, {}))
        newer_change = model.DeferredChange("b", ({}, {}), {"w": ({}, {})}, ({}, {}))
        self.newer.defer(*self.place, [newer_change])
        [known] = self.older.read(*self.place).deferred
        self.older.defer(*self.place, [known, change])
        self.newer.remember(*self.place, revisions=model.Revisions(newest=1, runs=7))
        self.older.record_revisions(*self.place, Revisions(newest=1), Revisions(2, 2))
        retired = {one["id"]: one.get("note") for one in self.entries(codec.RETIRED)}
        self.assertEqual({"c-1": "of 1.1", "c-2": None}, retired)
        deferred = {one["id"]: one.get("author") for one in self.entries(codec.OWED)}
        self.assertEqual({"b": "1.1", "a": None}, deferred)
        self.assertEqual({"newest": 2, "applied": 2, "runs": 7}, self.entries(codec.REVISIONS))

    def test_an_annotation_that_only_the_newer_knows_stays(self) -> None:
        lease = self.lease()
        lease["metadata"]["annotations"][f"{codec.PREFIX}/of-tomorrow"] = "x"
        self.kube.replace(names.LEASE, lease)
        self.older.add(*self.place, release_lease.operation("b"))
        self.older.set_tombstone(*self.place)
        self.assertEqual("x", self.notes()[f"{codec.PREFIX}/of-tomorrow"])

    def test_a_repeated_change_of_the_older_writes_nothing(self) -> None:
        self.newer.add(*self.place, self.asked("a", target_node_count=3))
        [operation] = self.older.read(*self.place).operations
        done = dataclasses.replace(operation, target_node_count=None)
        self.older.update(*self.place, done)
        before = self.lease()
        self.older.update(*self.place, done)
        self.assertEqual(before, self.lease())

    def test_a_verdict_whose_answer_was_lost_counts_beside_keys_of_the_newer(self) -> None:
        model = self.newer_package.model
        self.newer.remember(*self.place, revisions=model.Revisions(newest=1, runs=7))
        judged = self.older.add(*self.place, release_lease.operation("a"))
        given = {
            "ids": frozenset({"a"}),
            "same_version": True,
            "revisions": Revisions(1, 1),
        }
        self.older.record_verdict(*self.place, judged, **given)
        self.older.record_verdict(*self.place, judged, **given)
        self.assertEqual({"newest": 1, "applied": 1, "runs": 7}, self.entries(codec.REVISIONS))

    def test_the_last_writer_is_recorded(self) -> None:
        self.assertEqual(record_format.VERSION, self.notes()[record_format.WRITER])
        self.newer.add(*self.place, self.asked("a"))
        self.assertEqual(["1", "1.1.0"], [self.notes()[key] for key in _STAMPS])
        before = self.lease()
        self.older.finish(*self.place, ["never there"])
        self.assertEqual(before, self.lease())
        self.older.finish(*self.place, ["a"])
        self.assertEqual(["1", record_format.VERSION], [self.notes()[key] for key in _STAMPS])

    def test_the_lock_is_handed_over_in_both_directions(self) -> None:
        for first, second in ((self.older, self.newer), (self.newer, self.older)):
            with first.acquire(*self.place, wait=0):
                self.assertRaises(errors.LockHeld, _take, second, self.place)
                second.add(*self.place, self._operation_of(second))
            with second.acquire(*self.place, wait=0) as held:
                self.assertEqual(1, len(held.record.operations))
            second.finish(*self.place, ["x"])

    def test_the_lock_of_a_version_that_died_expires_for_the_other(self) -> None:
        for first, second in ((self.older, self.newer), (self.newer, self.older)):
            holder = first.acquire(*self.place, wait=0)
            held = holder.__enter__()
            self.clock.now += DURATION  # it does not renew
            self.assertTrue(held.is_lost())
            with second.acquire(*self.place, wait=3 * DURATION) as taken:
                self.assertFalse(taken.is_lost())
            holder.__exit__(None, None, None)

    def _operation_of(self, leases: Any) -> Any:
        return self.asked("x") if leases is self.newer else release_lease.operation("x")


class OtherFormatTests(RollingSuite):
    """A newer version whose format this one cannot read."""

    version = "other_format"

    def refusal(self, *call: Any, **given: Any) -> str:
        """What the older version says; nothing changes."""
        before = self.lease()
        error = self.assertRaises(errors.ManagementRefused, *call, **given)
        self.assertEqual(before, self.lease())
        return str(error)

    def test_every_change_by_the_older_is_refused(self) -> None:
        self.newer.add(*self.place, self.asked("a"))
        operation = release_lease.operation("b")
        old, place = self.older, self.place
        said = {
            self.refusal(old.read, *place),
            self.refusal(old.open, *place, cluster_uuid="uuid-1", project_id="project-1"),
            self.refusal(old.add, *place, operation),
            self.refusal(old.update, *place, operation),
            self.refusal(old.finish, *place, ["a"]),
            self.refusal(old.remember, *place, chart_source="x"),
            self.refusal(old.retire, *place, RetiredCredential("c", "u", START)),
            self.refusal(old.defer, *place, []),
            self.refusal(old.set_tombstone, *place),
            self.refusal(old.delete_finished, *place),
            self.refusal(old.delete, self.namespace, "uuid-1"),
            self.refusal(_take, old, place),
        }
        self.assertEqual({REFUSAL}, said)

    def test_the_newer_reads_what_the_older_has_written(self) -> None:
        self.older.add(*self.place, release_lease.operation("b"))
        self.newer.add(*self.place, self.asked("a"))
        self.assertEqual(["b", "a"], [one.id for one in self.newer.read(*self.place).operations])

    def test_an_older_holder_gives_the_lock_back_to_the_newer(self) -> None:
        with self.older.acquire(*self.place, wait=0) as held:
            self.newer.add(*self.place, self.asked("a"))
            noted = self.notes()
            held.renew()
            self.assertFalse(held.is_lost())
        self.assertEqual((noted, ()), (self.notes(), held.final_record.operations))
        with self.newer.acquire(*self.place, wait=0) as taken:
            self.assertEqual(["a"], [one.id for one in taken.record.operations])

    def test_a_newer_holder_keeps_the_lock(self) -> None:
        with self.newer.acquire(*self.place, wait=0):
            self.newer.add(*self.place, self.asked("a"))
            self.assertEqual(REFUSAL, self.refusal(_take, self.older, self.place))

    def stamp(self, written: str, writer: str) -> None:
        """Annotations as an accident may leave them."""
        lease = self.lease()
        stamps = {record_format.FORMAT: written, record_format.WRITER: writer}
        lease["metadata"]["annotations"].update(stamps)
        self.kube.replace(names.LEASE, lease)

    def test_nothing_but_a_version_is_repeated_of_the_annotations(self) -> None:
        self.stamp("91.5.0", "1.5.0")
        self.assertIn("run version 1.5.0 or newer", self.refusal(self.older.read, *self.place))
        self.stamp("<b>", "<b>" * 30)
        self.assertNotIn("<", self.refusal(self.older.read, *self.place))

    def test_a_format_by_accident_is_said_and_can_be_corrected(self) -> None:
        """No version can be run that would read it, so that none is named."""
        self.older.add(*self.place, release_lease.operation("b"))
        for writer in (record_format.VERSION, "<b>" * 30, ""):
            self.stamp("2", writer)
            self.assertEqual(_ACCIDENT, self.refusal(self.older.read, *self.place))
        lease = self.lease()
        del lease["metadata"]["annotations"][record_format.FORMAT]
        self.kube.replace(names.LEASE, lease)
        self.older.finish(*self.place, ["b"])
        self.assertEqual(record_format.WRITES, self.notes()[record_format.FORMAT])


def _take(leases: Any, place: tuple[str, str]) -> None:
    with leases.acquire(*place, wait=0):
        raise AssertionError("the lock was taken")
