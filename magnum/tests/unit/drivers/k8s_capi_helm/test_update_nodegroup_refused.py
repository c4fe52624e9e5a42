# SPDX-License-Identifier: Apache-2.0
"""A change of one nodegroup that Helm refuses: it alone fails, and goes back to what runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

WORDS = "MachineDeployment 'demo-more' is invalid: it is bad"
BAD = {"team": "bad"}


def bad(entry: Json) -> bool:
    """What this management cluster does not take of a nodegroup."""
    return "bad" in (entry.get("nodeLabels") or {}).values()


class RefusalCase(DriverCase):
    """A cluster with two nodegroups besides the default one."""

    LABELS: dict[str, str] = {}

    def setUp(self) -> None:
        super().setUp()
        self.made(labels=self.LABELS)
        for name in ("more", "other"):
            self.add_group(name)
        self.settle()

    def settle(self) -> None:
        self.capi_converges()
        self.status_task(2)

    def refuse(self, is_bad: Callable[[Json], bool] = bad) -> None:
        """From now on, entries that are bad are refused."""

        def refuses(values: Json) -> errors.DriverError | None:
            return errors.HelmRefused(WORDS) if any(map(is_bad, values["nodeGroups"])) else None

        self.helm.refuses = refuses

    def values(self) -> Json:
        live = self.helm.live(NAMESPACE, RELEASE)
        assert live is not None and live.status == "deployed"
        return live.values

    def entry(self, name: str = "more") -> Json:
        """A nodegroup's entry in the live values."""
        return next(one for one in self.values()["nodeGroups"] if one["name"] == name)

    def blamed(self, name: str) -> None:
        """This group says that its change was refused, and the cluster is fine."""
        group = self.group(name)
        self.assertEqual("UPDATE_FAILED", group.status)
        self.assertIn(WORDS, group.status_reason)
        self.settle()
        self.assertEqual(("UPDATE_COMPLETE", None), self.state())
        self.assertEqual("UPDATE_FAILED", self.group(name).status)
        self.assertIn(WORDS, self.group(name).status_reason)

    def state(self) -> tuple[str, str | None]:
        return self.cluster().status, self.cluster().status_reason

    def in_one_pass(self, *requests: Callable[[], Any]) -> None:
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            for request in requests:
                request()
        self.status_task()


