# SPDX-License-Identifier: Apache-2.0
"""Nodegroups that the autoscaler sizes: their bounds, their number, and who may set it."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from magnum.conductor.handlers import nodegroup_conductor
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

LABELS = {"auto_scaling_enabled": "true", "min_node_count": "1", "max_node_count": "5"}


class ScaledCase(DriverCase):
    LABELS: ClassVar = LABELS

    def setUp(self) -> None:
        super().setUp()
        self.made(labels=self.LABELS)

    def entry(self, name: str = "default-worker") -> dict[str, Any]:
        """A nodegroup's entry in the live values."""
        groups = self.helm.live(NAMESPACE, RELEASE).values["nodeGroups"]
        return next(one for one in groups if one["name"] == name)

    def update(self, name: str = "default-worker", **fields: Any) -> None:
        """An update of a nodegroup as Magnum's API casts it: the fields are set and not saved."""
        group = self.group(name)
        for field, value in fields.items():
            setattr(group, field, value)
        handler = nodegroup_conductor.Handler()
        self.quietly(handler.nodegroup_update, self.context, self.cluster(), group)

    def settle(self) -> None:
        self.capi_converges()
        self.status_task(2)

    def bounds(self, name: str = "default-worker") -> tuple[Any, Any, Any]:
        entry = self.entry(name)
        found = (entry.get("machineCountMin"), entry.get("machineCountMax"))
        return entry.get("autoscale", False), *found

    def state(self) -> tuple[str, str, int]:
        group = self.group()
        return self.cluster().status, group.status, group.node_count


class TestNumber(ScaledCase):
    def test_the_row_follows_the_autoscaler(self) -> None:
        self.scale("default-worker", 4)
        self.settle()
        self.health_task()
        self.assertEqual(("CREATE_COMPLETE", "CREATE_COMPLETE", 4), self.state())
        self.assertEqual(4, len(self.group().node_addresses))

    def test_a_resize_between_the_bounds(self) -> None:
        runs = len(self.helm.runs)
        self.resize(3)
        self.assertEqual((3, runs), (self.replicas("default-worker"), len(self.helm.runs)))
        self.status_task(3)
        self.assertEqual(("UPDATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", 3), self.state())
        self.settle()
        self.assertEqual(("UPDATE_COMPLETE", "UPDATE_COMPLETE", 3), self.state())

    def test_a_resize_is_asked_for_once(self) -> None:
        self.resize(3)
        self.scale("default-worker", 2)
        self.settle()
        self.assertEqual(2, self.replicas("default-worker"))
        self.assertEqual(("UPDATE_COMPLETE", "UPDATE_COMPLETE", 2), self.state())

    def test_outside_of_the_bounds(self) -> None:
        for count in (0, 6):
            self.resize(count)
            self.assertEqual("UPDATE_FAILED", self.cluster().status)
            self.assertIn("between 1 and 5", self.cluster().status_reason)
            self.assertEqual((1, 1), (self.group().node_count, self.replicas("default-worker")))

    def test_the_row_moves_while_a_resize_comes_in(self) -> None:
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            self.resize(4)
            # Somebody holds the lock: nothing is handed over, and the row keeps the wish.
            self.status_task()
            self.assertEqual((4, 1), (self.group().node_count, self.replicas("default-worker")))
            self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
            # A pass of another conductor that had looked before writes the older number.
            group = self.group()
            group.node_count = 1
            group.save()
        self.status_task()
        self.assertEqual(4, self.replicas("default-worker"))
        self.settle()
        self.assertEqual(("UPDATE_COMPLETE", "UPDATE_COMPLETE", 4), self.state())

    def test_two_resizes_before_a_pass(self) -> None:
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            self.resize(2)
            self.resize(3)
        self.status_task()
        self.assertEqual(3, self.replicas("default-worker"))

    def test_an_outage_refuses_what_could_not_be_kept(self) -> None:
        self.kube.unreachable = True
        self.resize(3)
        self.kube.unreachable = False
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.assertIn("management cluster", self.cluster().status_reason)
        self.assertEqual(1, self.group().node_count)

    def test_named_nodes_go(self) -> None:
        self.resize(4)
        self.settle()
        listed = [
            one["metadata"]["name"]
            for one in self.kube.list(names.MACHINE, NAMESPACE)
            if names.LABEL_CONTROL_PLANE not in one["metadata"]["labels"]
        ]
        self.resize(3, remove=[listed[1]])
        marked = [
            one["metadata"]["name"]
            for one in self.kube.list(names.MACHINE, NAMESPACE)
            if "cluster.x-k8s.io/delete-machine" in (one["metadata"].get("annotations") or {})
        ]
        self.assertEqual(([listed[1]], 3), (marked, self.replicas("default-worker")))
        self.resize(2, remove=listed[:2])
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.assertIn("the new node count removes 1", self.cluster().status_reason)

    def test_another_drivers_spelling_of_true(self) -> None:
        live = self.helm.releases[NAMESPACE, RELEASE]
        live.values["nodeGroups"][0]["autoscale"] = "true"
        self.resize(3)
        self.assertEqual(3, self.replicas("default-worker"))


