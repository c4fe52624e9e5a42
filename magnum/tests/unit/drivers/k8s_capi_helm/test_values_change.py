# SPDX-License-Identifier: Apache-2.0
"""Changes: no operation moves a value that it is not entitled to."""

from __future__ import annotations

import copy
import datetime
from typing import Any

import hypothesis
from hypothesis import strategies as st
import testtools

from magnum.drivers.k8s_capi_helm import labels
from magnum.drivers.k8s_capi_helm.model import (
    ClusterRequest,
    Json,
    NodeGroupRequest,
    Operation,
    Verb,
)
from magnum.drivers.k8s_capi_helm.values import change
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
NAMES = ("default-worker", "batch", "gpu", "edge")

counts = st.one_of(
    st.builds(lambda n: {"machineCount": n}, st.integers(0, 9)),
    st.builds(
        lambda low, more: {
            "autoscale": True,
            "machineCountMin": low,
            "machineCountMax": low + more,
        },
        st.integers(0, 3),
        st.integers(1, 5),
    ),
)
groups = st.builds(
    lambda count, flavor, zone: {"machineFlavor": flavor, **count, **zone},
    counts,
    st.sampled_from(("small", "large")),
    st.sampled_from(({}, {"failureDomain": "az-1"})),
)
values = st.builds(
    lambda image, masters, entries, extra: {
        "machineImageId": image,
        "controlPlane": {"machineCount": masters, "machineFlavor": image},
        "nodeGroups": [{"name": name, **entry} for name, entry in entries.items()],
        **extra,
    },
    st.sampled_from(("old", "new")),
    st.sampled_from((1, 3, 5)),
    st.dictionaries(st.sampled_from(NAMES), groups),
    st.sampled_from(({}, {"osDistro": "ubuntu"}, {"registryMirrors": {"docker.io": []}})),
)
operations = st.builds(
    lambda verb, names: operation(verb, *names),
    st.sampled_from([verb for verb in Verb if verb is not Verb.CREATE]),
    st.sets(st.sampled_from((*NAMES, values_live.CONTROL_PLANE)), max_size=3),
)


def operation(verb: Verb, *names: str) -> Operation:
    return Operation(id=f"{verb}-{'-'.join(names)}", verb=verb, started_at=START, groups=names)


def entries(of: Json) -> dict[str, Json]:
    return {entry["name"]: entry for entry in of["nodeGroups"]}


def without_counts(entry: Json) -> Json:
    return {key: value for key, value in entry.items() if key not in values_live.COUNT_KEYS}


class TestNextValues(testtools.TestCase):
    LIVE: Json = {
        "machineImageId": "old",
        "controlPlane": {"machineCount": 3, "machineFlavor": "m"},
        "nodeGroups": [
            {"name": "default-worker", "machineFlavor": "small", "machineCount": 1},
            {
                "name": "batch",
                "machineFlavor": "small",
                "machineCount": 2,
                "nodeLabels": {"a": "b"},
            },
        ],
    }
    WANTED: Json = {
        "machineImageId": "new",
        "controlPlane": {"machineCount": 5, "machineFlavor": "x"},
        "nodeGroups": [
            {"name": "gpu", "machineFlavor": "large", "machineCount": 7},
            {"name": "default-worker", "machineFlavor": "large", "machineCount": 4},
        ],
    }

    def next(self, *pending: Operation) -> Json:
        return change.next_values(self.LIVE, self.WANTED, pending)

    def test_without_a_release_everything_is_new(self) -> None:
        for pending in ((), (operation(Verb.RESIZE, "batch"),)):
            found = change.next_values(None, self.WANTED, pending)
            self.assertEqual(self.WANTED, found)
            self.assertIsNot(self.WANTED["nodeGroups"], found["nodeGroups"])

    def test_create_may_change_everything(self) -> None:
        self.assertEqual(self.WANTED, self.next(operation(Verb.CREATE)))

    def test_nothing_pending_changes_nothing(self) -> None:
        self.assertEqual(self.LIVE, self.next())
        self.assertEqual(self.LIVE, self.next(operation(Verb.DELETE)))

    def test_resize_of_one_group(self) -> None:
        expected = copy.deepcopy(self.LIVE)
        expected["nodeGroups"][0]["machineCount"] = 4
        self.assertEqual(expected, self.next(operation(Verb.RESIZE, "default-worker")))

    def test_resize_of_the_control_plane(self) -> None:
        expected = copy.deepcopy(self.LIVE)
        expected["controlPlane"]["machineCount"] = 5
        self.assertEqual(expected, self.next(operation(Verb.RESIZE, values_live.CONTROL_PLANE)))

    def test_resize_of_the_cluster(self) -> None:
        expected = copy.deepcopy(self.LIVE)
        expected["controlPlane"]["machineCount"] = 5
        expected["nodeGroups"][0]["machineCount"] = 4
        self.assertEqual(expected, self.next(operation(Verb.RESIZE)))

    def test_from_a_count_to_bounds_and_back(self) -> None:
        fixed = {"nodeGroups": [{"name": "a", "machineCount": 2, "machineFlavor": "f"}]}
        scaled = {
            "nodeGroups": [
                {"name": "a", "autoscale": True, "machineCountMin": 0, "machineCountMax": 3}
            ]
        }
        there = change.next_values(fixed, scaled, [operation(Verb.RESIZE, "a")])
        self.assertEqual({**scaled["nodeGroups"][0], "machineFlavor": "f"}, there["nodeGroups"][0])
        back = change.next_values(there, fixed, [operation(Verb.RESIZE, "a")])
        self.assertEqual(fixed, back)

    def test_a_new_group_comes_last(self) -> None:
        found = self.next(operation(Verb.NODEGROUP_CREATE, "gpu"))
        self.assertEqual(
            [*self.LIVE["nodeGroups"], self.WANTED["nodeGroups"][0]], found["nodeGroups"]
        )

    def test_only_a_delete_takes_a_group_out(self) -> None:
        found = self.next(operation(Verb.NODEGROUP_DELETE, "batch"))
        self.assertEqual(self.LIVE["nodeGroups"][:1], found["nodeGroups"])

    def test_a_group_that_is_wanted_again_stays(self) -> None:
        found = self.next(operation(Verb.NODEGROUP_DELETE, "default-worker"))
        self.assertEqual(self.LIVE, found)