class TestUpdate(RefusalCase):
    def test_a_group_alone(self) -> None:
        self.change_group("more", node_labels={"team": "good"})
        self.settle()
        before = self.values()
        self.refuse()
        self.change_group(
            "more", node_labels=BAD, node_taints=[{"key": "x", "effect": "NoExecute"}]
        )
        self.assertEqual(before, self.values())
        self.assertEqual(({"team": "good"}, []), self.marks("more"))
        self.blamed("more")

    def marks(self, name: str) -> tuple[dict[str, str], list[Any]]:
        row = self.group(name)
        return dict(row.node_labels or {}), list(row.node_taints or [])

    def test_what_comes_later_goes_on(self) -> None:
        self.refuse()
        self.change_group("more", node_labels=BAD)
        runs = len(self.helm.runs)
        self.resize(3)
        self.change_group("other", node_labels={"team": "good"})
        self.resize(2, "more")
        self.assertEqual(runs + 3, len(self.helm.runs))
        self.settle()
        self.assertEqual(("UPDATE_COMPLETE", None), self.state())
        self.assertEqual([3, 2, 1], [one["machineCount"] for one in self.values()["nodeGroups"]])
        self.assertEqual("UPDATE_COMPLETE", self.group("more").status)

    def test_what_comes_with_it_goes_through(self) -> None:
        self.refuse()
        self.in_one_pass(
            lambda: self.resize(3),
            lambda: self.change_group("more", node_labels=BAD),
            lambda: self.change_group("other", node_labels={"team": "good"}),
            lambda: self.add_group("w0"),
            lambda: self.add_group("w1", node_labels=BAD),
        )
        found = {one["name"]: one.get("nodeLabels") for one in self.values()["nodeGroups"]}
        wanted = {"default-worker": None, "more": None, "other": {"team": "good"}, "w0": None}
        self.assertEqual(wanted, found)
        self.assertEqual(3, self.entry("default-worker")["machineCount"])
        self.blamed("more")
        statuses = {row.name: row.status for row in self.cluster().nodegroups}
        self.assertEqual("CREATE_FAILED", statuses["w1"])
        self.assertEqual("CREATE_COMPLETE", statuses["w0"])
        self.assertEqual("UPDATE_COMPLETE", statuses["other"])

    def test_a_group_that_goes_meanwhile_goes(self) -> None:
        self.refuse()
        self.in_one_pass(
            lambda: self.change_group("more", node_labels=BAD),
            lambda: self.drop_group("other"),
        )
        listed = [one["name"] for one in self.values()["nodeGroups"]]
        self.assertEqual(["default-worker", "more"], listed)
        self.blamed("more")

    def test_what_an_operator_has_set_stays(self) -> None:
        self.helm.releases[NAMESPACE, RELEASE].values["nodeGroups"][1]["nodeLabels"] = {"of": "me"}
        self.refuse()
        self.change_group("more", node_labels=BAD)
        self.resize(3)
        self.assertEqual({"of": "me"}, self.entry()["nodeLabels"])

    def test_a_better_request_meanwhile_is_not_lost(self) -> None:
        self.refuse()
        refuses, sent = self.helm.refuses, []

        def meanwhile(values: Json) -> errors.DriverError | None:
            found = refuses(values)
            if found is not None and not sent:
                sent.append(True)
                # Another conductor: this one holds the lock.
                self.change_group("more", node_labels={"team": "good"})
            return found

        self.helm.refuses = meanwhile
        self.change_group("more", node_labels=BAD)
        self.status_task()
        self.assertEqual({"team": "good"}, self.entry()["nodeLabels"])
        self.settle()
        self.assertEqual(("UPDATE_COMPLETE", None), self.state())
        self.assertEqual("UPDATE_COMPLETE", self.group("more").status)

    def test_a_chart_that_takes_nothing_is_nobodys_change(self) -> None:
        self.helm.refuses = lambda values: errors.HelmRefused("the chart has a fault")
        self.change_group("more", node_labels=BAD)
        self.assertEqual(("UPDATE_FAILED", "the chart has a fault"), self.state())
        # It is asked for still, and the next request carries it out.
        self.assertEqual(BAD, self.group("more").node_labels)
        self.helm.refuses = lambda values: None
        self.resize(2)
        self.assertEqual(BAD, self.entry()["nodeLabels"])


class TestHalfWay(RefusalCase):
    """The management cluster refuses an object, and Helm keeps a failed revision."""

    def setUp(self) -> None:
        super().setUp()
        self.helm.is_half_way = True
        self.refuse()

    def test_the_release_is_deployed_as_it_was(self) -> None:
        before = self.values()
        self.change_group("more", node_labels=BAD)
        self.assertEqual(before, self.values())
        self.blamed("more")

    def test_a_conductor_that_died_there_leaves_it_to_the_next(self) -> None:
        before, revive = self.values(), self.helm.die_of_a_refusal()
        self.change_group("more", node_labels=BAD)
        revive()
        live = self.helm.live(NAMESPACE, RELEASE)
        assert live is not None
        self.assertEqual("failed", live.status)
        self.status_task()
        self.assertEqual(before, self.values())
        self.blamed("more")


