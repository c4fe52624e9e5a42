# SPDX-License-Identifier: Apache-2.0
"""One bad nodegroup harms nobody else: it fails alone, and never stays in the release."""

from __future__ import annotations

from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

WORDS = "at '/nodeGroups/1/machineFlavor': it is bad"


def bad(*groups: str) -> Any:
    """Helm refuses values with one of these nodegroups."""

    def refuses(values: Json) -> errors.DriverError | None:
        listed = {one["name"] for one in values["nodeGroups"]}
        return errors.HelmRefused(WORDS) if listed & set(groups) else None

    return refuses


class IsolationCase(DriverCase):
    def groups(self) -> list[str]:
        """The nodegroups of the release."""
        values = self.helm.live(NAMESPACE, RELEASE).values
        return [one["name"] for one in values["nodeGroups"]]

    def settle(self) -> None:
        self.capi_converges()
        self.status_task(2)

    def statuses(self) -> dict[str, str]:
        return {row.name: row.status for row in self.cluster().nodegroups if not row.is_default}

    def together(self, *add: str) -> None:
        """Requests for nodegroups that one pass finds together."""
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            for name in add:
                self.add_group(name)
        self.status_task()


class TestRefusedByHelm(IsolationCase):
    def test_a_group_alone(self) -> None:
        self.made()
        self.helm.refuses = bad("w0")
        self.add_group("w0")
        self.assertEqual("CREATE_FAILED", self.group("w0").status)
        self.assertEqual(WORDS, self.group("w0").status_reason)
        self.settle()
        self.assertEqual(("UPDATE_COMPLETE", None), self.status())
        self.assertEqual("CREATE_FAILED", self.group("w0").status)
        self.assertEqual(WORDS, self.group("w0").status_reason)
        self.assertEqual(["default-worker"], self.groups())

    def status(self) -> tuple[str, str | None]:
        return self.cluster().status, self.cluster().status_reason

    def test_later_requests_go_on(self) -> None:
        self.made()
        self.helm.refuses = bad("w0")
        self.add_group("w0")
        runs = len(self.helm.runs)
        self.resize(3)
        self.add_group("w1")
        # One run each: what was refused once is not tried again.
        self.assertEqual(runs + 2, len(self.helm.runs))
        self.settle()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual(["default-worker", "w1"], self.groups())
        self.assertEqual({"w0": "CREATE_FAILED", "w1": "CREATE_COMPLETE"}, self.statuses())
        self.drop_group("w0")
        self.settle()
        self.assertEqual({"w1": "CREATE_COMPLETE"}, self.statuses())

    def test_requests_of_the_same_pass_go_on(self) -> None:
        self.made()
        self.helm.refuses = bad("w3", "w6")
        runs = len(self.helm.runs)
        self.together(*(f"w{n}" for n in range(8)))
        good = ["w0", "w1", "w2", "w4", "w5", "w7"]
        self.assertEqual(["default-worker", *good], self.groups())
        self.assertLessEqual(len(self.helm.runs) - runs, 12)
        self.settle()
        expected = dict.fromkeys(good, "CREATE_COMPLETE")
        expected |= {"w3": "CREATE_FAILED", "w6": "CREATE_FAILED"}
        self.assertEqual(expected, self.statuses())
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_many_good_ones_are_one_run(self) -> None:
        self.made()
        runs = len(self.helm.runs)
        self.together(*(f"w{n}" for n in range(8)))
        self.assertEqual(runs + 1, len(self.helm.runs))

    def test_a_resize_beside_it(self) -> None:
        self.made()
        self.helm.refuses = bad("w0")
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            self.add_group("w0")
            self.resize(4)
        self.status_task()
        self.settle()
        values = self.helm.live(NAMESPACE, RELEASE).values
        self.assertEqual([4], [one["machineCount"] for one in values["nodeGroups"]])
        self.assertEqual("UPDATE_COMPLETE", self.group().status)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_what_is_refused_without_the_new_groups_is_not_blamed_on_them(self) -> None:
        self.made()
        self.helm.refuses = lambda values: errors.HelmRefused("the chart has a fault")
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            self.add_group("w0")
            self.resize(4)
        self.status_task()
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.assertEqual("the chart has a fault", self.group("w0").status_reason)


class TestRefusedHalfWay(IsolationCase):
    """The management cluster refuses an object, and Helm keeps a failed revision."""

    def setUp(self) -> None:
        super().setUp()
        self.made()
        self.helm.is_half_way = True
        self.helm.refuses = bad("w0")

    def leftover(self) -> Json:
        labels = {names.LABEL_CHART_CLUSTER: RELEASE, names.LABEL_NODE_GROUP: "w0"}
        made = {"name": f"{RELEASE}-w0", "namespace": NAMESPACE, "labels": labels}
        return self.kube.put(names.MACHINE_DEPLOYMENT, {"metadata": made, "spec": {"replicas": 1}})

    def test_the_release_is_deployed_without_it(self) -> None:
        self.leftover()
        self.add_group("w0")
        live = self.helm.live(NAMESPACE, RELEASE)
        self.assertEqual(("deployed", ["default-worker"]), (live.status, self.groups()))
        name = f"{RELEASE}-w0"
        self.assertIsNone(self.kube.get(names.MACHINE_DEPLOYMENT, NAMESPACE, name))
        self.settle()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual({"w0": "CREATE_FAILED"}, self.statuses())

    def test_a_conductor_that_died_there_leaves_it_to_the_next(self) -> None:
        revive = self.helm.die_of_a_refusal()
        self.add_group("w0")
        revive()
        self.assertEqual("failed", self.helm.live(NAMESPACE, RELEASE).status)
        self.status_task()
        self.assertEqual(["default-worker"], self.groups())
        self.settle()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual({"w0": "CREATE_FAILED"}, self.statuses())

    def test_groups_that_are_there_are_never_taken_out_meanwhile(self) -> None:
        self.add_group("w1")
        self.add_group("w0")
        self.add_group("w2")
        made = False
        for verb, _, values in self.helm.runs:
            listed = {one["name"] for one in values["nodeGroups"]}
            made = made or "w1" in listed
            self.assertEqual(("apply", made), (verb, "w1" in listed))
        self.assertTrue(made)


class TestRefusedByTheCloud(IsolationCase):
    def test_a_flavor_that_went_before_the_pass(self) -> None:
        self.made()
        self.cloud.flavor_sizes["gone"] = self.cloud.flavor_sizes["small"]
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            self.add_group("w0", flavor_id="gone")
            self.add_group("w1")
            self.resize(3)
        self.cloud.gone = ("gone",)
        self.forget_resolved()
        self.status_task()
        self.settle()
        self.assertEqual(["default-worker", "w1"], self.groups())
        self.assertEqual({"w0": "CREATE_FAILED", "w1": "CREATE_COMPLETE"}, self.statuses())
        self.assertIn("'gone'", self.group("w0").status_reason)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_a_cloud_that_is_away_delays_only_what_needs_it(self) -> None:
        self.made()
        self.cloud.refusal = errors.CloudUnreachable("Nova does not answer.")
        self.add_group("w0")
        self.resize(3)
        values = self.helm.live(NAMESPACE, RELEASE).values
        self.assertEqual([3], [one["machineCount"] for one in values["nodeGroups"]])
        self.assertEqual({"w0": "CREATE_IN_PROGRESS"}, self.statuses())
        self.status_task()
        self.assertIn("Nova does not answer", self.cluster().status_reason)
        self.cloud.refusal = None
        self.status_task()
        self.settle()
        self.assertEqual({"w0": "CREATE_COMPLETE"}, self.statuses())
