# SPDX-License-Identifier: Apache-2.0
"""Twenty requests at once about one cluster: all are carried out, and what that costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
import contextlib
import functools
import threading
from typing import Any

from magnum.conductor.handlers import nodegroup_conductor
from magnum.drivers.k8s_capi_helm import deadline, errors, lease
from magnum.drivers.k8s_capi_helm.driver import Driver
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.process import clients
from magnum.tests.unit.drivers.k8s_capi_helm import call_counts
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.turns import Turns

#: Seconds that a request to the management cluster takes, and a run of Helm.
REQUEST, HELM = 0.02, 3.0
#: Seconds in which all requests come in.
TOGETHER = 1.0
#: A lock that no test waits out: its thread renews it in real time.
LEASE = 600
#: Requests of twenty creates to the management cluster, and of them reads of the Lease.
MOST, MOST_READS = 250, 100


class Case(DriverCase):
    """A cluster that runs, and two conductors that are asked for a lot at once."""

    def setUp(self) -> None:
        self.of_thread = threading.local()
        super().setUp()
        self.made()
        # As operators have it.
        self.config(group="capi_helm", lock_wait=10)
        self.cloud.openstack.quota = 100

    def new_driver(self) -> Driver:
        return Driver(lambda settings: getattr(self.of_thread, "ports", self.ports))

    def conductor(self, turns: Turns, name: str) -> clients.Clients:
        """The clients of a conductor's process, where time is that of the turns."""
        leases = lease.ReleaseLeases(
            self.kube, holder=name, lease_duration=LEASE, clock=turns.clock, pause=turns.pause
        )
        return self.clients_of(
            kube=self.kube, leases=leases, helm=self.helm, charts=self.ports.charts
        )

    def at_once(self, turns: Turns, calls: Iterable[tuple[float, Callable[[], Any]]]) -> None:
        """Carry requests out side by side, each from a moment on, by one of two conductors."""
        self.ended = list[tuple[int, float]]()
        ports = [self.conductor(turns, name) for name in ("one", "two")]

        def work(number: int, call: Callable[[], Any]) -> None:
            self.of_thread.ports = ports[number % len(ports)]
            call()
            self.ended.append((number, turns.now))

        self.kube.before = lambda *call: turns.pause(REQUEST * turns.lot.uniform(0.5, 1.5))
        if self.helm.midway is None:
            self.helm.midway = lambda live: turns.pause(HELM)
        self.kube.calls.clear()
        self.helm.reads, self.helm.runs = 0, []
        raised = turns.run(
            (moment, functools.partial(work, number, call))
            for number, (moment, call) in enumerate(calls)
        )
        self.kube.before = self.helm.midway = None
        self.assertEqual([], raised)

    def requests(self) -> Counter[str]:
        """To the management cluster; each read of the release lists the Secrets that Helm keeps."""
        counted = Counter(f"{verb} {kind}" for verb, kind, _, _ in self.kube.calls)
        return counted + Counter({"list Secret": self.helm.reads})

    def creating(self, name: str, **fields: Any) -> Callable[[], Any]:
        """The request to create a nodegroup, as Magnum's API casts it now."""
        handler, group = nodegroup_conductor.Handler(), self.new_group(name, **fields)
        return lambda: handler.nodegroup_create(self.context, self.cluster(), group)

    def entries(self) -> dict[str, Any]:
        """Nodegroups of the release."""
        live = self.helm.live(NAMESPACE, RELEASE)
        return {one["name"]: one for one in live.values["nodeGroups"]}

    def statuses(self) -> set[str]:
        """Of the cluster and its nodegroups, after Cluster API and two status tasks."""
        self.capi_converges()
        self.status_task(2)
        return {one.status for one in (self.cluster(), *self.cluster().nodegroups)}


class TestTwenty(Case):
    def test_of_nodegroups(self) -> None:
        turns = Turns(seed=1)
        calls = [self.creating(f"group-{number}") for number in range(20)]
        self.at_once(turns, [(turns.lot.uniform(0, TOGETHER), call) for call in calls])
        requests = self.requests()
        call_counts.show(
            [
                f"20 nodegroups at once: {requests.total()} requests, {len(self.helm.runs)} runs "
                f"of helm, {turns.now:.0f} s",
                *(f"{number:6} {name}" for name, number in requests.most_common(6)),
            ]
        )
        self.assertEqual(21, len(self.entries()))
        self.assertLessEqual(len(self.helm.runs), 3)
        self.assertLessEqual(requests.total(), MOST)
        self.assertLessEqual(requests[f"get {names.LEASE.name}"], MOST_READS)
        self.assertEqual({"CREATE_COMPLETE", "UPDATE_COMPLETE"}, self.statuses())


