# SPDX-License-Identifier: Apache-2.0
"""The record of a release is bounded: by merging, by refusing, and never for a deletion."""

from __future__ import annotations

import dataclasses
import datetime
import json
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.lease import capacity, codec, pending_operations, resolved_names
from magnum.drivers.k8s_capi_helm.model import (
    DeferredChange,
    Flavor,
    Image,
    names,
    NOTHING,
    Operation,
    ResolvedNames,
    RetiredCredential,
    Revisions,
    Verb,
)
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites import release_lease
from magnum.tests.unit.drivers.k8s_capi_helm.suites.release_lease import RELEASE, START

HOUR = datetime.timedelta(hours=1)
MINUTE = datetime.timedelta(minutes=1)
DELETE = Operation("delete", Verb.DELETE, START, deadline=START + HOUR)
#: A Lease's notes as the first version wrote them, and what they say.
OLD = json.dumps(
    [
        {
            "id": f"{verb}-1",
            "verb": verb,
            "groups": ["a"],
            "started": "2026-11-21T12:00:00+00:00",
            "deadline": None,
            "row": "r",
        }
        for verb in ("nodegroup-create", "nodegroup-update", "nodegroup-delete", "resize")
    ]
)

_times = st.integers(0, 10**6).map(lambda number: START + datetime.timedelta(seconds=number))
#: When something began, and when it has to be through.
_periods = st.tuples(_times, st.none() | st.integers(0, 10**5))
_names = st.text("abc-", min_size=1, max_size=20)
_numbers = st.none() | st.integers(0, 9)
_bounds = st.tuples(_numbers, _numbers)
_resolved = st.builds(
    ResolvedNames,
    images=st.dictionaries(_names, st.builds(Image, _names, _names, _names), max_size=2),
    flavors=st.dictionaries(
        _names, st.builds(Flavor, _names, _names, *[st.integers(0, 9)] * 3), max_size=2
    ),
    external_network_id=st.just("") | _names,
    fixed_network_id=st.just("") | _names,
    fixed_subnet_id=st.just("") | _names,
)
_operations = st.builds(
    Operation,
    id=_names,
    verb=st.sampled_from([one for one in Verb if one is not Verb.UPGRADE]),
    started_at=_times,
    groups=st.lists(_names, max_size=3).map(tuple),
    deadline=st.none() | _times,
    target_node_count=_numbers,
    fields=st.lists(st.sampled_from(["node_labels", "min_node_count"]), unique=True).map(tuple),
    previous_bounds=st.none() | _bounds,
    nodegroup_uuid=_names | st.just(""),
    earlier=st.lists(_bounds, max_size=3).map(tuple),
    resolved_names=_resolved,
) | st.builds(
    Operation,
    id=_names,
    verb=st.just(Verb.UPGRADE),
    resolved_names=_resolved,
    started_at=_times,
    groups=st.lists(_names, max_size=3).map(tuple),
    deadline=st.none() | _times,
    template=_names,
    max_batch_size=st.integers(1, 9),
    is_accepted=st.booleans(),
)
_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
_objects = st.dictionaries(st.text(max_size=3), _trees, max_size=3)
_pairs = st.tuples(_objects, _objects)
_owed = st.builds(
    DeferredChange, _names, _pairs, st.dictionaries(_names, _pairs, max_size=3), _pairs
)
_retired = st.builds(RetiredCredential, _names, _names, _times, _names | st.just(""))
_revisions = st.builds(Revisions, st.integers(0, 99), st.integers(0, 99), st.integers(0, 1))


def resize(number: int, at: datetime.datetime, group: str = "g", **more: Any) -> Operation:
    """A request to resize a nodegroup, which has an hour."""
    more = {"deadline": at + HOUR, **more}
    return Operation(f"resize-{number}", Verb.RESIZE, at, groups=(group,), **more)


def lasting(one: Operation, start: datetime.datetime, seconds: int | None) -> Operation:
    """An operation that has so much time."""
    end = None if seconds is None else start + datetime.timedelta(seconds=seconds)
    return dataclasses.replace(one, started_at=start, deadline=end)