class TestFirstNumber(ScaledCase):
    """What a group of the autoscaler's begins with; from then on the number is the autoscaler's."""

    def setUp(self) -> None:
        DriverCase.setUp(self)

    def test_a_cluster_begins_with_its_node_count(self) -> None:
        self.create(workers=3, labels=LABELS)
        self.assertEqual(
            ("CREATE_IN_PROGRESS", 3), (self.cluster().status, self.group().node_count)
        )
        self.capi_converges()
        self.status_task()
        self.assertEqual(3, self.replicas("default-worker"))
        self.settle()
        self.assertEqual(("CREATE_COMPLETE", "CREATE_COMPLETE", 3), self.state())
        self.assertEqual((True, 1, 5), self.bounds())

    def test_it_is_handed_over_once(self) -> None:
        self.create(workers=3, labels=LABELS)
        self.capi_converges()
        self.status_task()
        self.scale("default-worker", 2)
        self.settle()
        self.assertEqual(("CREATE_COMPLETE", "CREATE_COMPLETE", 2), self.state())

    def test_it_is_handed_over_before_the_request_returns(self) -> None:
        self.helm.on_apply = lambda live: self.capi_converges()
        self.create(workers=3, labels=LABELS)
        self.assertEqual(3, self.replicas("default-worker"))

    def test_more_than_the_labels_allow_are_refused(self) -> None:
        self.create(workers=6, labels=LABELS)
        cluster = self.cluster()
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn("node_count is 6", cluster.status_reason)
        self.assertIn("limits the autoscaler to 5 nodes", cluster.status_reason)
        self.assertEqual([], self.left())

    def test_fewer_than_the_minimum_are_magnums_own_one(self) -> None:
        self.made(workers=1, labels={**LABELS, "min_node_count": "2"})
        self.assertEqual(("CREATE_COMPLETE", "CREATE_COMPLETE", 2), self.state())

    def test_a_nodegroup_begins_with_its_node_count(self) -> None:
        self.made(labels=LABELS)
        self.add_group("more", 3, max_node_count=6)
        self.assertEqual(3, self.group("more").node_count)
        self.capi_converges()
        self.status_task()
        self.assertEqual(3, self.replicas("more"))
        self.settle()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual(3, self.group("more").node_count)
        self.assertEqual((True, 0, 6), self.bounds("more"))

    def test_one_that_is_not_there_yet_keeps_no_other_from_its_number(self) -> None:
        self.made(labels=LABELS)
        for name, count in (("first", 2), ("second", 3)):
            self.add_group(name, count, max_node_count=6)
        self.capi_converges()
        selector = {names.LABEL_NODE_GROUP: "first"}
        [missing] = self.kube.list(names.MACHINE_DEPLOYMENT, NAMESPACE, selector)
        self.kube.remove(names.MACHINE_DEPLOYMENT, NAMESPACE, missing["metadata"]["name"])
        self.status_task()
        self.assertEqual((None, 3), (self.replicas("first"), self.replicas("second")))
        self.kube.put(names.MACHINE_DEPLOYMENT, missing)
        self.scale("second", 1)
        self.status_task()
        self.assertEqual((2, 1), (self.replicas("first"), self.replicas("second")))

    def test_a_number_that_could_not_be_kept_refuses_the_nodegroup_alone(self) -> None:
        self.made(labels=LABELS)
        self.kube.before = self.no_operation
        self.add_group("more", 3, max_node_count=6)
        self.kube.before = None
        group = self.group("more")
        self.assertEqual("CREATE_FAILED", group.status)
        self.assertIn("does not answer", group.status_reason)
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual({"default-worker"}, self.names())

    @staticmethod
    def no_operation(verb: str, kind: Any, name: str) -> None:
        if (verb, kind) == ("replace", names.LEASE):
            raise errors.ManagementUnreachable("The management cluster does not answer.")

    def names(self) -> set[str]:
        return {one["name"] for one in self.helm.live(NAMESPACE, RELEASE).values["nodeGroups"]}