class TestHandedOver(Case):
    """What is asked for while another request holds the lock, in the middle of its run of Helm."""

    def setUp(self) -> None:
        super().setUp()
        self.turns = Turns(seed=2)

    def meanwhile(self, call: Callable[[], Any]) -> None:
        """A nodegroup is created, and in the middle of that another request comes."""
        self.at_once(self.turns, [(0, self.creating("first")), (HELM / 2, call)])

    def left_to_the_holder(self) -> None:
        """The second request has ended before the first one, which has run Helm for both."""
        self.assertEqual([1, 0], [number for number, _ in self.ended])
        self.assertLess(self.ended[0][1], HELM)
        self.assertEqual(2, len(self.helm.runs))
        self.assertIn("first", self.entries())

    def test_a_nodegroup(self) -> None:
        self.meanwhile(self.creating("second"))
        self.left_to_the_holder()
        self.assertIn("second", self.entries())
        self.assertEqual({"CREATE_COMPLETE", "UPDATE_COMPLETE"}, self.statuses())

    def test_a_resize(self) -> None:
        self.meanwhile(lambda: self.resize(3))
        self.left_to_the_holder()
        self.assertEqual(3, self.entries()["default-worker"]["machineCount"])

    def test_new_labels(self) -> None:
        self.meanwhile(lambda: self.change_group(node_labels={"a": "b"}))
        self.left_to_the_holder()
        self.assertEqual({"a": "b"}, self.entries()["default-worker"]["nodeLabels"])

    def test_the_deletion_of_a_nodegroup(self) -> None:
        self.add_group("old")
        self.statuses()
        self.meanwhile(lambda: self.drop_group("old"))
        self.left_to_the_holder()
        self.assertNotIn("old", self.entries())

    def test_what_is_refused_is_refused_alone(self) -> None:
        self.helm.refuses = lambda values: (
            errors.HelmRefused("Helm refused it: team.")
            if any("team" in (one.get("nodeLabels") or {}) for one in values["nodeGroups"])
            else None
        )
        self.meanwhile(self.creating("second", node_labels={"team": "bad"}))
        self.assertEqual([1, 0], [number for number, _ in self.ended])
        self.assertEqual("CREATE_FAILED", self.group("second").status)
        self.assertIn("Helm refused it", self.group("second").status_reason)
        self.statuses()
        self.assertEqual("CREATE_COMPLETE", self.group("first").status)

    def test_a_nodegroup_that_is_still_checked_waits_for_its_own_request(self) -> None:
        """Its row is there, and its request not on record yet."""
        facts = self.cloud.nodegroup_facts

        def slowly(request: Any, nodegroup: Any, **more: Any) -> Any:
            if nodegroup.name == "second":
                self.turns.pause(3 * HELM)
            return facts(request, nodegroup, **more)

        self.cloud.nodegroup_facts = slowly
        self.meanwhile(self.creating("second"))
        self.assertEqual([0, 1], [number for number, _ in self.ended])
        self.assertLess(self.ended[0][1], 2 * HELM)
        self.assertEqual({"first", "second", "default-worker"}, set(self.entries()))
        self.assertEqual(2, len(self.helm.runs))

    def test_a_holder_whose_time_is_over_leaves_it_to_the_status_task(self) -> None:
        over, first = contextlib.ExitStack(), self.creating("first")

        def midway(live: Any) -> None:
            self.turns.pause(HELM)
            over.enter_context(deadline.end_at(0))

        def create() -> None:
            with over:
                first()

        self.helm.midway = midway
        self.at_once(self.turns, [(0, create), (HELM / 2, self.creating("second"))])
        self.assertEqual({"first", "default-worker"}, set(self.entries()))
        self.status_task()
        self.assertEqual({"first", "second", "default-worker"}, set(self.entries()))
