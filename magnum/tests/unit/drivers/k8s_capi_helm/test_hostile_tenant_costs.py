# SPDX-License-Identifier: Apache-2.0
"""A hostile tenant costs at most three times what a polite one of the same size costs.

Everything that a tenant, or what a tenant's cluster tells the controllers, can make long is made
long, one thing after the other and all of it at once; beside each stands the same with as many
things of a usual length. ``tox -e costs`` prints the figures. Asserted are counts: calls of
functions, requests to the management cluster, bytes that are written. CPU and memory are printed.
"""

from __future__ import annotations

from collections.abc import Callable
import copy
import dataclasses
import datetime
import json
import statistics
import time
import tracemalloc
from typing import Any

from oslo_service import loopingcall

from magnum import objects
from magnum.drivers.k8s_capi_helm.errors import column_limits
from magnum.drivers.k8s_capi_helm.model import conditions, names
from magnum.drivers.k8s_capi_helm.reconcile.process.addon_check import AddonCheck
from magnum.service import periodic
from magnum.tests.unit.drivers.k8s_capi_helm import builders, call_counts
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import (
    _KINDS,
    DriverCase,
    NAMESPACE,
    RELEASE,
)
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeWorkload
from magnum.tests.unit.drivers.k8s_capi_helm.test_tenant_kubeconfig import kubeconfig_secret

MEGABYTE = 1 << 20
#: What is not the driver's: fakes, and what is below it the same for everybody.
_NOT_OURS = ("/fakes/", "/copy.py", "sqlalchemy", "/oslo_", "/magnum/db/", "/magnum/objects/")
OTHER_NAMESPACE, OTHER_RELEASE = "magnum-p7", "other-abcdefghijkl"
_UUID = "88888888-8888-4777-8666-555555555555"


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    """What one pass takes.

    :ivar steps: calls of functions that are not of fakes or of the database.
    :ivar there: bytes of the objects that there are to be read.
    :ivar written: bytes that the cluster's row has for its texts afterwards.
    """

    steps: int
    requests: int
    cpu: float
    memory: int
    there: int
    written: int


def _size(value: Any) -> int:
    """Characters of a value as JSON, more or less."""
    if isinstance(value, dict):
        return sum(len(key) + 6 + _size(one) for key, one in value.items())
    if isinstance(value, list):
        return sum(2 + _size(one) for one in value)
    return len(value) if isinstance(value, str) else 4