class TestBounds(ScaledCase):
    def test_those_of_the_group_win_over_the_labels(self) -> None:
        self.assertEqual((True, 1, 5), self.bounds())
        self.update(min_node_count=0, max_node_count=9)
        self.assertEqual((True, 0, 9), self.bounds())
        self.settle()
        self.assertEqual(("UPDATE_COMPLETE", "UPDATE_COMPLETE", 1), self.state())

    def test_the_lower_one_alone(self) -> None:
        self.update(min_node_count=0)
        self.assertEqual((True, 0, 5), self.bounds())
        self.settle()
        self.resize(0)
        self.assertEqual(0, self.replicas("default-worker"))

    def test_a_lower_one_above_the_labels_upper_one(self) -> None:
        self.update(min_node_count=7)
        self.assertEqual("UPDATE_FAILED", self.group().status)
        self.assertIn("max_node_count", self.group().status_reason)
        self.assertEqual((1, (True, 1, 5)), (self.group().min_node_count, self.bounds()))

    def test_a_number_outside_of_new_bounds_is_moved_into_them(self) -> None:
        self.scale("default-worker", 4)
        self.update(max_node_count=3)
        self.assertEqual(3, self.replicas("default-worker"))
        self.settle()
        self.assertEqual(("UPDATE_COMPLETE", "UPDATE_COMPLETE", 3), self.state())

    def test_off_and_on_again(self) -> None:
        self.scale("default-worker", 2)
        self.settle()
        self.health_task()
        self.update(min_node_count=2, max_node_count=2)
        self.assertEqual((False, None, None), self.bounds())
        self.assertEqual(2, self.entry()["machineCount"])
        self.assertNotIn("capacity", self.entry())
        self.settle()
        self.resize(2)
        self.settle()
        self.update(max_node_count=6)
        self.assertEqual((True, 2, 6), self.bounds())
        self.assertNotIn("machineCount", self.entry())
        self.assertEqual({"cpu": 2, "memory": "4096Mi", "ephemeralDisk": "20Gi"}, self.capacity())
        self.settle()
        self.assertEqual(("UPDATE_COMPLETE", "UPDATE_COMPLETE", 2), self.state())

    def capacity(self, name: str = "default-worker") -> Any:
        return self.entry(name).get("capacity")

    def test_a_group_that_had_none_gets_the_autoscaler(self) -> None:
        self.add_group("more", 2)
        self.settle()
        self.assertEqual((False, None, None), self.bounds("more"))
        self.update("more", max_node_count=4)
        self.assertEqual((True, 0, 4), self.bounds("more"))
        self.settle()
        self.assertEqual((True, 0, 4), self.bounds("more"))
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.update("more", max_node_count=None)
        self.assertEqual(2, self.entry("more")["machineCount"])

    def test_what_the_autoscaler_made_of_it_stays_when_it_goes(self) -> None:
        self.add_group("more", 1, max_node_count=4)
        self.settle()
        self.settle()
        self.scale("more", 3)
        self.update("more", max_node_count=None)
        self.assertEqual(
            (3, 3), (self.entry("more")["machineCount"], self.group("more").node_count)
        )

    def test_an_outage_refuses_what_could_not_be_kept(self) -> None:
        self.kube.unreachable = True
        self.update(max_node_count=9)
        self.kube.unreachable = False
        self.assertEqual("UPDATE_FAILED", self.group().status)
        self.assertIsNone(self.group().max_node_count)
        self.health_task()
        self.status_task(2)
        self.assertEqual(("UPDATE_COMPLETE", (True, 1, 5)), (self.cluster().status, self.bounds()))