class RoomCase(release_lease.OperationsSuite, testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.kube = FakeKube()
        self.one, self.namespace = self.opened()

    def add(self, operation: Operation) -> Any:
        return self.one.add(self.namespace, RELEASE, operation)

    def read(self) -> Any:
        return self.one.read(self.namespace, RELEASE)

    def lease(self) -> Any:
        return self.kube.get(names.LEASE, self.namespace, names.lease(RELEASE))

    def write(self, **notes: str) -> None:
        """Write annotations as another version of the driver may have."""
        found = self.lease()
        keys = {key: getattr(codec, key.upper()) for key in notes}
        found["metadata"]["annotations"] = {keys[key]: notes[key] for key in notes}
        self.kube.put(names.LEASE, found)

    def old_entries(self, count: int) -> str:
        """So many requests for one nodegroup as they were written one by one."""
        listed = [codec.entry(resize(number, START)) for number in range(count)]
        return json.dumps(listed)


class TestSeries(RoomCase):
    def test_a_thousand_resizes_of_one_nodegroup_are_one_entry(self) -> None:
        for number in range(1000):
            self.add(resize(number, START + number * MINUTE / 60))
        [found] = self.read().operations
        self.assertEqual(("resize-999", START), (found.id, found.started_at))

    def test_a_series_moves_its_deadline_once(self) -> None:
        for number in range(115):
            record = self.add(resize(number, START + number * MINUTE))
        [found] = record.operations
        self.assertEqual((START, START + 2 * HOUR), (found.started_at, found.deadline))

    def test_each_request_of_it_has_its_own_time(self) -> None:
        self.add(resize(1, START))
        [found] = self.add(resize(2, START + 50 * MINUTE)).operations
        self.assertEqual(START + 50 * MINUTE + HOUR, found.deadline)

    def test_one_that_missed_its_deadline_is_over(self) -> None:
        self.add(resize(1, START))
        late = resize(2, START + 61 * MINUTE)
        self.assertEqual((late,), self.add(late).operations)

    def test_without_a_limit_there_is_none(self) -> None:
        self.add(resize(1, START, deadline=None))
        [found] = self.add(resize(2, START + HOUR, deadline=None)).operations
        self.assertEqual((START, None), (found.started_at, found.deadline))

    def test_the_newest_number_counts_and_comes_last(self) -> None:
        self.add(resize(1, START, target_node_count=1))
        self.add(resize(2, START, group="h", target_node_count=2))
        record = self.add(resize(3, START, target_node_count=3))
        counts = [(*one.groups, one.target_node_count) for one in record.operations]
        self.assertEqual([("h", 2), ("g", 3)], counts)

    def test_an_update_keeps_what_was_spoken_of(self) -> None:
        one = dataclasses.replace(resize(1, START), verb=Verb.NODEGROUP_UPDATE)
        first = dataclasses.replace(
            one, fields=("min_node_count",), previous_bounds=(1, 3), target_node_count=2
        )
        second = dataclasses.replace(one, id="b", fields=("node_labels",))
        third = dataclasses.replace(
            one, id="c", fields=("max_node_count",), previous_bounds=(2, None)
        )
        self.add(first)
        [found] = self.add(second).operations
        fields = ("min_node_count", "node_labels")
        self.assertEqual(
            (fields, (1, 3), 2), (found.fields, found.previous_bounds, found.target_node_count)
        )
        [found] = self.add(third).operations
        self.assertEqual(
            ((2, None), ((1, 3),), None),
            (found.previous_bounds, found.earlier, found.target_node_count),
        )

    def test_what_names_stood_for_stays(self) -> None:
        flavors = {"small": Flavor("f-1", "small", 2, 4096, 20)}
        first = dataclasses.replace(
            resize(0, START),
            verb=Verb.NODEGROUP_UPDATE,
            resolved_names=ResolvedNames(flavors=flavors),
        )
        second = dataclasses.replace(first, id="b", resolved_names=NOTHING)
        self.assertEqual(
            flavors, pending_operations.merge_operations(first, second).resolved_names.flavors
        )

    def test_what_a_nodegroup_of_another_row_was_asked_for_goes(self) -> None:
        for number in range(20):
            for verb in (Verb.NODEGROUP_CREATE, Verb.NODEGROUP_DELETE):
                one = Operation(
                    f"{verb}-{number}", verb, START, groups=("g",), nodegroup_uuid=f"r-{number}"
                )
                self.add(one)
        rows = {one.nodegroup_uuid for one in self.read().operations}
        self.assertEqual({"r-19"}, rows)

    def test_series_of_an_older_version_are_joined(self) -> None:
        self.write(operations=self.old_entries(500))
        [found] = self.add(resize(500, START)).operations
        self.assertEqual("resize-500", found.id)

    def test_an_old_lease_is_read(self) -> None:
        self.write(operations=OLD)
        found = self.read()
        self.assertEqual(["r"] * 4, [one.nodegroup_uuid for one in found.operations])
        self.assertEqual((Revisions(), ()), (found.revisions, found.operations[0].earlier))

    @given(_operations, _operations, _periods, _periods)
    def test_to_join_twice_is_to_join_once(
        self, first: Operation, new: Operation, one: Any, other: Any
    ) -> None:
        first, new = lasting(first, *one), lasting(new, *other)
        once = pending_operations.merge_operations(first, new)
        self.assertEqual(once, pending_operations.merge_operations(once, new))


class TestCodec(testtools.TestCase):
    def test_what_a_newer_version_adds_to_names_is_passed_over(self) -> None:
        entry = {
            "resolved": {
                "images": {"a": ["i1", "1.34.2", "ubuntu", "more"]},
                "flavors": {"small": ["f1", "small", 2, 4096, 20, "more"]},
                "networks": ["n1", "n2", "s1", "more"],
            }
        }
        found = resolved_names.lookup_of(entry)
        self.assertEqual(("i1", "ubuntu"), (found.images["a"].id, found.images["a"].os_distro))
        self.assertEqual(20, found.flavors["small"].disk)
        self.assertEqual(("n1", "s1"), (found.external_network_id, found.fixed_subnet_id))

    @given(_operations)
    def test_an_operation(self, one: Operation) -> None:
        self.assertEqual(one, codec.operation(json.loads(json.dumps(codec.entry(one)))))

    def test_revisions_that_are_no_numbers_are_refused_in_words(self) -> None:
        for text in ('{"newest": "5"}', '{"applied": null}', "[]", '{"begun": {}}'):
            found = codec.new("ns", "r", "uuid", "p1")
            codec.annotate(found, codec.REVISIONS, text)
            self.assertRaises(errors.ManagementRefused, codec.record, found)

    @given(st.lists(_retired, max_size=3), st.lists(_owed, max_size=2), _revisions)
    def test_the_rest(self, gone: Any, due: Any, known: Revisions) -> None:
        found = codec.new("n", RELEASE, "u", "p")
        codec.annotate(found, codec.RETIRED, codec.retired_credentials(gone))
        codec.annotate(found, codec.OWED, codec.deferred_changes(due))
        codec.annotate(found, codec.REVISIONS, codec.revisions(known))
        record = codec.record(found)
        self.assertEqual((tuple(gone), tuple(due), known), _of(record))


def _of(record: Any) -> Any:
    return record.retired_credentials, record.deferred, record.revisions


class TestBound(RoomCase):
    def fill(self) -> int:
        """Ask for changes of ever more nodegroups until that is refused."""
        for number in range(10_000):
            try:
                self.add(resize(number, START, group=f"group-{number}"))
            except errors.RecordFull as error:
                self.assertIn("Too many requests for this cluster are in progress", str(error))
                return number
        raise AssertionError("it is never refused")

    def test_too_many_requests_are_refused_and_nothing_else(self) -> None:
        number = self.fill()
        self.assertTrue(number > 200, number)
        # A request that replaces one is none more, and what has begun goes on.
        self.add(resize(0, START, group="group-1"))
        self.add(resize(1, START, group="group-1"))
        upgrade = Operation("u", Verb.UPGRADE, START, groups=("controlPlane",), template="t")
        self.assertRaises(errors.RecordFull, self.add, upgrade)
        self.one.finish(self.namespace, RELEASE, [f"resize-{one}" for one in range(2, 9)])
        self.add(upgrade)
        self.add(dataclasses.replace(upgrade, is_accepted=True))

    def test_the_deletion_fits_always(self) -> None:
        self.fill()
        self.assertIn(DELETE, self.add(DELETE).operations)

    def test_a_lease_that_an_older_version_has_filled(self) -> None:
        one = len(json.dumps(codec.entry(resize(1000, START, group="g1000")))) + 2
        numbers = range(1000, 1000 + (capacity.LIMIT - 200) // one)
        listed = [codec.entry(resize(n, START, group=f"g{n}")) for n in numbers]
        self.write(operations=json.dumps(listed))
        self.assertGreater(capacity.annotations_size(self.lease()), capacity.LIMIT - 500)
        new = resize(1, START, group="new")
        self.assertRaises(errors.RecordFull, self.add, new)
        self.assertEqual((DELETE,), self.add(DELETE).operations)
        self.one.retire(self.namespace, RELEASE, RetiredCredential("a", "u", START))

    def test_also_with_credentials(self) -> None:
        gone = [RetiredCredential(f"id-{n}", f"user-{n % 3}", START, "n" * 40) for n in range(1500)]
        self.write(retired=codec.retired_credentials(gone))
        record = self.add(DELETE)
        self.assertEqual((DELETE,), record.operations)
        self.assertEqual(
            {"user-0", "user-1", "user-2"}, {one.user for one in record.retired_credentials}
        )
        self.assertIn("id-0", [one.id for one in record.retired_credentials])

    def test_hints_give_way(self) -> None:
        due = [DeferredChange("u", ({}, {"a": "x" * 126_000}), {}, ({}, {}))]
        self.one.defer(self.namespace, RELEASE, due)
        looks = {f"group-{number}": "f" * 64 for number in range(2000)}
        record = self.one.remember(
            self.namespace,
            RELEASE,
            ready_fingerprint="look",
            nodegroup_ready_fingerprints=looks,
            chart_digest="d",
        )
        self.assertEqual(
            ({}, "look", "d"), (record.nodegroup_ready_fingerprints, record.ready_fingerprint, "d")
        )
        self.assertEqual(tuple(due), record.deferred)

    def test_credentials_that_were_exchanged_too_often(self) -> None:
        def exchange() -> None:
            for number in range(1000):
                one = RetiredCredential(f"ac-{number}", "u1", START, "magnum-demo-1")
                self.one.retire(self.namespace, RELEASE, one)

        error = self.assertRaises(errors.RecordFull, exchange)
        self.assertIn("rotated too often", str(error))
        self.assertGreater(len(self.read().retired_credentials), 50)

    def test_thousands_of_verbs_at_random(self) -> None:
        for seed, groups in enumerate((1, 20, 400)):
            lot = random.Random(seed)  # noqa: S311 - no secret
            self.kube = FakeKube()
            self.one, self.namespace = self.opened()
            for number in range(700):
                self.ask(lot, groups, number)
                size = capacity.annotations_size(self.lease())
                self.assertLessEqual(size, capacity.LIMIT - capacity.RESERVE)
            self.assertIn(DELETE, self.add(DELETE).operations)
            self.assertLessEqual(capacity.annotations_size(self.lease()), capacity.LIMIT)

    def ask(self, lot: Any, groups: int, number: int) -> None:
        """Something at random, that may be refused."""
        at, group = START + number * MINUTE, f"{lot.randrange(groups)}-" + "g" * 40
        place, verb = (self.namespace, RELEASE), lot.choice([*Verb, *Verb, "owe", "retire", "look"])
        try:
            if verb == "owe":
                pair = {}, {"a": "b" * lot.randrange(60_000)}
                self.one.defer(*place, [DeferredChange("u", ({}, {}), {group: pair}, ({}, {}))])
            elif verb == "retire":
                self.one.retire(*place, RetiredCredential(f"id-{number}", "u", at, "name"))
            elif verb == "look":
                looks = {f"{n}": "f" * 64 for n in range(lot.randrange(3000))}
                written = {f"{n}": n for n in range(lot.randrange(3000))}
                self.one.remember(
                    *place,
                    nodegroup_ready_fingerprints=looks,
                    applied_generations=written,
                    ready_fingerprint="f",
                )
            elif verb is not Verb.DELETE:
                row = lot.choice(["", f"row-{number}"])
                whole = verb is Verb.UPGRADE
                named = tuple(f"{n}" for n in range(groups)) if whole else (group,)
                self.add(
                    Operation(f"{verb}-{number}", verb, at, named, at + HOUR, nodegroup_uuid=row)
                )
            if lot.random() < 0.02:
                self.one.finish(*place, [one.id for one in self.read().operations])
        except errors.RecordFull as error:
            self.assertTrue(str(error))