class HostileCase(DriverCase):
    """A tenant with a cluster, and another tenant of the same cloud."""

    GROUPS = 4

    def setUp(self) -> None:
        super().setUp()
        self.workload = FakeWorkload(full=True)
        every = datetime.timedelta(seconds=1)
        inspections = AddonCheck(every, jitter=lambda: 1.0, enter=self.workload)
        self.ports = dataclasses.replace(self.ports, addon_check=inspections)

    def release_of(self, name: str) -> str:
        return OTHER_RELEASE if name == "other" else RELEASE

    def make(self, groups: int) -> None:
        """A cluster in place, with that many nodegroups."""
        self.made()
        for number in range(groups):
            self.add_group(f"group-{number}")
        self.capi_converges()
        self.status_task(2)
        self.kube.put(names.SECRET, kubeconfig_secret())
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    # What a pass costs ----------------------------------------------------------------------------
    def polled(self, name: str = "demo") -> None:
        """The health task, for one cluster."""
        cluster = objects.Cluster.get_by_name(self.context, name)
        job = periodic.ClusterHealthUpdateJob(self.context, cluster)
        self.assertRaises(loopingcall.LoopingCallDone, job.update_health_status)

    def ticked(self, name: str = "demo") -> None:
        """The status task, for one cluster that is in progress."""
        cluster = objects.Cluster.get_by_name(self.context, name)
        cluster.status = "UPDATE_IN_PROGRESS"
        cluster.save()
        job = periodic.ClusterUpdateJob(self.context, cluster)
        self.assertRaises(loopingcall.LoopingCallDone, job.update_status)

    def cost(self, work: Callable[[], None]) -> Cost:
        work()
        self.kube.calls.clear()
        steps = call_counts.calls(work, without=_NOT_OURS)
        requests = len(self.kube.calls)
        cpu, memory = self.measured(work) if call_counts.SHOWN else (0.0, 0)
        cluster = self.cluster()
        texts = (cluster.status_reason or "", json.dumps(cluster.health_status_reason))
        texts += tuple(row.status_reason or "" for row in cluster.nodegroups)
        written = max(len(one.encode()) for one in texts)
        there = sum(map(_size, self.kube.everything())) if call_counts.SHOWN else 0
        return Cost(steps, requests, cpu, memory, there, written)

    def measured(self, work: Callable[[], None]) -> tuple[float, int]:
        """Seconds of CPU, of several passes the one in the middle, and the most memory of one."""
        # A copy of a megabyte is the fake's, and nobody's work in a cloud.
        self.kube.hand_out = lambda found: found
        times = []
        for _ in range(3):
            begun = time.thread_time()
            work()
            times.append(time.thread_time() - begun)
        tracemalloc.start()
        try:
            work()
            return statistics.median(times), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            self.kube.hand_out = copy.deepcopy

    # What a tenant can make long ------------------------------------------------------------------
    def labels(self, hostile: bool) -> None:
        cluster = self.cluster()
        count, name = (10_000, "boot_volume_siz") if hostile else (10, "zz")
        cluster.labels = {f"{name}{number}": "x" for number in range(count)}
        cluster.save()

    def labels_of_groups(self, hostile: bool) -> None:
        count, name = (256, "boot_volume_siz") if hostile else (10, "zz")
        for number, row in enumerate(self.cluster().nodegroups):
            if not row.is_default:
                row.labels = {f"{name}{number}-{one}": "x" for one in range(count)}
                row.save()

    def words(self, hostile: bool) -> None:
        """Conditions of every object, bad ones."""
        text = self.long if hostile else "not ready"
        for kind in _KINDS.values():
            for one in self.kube.list(kind, NAMESPACE):
                status = one.get("status") or {}
                for listed in (status, status.get("v1beta2") or {}):
                    for said in listed.get("conditions") or ():
                        if said["type"] not in ("ControlPlaneInitialized", "RemoteConnectionProbe"):
                            said |= {"status": "False", "message": text}
                self.kube.put(kind, one)

    def failures(self, hostile: bool) -> None:
        """What a webhook of the tenant's own says to each addon."""
        text = self.long if hostile else "no answer"
        for one in self.kube.list(names.HELM_RELEASE, NAMESPACE):
            denied = f'admission webhook "a.example.org" denied the request: {text}'
            one["status"] |= {"phase": "Failed", "failureMessage": denied}
            self.kube.put(names.HELM_RELEASE, one)

    def events(self, hostile: bool) -> None:
        text = self.long if hostile else "no valid host"
        now = datetime.datetime.now(datetime.timezone.utc)
        for number in range(200):
            name = f"{RELEASE}-group-0-{number}"
            one = builders.event("OpenStackServer", name, "FailedCreateServer", text, now)
            self.kube.put(names.EVENT, one)

    def things(self, hostile: bool) -> None:
        """What Helm's record in the tenant's cluster says that addons consist of."""
        made = {"apiVersion": "v1", "kind": "Secret", "namespace": "a"}
        count = 20_000 if hostile else 100
        for one in self.kube.list(names.HELM_RELEASE, NAMESPACE):
            one["status"]["resources"] = [{**made, "name": f"a{n}"} for n in range(count)]
            self.kube.put(names.HELM_RELEASE, one)

    def addresses(self, hostile: bool) -> None:
        """Addresses of machines, which their kubelets tell."""
        text = "2001:db8::1" + "0" * (10_000 if hostile else 3)
        for one in self.kube.list(names.MACHINE, NAMESPACE):
            one["status"]["addresses"] = [
                {"type": "InternalIP", "address": f"{text}{number}"} for number in range(10)
            ]
            self.kube.put(names.MACHINE, one)

    def faults(self, hostile: bool) -> None:
        text = self.long if hostile else "No valid host was found."
        for one in self.kube.list(names.OPENSTACK_SERVER, NAMESPACE):
            one["status"]["instanceState"] = "ERROR"
            self.cloud.faults[one["status"]["instanceID"]] = text
            self.kube.put(names.OPENSTACK_SERVER, one)

    def mood(self, hostile: bool) -> None:
        """The tenant's API server; :mod:`test_tenant_api_failures` has what a look costs."""
        self.workload.away = hostile

    TRAITS = (
        *("labels", "labels_of_groups", "words", "failures", "events", "things"),
        *("addresses", "faults", "mood"),
    )
    #: Deep, without an end, and without a blank.
    long = '{"a": [{"message":' * (MEGABYTE // 18)


class TestCost(HostileCase):
    """One pass of a hostile tenant beside one of a polite one of the same size."""

    def compare(self, *traits: str) -> None:
        costs: dict[tuple[str, bool], Cost] = {}
        for hostile in (False, True):
            for trait in traits:
                getattr(self, trait)(hostile)
            for task in (self.polled, self.ticked):
                costs[task.__name__, hostile] = self.cost(task)
        rows = []
        for task in ("polled", "ticked"):
            polite, other = costs[task, False], costs[task, True]
            for who, one in (("polite", polite), ("hostile", other)):
                rows.append(
                    f"{' + '.join(traits)[:40]:40} {task:6} {who:7} {one.steps:8} steps "
                    f"{one.requests:3} requests {1000 * one.cpu:7.1f} ms CPU "
                    f"{one.memory / MEGABYTE:6.1f} MiB {one.there:10} bytes there "
                    f"{one.written:6} written"
                )
            self.assertLessEqual(other.steps, 3 * polite.steps, (traits, task))
            self.assertLessEqual(other.requests, 3 * polite.requests, (traits, task))
            self.assertLessEqual(other.written, column_limits.TEXT, (traits, task))
        call_counts.show(rows)

    def test_each_trait_alone(self) -> None:
        self.make(self.GROUPS)
        for trait in self.TRAITS:
            self.compare(trait)
            getattr(self, trait)(False)
            self.capi_converges()

    def test_all_of_it_at_once(self) -> None:
        self.make(self.GROUPS)
        self.compare(*self.TRAITS)

    def test_nodegroups_by_the_hundred(self) -> None:
        self.make(3)
        few = self.cost(self.polled)
        for number in range(3, 40):
            self.add_group(f"group-{number}")
        self.capi_converges()
        self.status_task(2)
        many = self.cost(self.polled)
        call_counts.show(
            f"{count:3} nodegroups {one.steps:8} steps {one.requests:3} requests "
            f"{1000 * one.cpu:7.1f} ms CPU {one.memory / MEGABYTE:6.1f} MiB"
            for count, one in ((4, few), (41, many))
        )
        self.assertEqual(few.requests, many.requests)
        # Ten times as many: each nodegroup looks for its own among all machines.
        self.assertLess(many.steps, 20 * few.steps)


class TestNeighbour(HostileCase):
    """What anybody else's pass does does not depend on a hostile neighbour."""

    GROUPS = 3
    minutes = 0

    def make_other(self) -> None:
        """The cluster of another project, in place."""
        self.template.public = True
        self.template.save()
        self.context.project_id = "p7"
        other = self.create(name="other", uuid=_UUID, project_id="p7")
        self.assertEqual("CREATE_IN_PROGRESS", other.status, other.status_reason)
        self.context.project_id = "p1"
        for one in builders.objects(builders.observed({"default-worker": 1}, masters=1)):
            text = (
                json.dumps(one).replace(RELEASE, OTHER_RELEASE).replace(NAMESPACE, OTHER_NAMESPACE)
            )
            self.kube.put(_KINDS[one["kind"]], json.loads(text))

    def passes(self) -> list[Any]:
        """Requests of a pass of each kind of the other cluster, and what Magnum says then."""
        found: list[Any] = []
        # Some questions are asked once a minute: no time goes on but between two such calls.
        self.minutes += 10
        self.after(self.minutes)
        self.context.project_id = "p7"
        # The second look ends what is in progress, so that the next passes begin like these.
        for task in (self.polled, self.ticked, self.ticked):
            self.kube.calls.clear()
            task("other")
            found.append(list(self.kube.calls))
            cluster = objects.Cluster.get_by_name(self.context, "other")
            found.append((cluster.status, cluster.health_status, cluster.health_status_reason))
        self.context.project_id = "p1"
        return found

    def test_a_pass_beside_a_hostile_neighbour_is_the_same(self) -> None:
        self.make(self.GROUPS)
        self.make_other()
        self.passes()
        beside_polite = self.passes()
        for trait in self.TRAITS:
            getattr(self, trait)(True)
        self.polled()
        self.ticked()
        self.assertEqual(beside_polite, self.passes())
        self.assertEqual({OTHER_NAMESPACE}, {call[2] for call in beside_polite[0] if call[2]})


class TestLongest(HostileCase):
    """The texts that reach a tenant are bounded, whatever they are made of."""

    def test_reasons_and_health(self) -> None:
        self.make(2)
        for trait in self.TRAITS:
            getattr(self, trait)(True)
            self.polled()
            self.ticked()
            for row in (self.cluster(), *self.cluster().nodegroups):
                self.assertLessEqual(len(row.status_reason or ""), 250, trait)
            for key, text in self.cluster().health_status_reason.items():
                self.assertLess(len(text), 2 * conditions.LONGEST, (trait, key))