class TestMaximumAlone(ScaledCase):
    """Without the label min_node_count the last worker stays, also when the maximum is raised."""

    LABELS: ClassVar = {"auto_scaling_enabled": "true", "max_node_count": "5"}

    def test_the_minimum_stays(self) -> None:
        self.assertEqual(((True, 1, 5), 0), (self.bounds(), self.group().min_node_count))
        self.update(max_node_count=8)
        self.assertEqual(((True, 1, 8), 1), (self.bounds(), self.group().min_node_count))
        self.settle()
        self.resize(2)
        self.settle()
        self.assertEqual(("UPDATE_COMPLETE", (True, 1, 8)), (self.cluster().status, self.bounds()))

    def test_unless_it_was_spoken_of(self) -> None:
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            self.update(min_node_count=2)
            self.update(max_node_count=8)
        self.status_task()
        self.assertEqual((True, 2, 8), self.bounds())
        self.settle()
        self.update(min_node_count=0)
        self.assertEqual((True, 0, 8), self.bounds())

    def test_a_minimum_above_the_labels_maximum(self) -> None:
        self.update(min_node_count=6)
        self.assertEqual("UPDATE_FAILED", self.group().status)
        self.assertIn(
            "is greater than its maximum. min_node_count would be 6, and the label max_node_count "
            "sets the maximum to 5",
            self.group().status_reason,
        )

    def test_a_maximum_below_it(self) -> None:
        self.update(max_node_count=0)
        self.assertEqual("UPDATE_FAILED", self.group().status)
        self.assertIn("the minimum is 1", self.group().status_reason)
        self.assertEqual((True, 1, 5), self.bounds())


class TestUpgrade(DriverCase):
    """To a template without the labels."""

    def setUp(self) -> None:
        super().setUp()
        self.template.labels = LABELS
        self.template.save()
        self.made(labels=LABELS)
        uuid = "22222222-2222-4333-8444-555555555555"
        self.plain = self._template(uuid=uuid, name="plain")

    def test_the_autoscalers_last_number_stays(self) -> None:
        self.scale("default-worker", 4)  # and nobody has looked since
        self.assertEqual("", self.upgrade(self.plain))
        (entry,) = self.helm.live(NAMESPACE, RELEASE).values["nodeGroups"]
        self.assertEqual((None, 4), (entry.get("autoscale"), entry["machineCount"]))
        self.capi_converges()
        self.status_task(2)
        group = self.group()
        self.assertEqual((4, 4), (group.node_count, self.replicas("default-worker")))
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)


class TestCapacity(ScaledCase):
    def test_a_new_group_can_grow_from_nothing(self) -> None:
        self.add_group("more", 0, max_node_count=4)
        expected = {"cpu": 2, "memory": "4096Mi", "ephemeralDisk": "20Gi"}
        self.assertEqual(expected, self.entry("more")["capacity"])
        self.assertEqual(expected, self.entry()["capacity"])

    def test_it_stays_when_the_bounds_change(self) -> None:
        before = self.entry()["capacity"]
        self.update(max_node_count=9)
        self.assertEqual(before, self.entry()["capacity"])

    def test_charts_that_do_not_know_it_are_not_sent_it(self) -> None:
        for number, change in enumerate(({"chart_family": ""}, {"chart_version": "1.0.0"})):
            live = self.helm.releases[NAMESPACE, RELEASE]
            self.helm.releases[NAMESPACE, RELEASE] = dataclasses.replace(live, **change)
            self.ports.charts.of_release = lambda live, digest: self.ports.charts.for_new_cluster(
                None
            )
            self.add_group(f"more{number}", 0, max_node_count=4)
            self.assertNotIn("capacity", self.entry(f"more{number}"))

    def test_a_flavor_that_is_gone_takes_no_autoscaler_away(self) -> None:
        self.add_group("more", 2)
        self.settle()
        self.cloud.gone = ("small",)
        self.update("more", max_node_count=4)
        self.assertEqual((True, 0, 4), self.bounds("more"))
        self.assertNotIn("capacity", self.entry("more"))
        self.assertNotIn("FAILED", self.group("more").status)