class TestSizes(RefusalCase):
    def too_many(self, entry: Json) -> bool:
        return bool(entry.get("machineCount", 0) > 3)

    def test_a_resize(self) -> None:
        self.refuse(self.too_many)
        self.resize(4, "more")
        self.assertEqual((1, 1), (self.entry()["machineCount"], self.group("more").node_count))
        self.blamed("more")

    def test_the_control_plane(self) -> None:
        def refuses(values: Json) -> errors.DriverError | None:
            wrong = values["controlPlane"]["machineCount"] > 3
            return errors.HelmRefused(WORDS) if wrong else None

        self.helm.refuses = refuses
        self.in_one_pass(lambda: self.resize(5, "default-master"), lambda: self.resize(3, "more"))
        self.assertEqual(1, self.group("default-master").node_count)
        self.assertEqual(3, self.entry()["machineCount"])
        self.blamed("default-master")

    def test_nodes_that_were_to_go_are_as_any_other_again(self) -> None:
        self.resize(3, "more")
        self.settle()
        listed = [
            one["metadata"]["name"]
            for one in self.kube.list(names.MACHINE, NAMESPACE)
            if one["metadata"]["labels"].get(names.LABEL_DEPLOYMENT_NAME) == f"{RELEASE}-more"
        ]
        self.refuse(lambda one: one["name"] == "more" and one["machineCount"] == 2)
        self.resize(2, "more", remove=[listed[0]])
        self.assertEqual(3, self.group("more").node_count)
        machine = self.kube.get(names.MACHINE, NAMESPACE, listed[0])
        assert machine is not None
        marked = machine["metadata"].get("annotations") or {}
        self.assertNotIn("cluster.x-k8s.io/delete-machine", marked)


class TestBounds(RefusalCase):
    LABELS = {"auto_scaling_enabled": "true", "min_node_count": "1", "max_node_count": "5"}

    def bounds(self, name: str) -> tuple[Any, Any]:
        entry = self.entry(name)
        return entry.get("machineCountMin"), entry.get("machineCountMax")

    def row(self, name: str) -> tuple[Any, Any]:
        return self.group(name).min_node_count, self.group(name).max_node_count

    def refuse_other_than(self, name: str, *bounds: int) -> None:
        self.refuse(lambda one: one["name"] == name and self.read(one) not in ((), bounds))

    def read(self, entry: Json) -> tuple[int, ...]:
        found = (entry.get("machineCountMin"), entry.get("machineCountMax"))
        return tuple(one for one in found if one is not None)

    def test_bounds_go_back(self) -> None:
        row, before = self.row("default-worker"), self.bounds("default-worker")
        self.refuse_other_than("default-worker", 1, 5)
        self.change_group(min_node_count=3, max_node_count=9)
        self.assertEqual((before, row), (self.bounds("default-worker"), self.row("default-worker")))
        # The number that the new bounds asked for is not handed over.
        self.assertEqual(1, self.replicas("default-worker"))
        self.blamed("default-worker")

    def test_two_requests_of_one_pass_go_back_together(self) -> None:
        row = self.row("default-worker")
        self.refuse_other_than("default-worker", 1, 5)
        self.in_one_pass(
            lambda: self.change_group(min_node_count=2, max_node_count=7),
            lambda: self.change_group(min_node_count=3, max_node_count=9),
        )
        self.assertEqual(row, self.row("default-worker"))
        self.blamed("default-worker")

    def test_bounds_that_were_taken_a_moment_ago_stay(self) -> None:
        self.change_group(min_node_count=1, max_node_count=4)
        self.refuse_other_than("default-worker", 1, 4)
        # The first change is through with Helm, and still on record.
        self.change_group(min_node_count=2, max_node_count=9)
        self.assertEqual((1, 4), self.row("default-worker"))
        self.assertEqual((1, 4), self.bounds("default-worker"))
        self.blamed("default-worker")

    def test_a_group_that_the_autoscaler_was_to_get(self) -> None:
        row = self.row("more")
        self.refuse_other_than("more")
        self.change_group("more", min_node_count=1, max_node_count=4)
        self.assertEqual((row, (None, None)), (self.row("more"), self.bounds("more")))
        self.blamed("more")