class TestEntitlement(testtools.TestCase):
    """An operation never moves a value outside of its entitlement."""

    @hypothesis.given(values, values, st.lists(operations, max_size=4))
    def test_only_what_is_entitled_moves(
        self, live: Json, wanted: Json, pending: list[Operation]
    ) -> None:
        found = change.next_values(live, wanted, pending)
        entitled = change.AllowedChanges.of(pending)
        rest = {"controlPlane", "nodeGroups"}
        self.assertEqual(
            {key: value for key, value in live.items() if key not in rest},
            {key: value for key, value in found.items() if key not in rest},
        )
        expected = wanted if entitled.control_plane else live
        self.assertEqual(
            expected["controlPlane"]["machineCount"], found["controlPlane"]["machineCount"]
        )
        self.assertEqual(
            live["controlPlane"]["machineFlavor"], found["controlPlane"]["machineFlavor"]
        )
        before, after, ahead = entries(live), entries(found), entries(wanted)
        for name in NAMES:
            self.assertEntry(name, before.get(name), after.get(name), ahead.get(name), entitled)

    def assertEntry(
        self,
        name: str,
        live: Json | None,
        found: Json | None,
        wanted: Json | None,
        entitled: change.AllowedChanges,
    ) -> None:
        if live is None:
            self.assertEqual(wanted if name in entitled.entries else None, found)
        elif wanted is None:
            self.assertEqual(None if name in entitled.deletions else live, found)
        elif name in entitled.entries:
            self.assertEqual(wanted, found)
        elif entitled.may_count(name):
            assert found is not None
            self.assertEqual(without_counts(live), without_counts(found))
            for key in values_live.COUNT_KEYS:
                self.assertEqual(wanted.get(key), found.get(key))
        else:
            self.assertEqual(live, found)

    @hypothesis.given(values, values, st.lists(operations, max_size=4))
    def test_a_second_time_changes_nothing(
        self, live: Json, wanted: Json, pending: list[Operation]
    ) -> None:
        once = change.next_values(live, wanted, pending)
        self.assertEqual(once, change.next_values(once, wanted, pending))

    @hypothesis.given(values, values, st.lists(operations, max_size=4))
    def test_arguments_are_left_alone(
        self, live: Json, wanted: Json, pending: list[Operation]
    ) -> None:
        kept = copy.deepcopy((live, wanted))
        found = change.next_values(live, wanted, pending)
        scribble(found)
        self.assertEqual(kept, (live, wanted))

    @hypothesis.given(values, values, operations, operations)
    def test_two_together_are_one_after_the_other(
        self, live: Json, wanted: Json, first: Operation, second: Operation
    ) -> None:
        together = change.next_values(live, wanted, [first, second])
        one = change.next_values(change.next_values(live, wanted, [first]), wanted, [second])
        self.assertEqual(entries(together), entries(one))
        self.assertEqual(together["controlPlane"], one["controlPlane"])

    @hypothesis.given(values, values, st.lists(operations, max_size=4))
    def test_the_order_of_live_is_kept(
        self, live: Json, wanted: Json, pending: list[Operation]
    ) -> None:
        found = [entry["name"] for entry in change.next_values(live, wanted, pending)["nodeGroups"]]
        old = [entry["name"] for entry in live["nodeGroups"] if entry["name"] in found]
        self.assertEqual(old, found[: len(old)])


def scribble(value: Any) -> None:
    """Change everything that can be changed."""
    if isinstance(value, dict):
        for inner in value.values():
            scribble(inner)
        value["scribbled"] = True
    elif isinstance(value, list):
        for inner in value:
            scribble(inner)
        value.append("scribbled")


def request(
    *workers: NodeGroupRequest, masters: int = 3, deleted: tuple[str, ...] = (), scale: bool = False
) -> ClusterRequest:
    return ClusterRequest(
        uuid="u",
        name="n",
        release="r",
        namespace="ns",
        project_id="p",
        user_id="u",
        labels=labels.Labels(auto_scaling_enabled=scale),
        control_plane=NodeGroupRequest("default-master", "m", masters),
        node_groups=workers,
        image="i",
        external_network="public",
        deleted_groups=deleted,
    )


class TestPending(testtools.TestCase):
    LIVE = TestNextValues.LIVE
    WORKERS = (NodeGroupRequest("default-worker", "s", 1), NodeGroupRequest("batch", "s", 2))

    def pending(self, wanted: ClusterRequest, live: Json | None = None) -> list[tuple[Verb, Any]]:
        return [(one.verb, one.groups) for one in change.pending_changes(live or self.LIVE, wanted)]

    def test_no_release(self) -> None:
        [found] = change.pending_changes(None, request())
        self.assertEqual((Verb.CREATE, ()), (found.verb, found.groups))

    def test_nothing(self) -> None:
        self.assertEqual([], self.pending(request(*self.WORKERS)))

    def test_all_at_once(self) -> None:
        wanted = request(
            NodeGroupRequest("default-worker", "s", 4),
            NodeGroupRequest("gpu", "l", 1),
            masters=5,
            deleted=("batch",),
        )
        self.assertEqual(
            [
                (Verb.NODEGROUP_DELETE, ("batch",)),
                (Verb.NODEGROUP_CREATE, ("gpu",)),
                (Verb.RESIZE, (values_live.CONTROL_PLANE, "default-worker")),
            ],
            self.pending(wanted),
        )

    def test_a_group_that_failed_stays(self) -> None:
        self.assertEqual([], self.pending(request(self.WORKERS[0])))

    def test_a_deleted_group_is_deleted_once(self) -> None:
        self.assertEqual([], self.pending(request(*self.WORKERS, deleted=("long-gone",))))

    def test_other_spellings_of_the_same(self) -> None:
        live = {
            "controlPlane": {"machineCount": 3},
            "nodeGroups": [
                {
                    "name": "a",
                    "autoscale": "true",
                    "machineCount": 9,
                    "machineCountMin": 1,
                    "machineCountMax": 4,
                }
            ],
        }
        wanted = request(NodeGroupRequest("a", "s", 2, 1, 4), scale=True)
        self.assertEqual([], self.pending(wanted, live))
        wanted = request(NodeGroupRequest("a", "s", 2, 1, 5), scale=True)
        self.assertEqual([], self.pending(wanted, live), "labels had won over the row")
        live["nodeGroups"][0]["autoscale"] = True
        self.assertEqual([(Verb.RESIZE, ("a",))], self.pending(wanted, live))

    @hypothesis.given(
        values,
        st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9)),
        st.sets(st.sampled_from(NAMES)),
    )
    def test_what_is_pending_brings_the_release_there(
        self, live: Json, workers: dict[str, int], deleted: set[str]
    ) -> None:
        wanted = request(
            *(NodeGroupRequest(name, "s", count) for name, count in workers.items()),
            deleted=tuple(deleted - set(workers)),
        )
        rendered = {
            "controlPlane": {"machineCount": 3},
            "nodeGroups": [{"name": name, "machineCount": n} for name, n in workers.items()],
        }
        found = change.next_values(live, rendered, change.pending_changes(live, wanted))
        self.assertEqual((), change.pending_changes(found, wanted))
