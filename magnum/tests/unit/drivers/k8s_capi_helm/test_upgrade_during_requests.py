# SPDX-License-Identifier: Apache-2.0
"""Upgrades that cross other requests, at other workers.

Magnum refuses an upgrade of a cluster on which something is in progress, by a row that its API has
read before the request waited for a conductor.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
from typing import Any

from magnum.common import exception
from magnum.conductor.handlers import cluster_conductor
from magnum.drivers.k8s_capi_helm import lease
from magnum.drivers.k8s_capi_helm.handlers.tasks import status_task
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.test_upgrade_cluster import OLD, PINS, UpgradeCase


class Case(UpgradeCase):
    def setUp(self) -> None:
        super().setUp()
        self.made()
        for name in ("first", "second"):
            self.add_group(name)
            self.settle()

    def settle(self) -> None:
        for _ in range(4):
            self.capi_converges()
            self.status_task(2)

    def read(self, name: str) -> Callable[[Any], str]:
        """An upgrade whose rows Magnum's API reads now, and that a conductor is given later."""
        cluster, row = self.cluster(), self.group(name)

        def ask(template: Any) -> str:
            handler = cluster_conductor.Handler()
            try:
                handler.cluster_upgrade(self.context, cluster, template, 1, row)
            except exception.NotSupported as error:
                return str(error)
            return ""

        return ask

    def while_cloud_is_asked(self, call: Callable[[], Any]) -> None:
        """Have another worker do that while what the next upgrade leads to is looked up."""
        software = self.cloud.software

        def asked(*args: Any, **more: Any) -> Any:
            self.cloud.software = software
            call()
            return software(*args, **more)

        self.cloud.software = asked


class TestAnother(Case):
    """Of two that were asked for at once one is refused: it would be lost, or keep the other up."""

    def test_a_nodegroup_beside_its_cluster(self) -> None:
        late = self.read("first")
        self.assertEqual("", self.upgrade(self.next))
        self.assertIn("Another upgrade of this cluster is in progress", late(self.next))
        self.assertEqual(OLD, self.pins("first")["kubernetesVersion"])
        self.settle()
        self.assertEqual([{}, {}, {}], [self.pins(name) for name in self.names()])
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_two_nodegroups(self) -> None:
        self.upgrade(self.next, "default-master")
        self.settle()
        first, second, told = self.read("first"), self.read("second"), list[str]()
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            told += [first(self.next), second(self.next)]
        self.settle()
        self.assertEqual(["", True], [told[0], "Another upgrade" in told[1]])
        self.assertEqual(({}, OLD), (self.pins("first"), self.pins("second")["kubernetesVersion"]))
        self.assertEqual("", self.upgrade(self.next, "second"))
        self.settle()
        self.assertEqual({}, self.pins("second"))

    def test_one_that_was_written_down_a_moment_before(self) -> None:
        late, told = self.read("second"), list[str]()

        def before(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("replace", names.LEASE):
                self.kube.before = None
                told.append(late(self.next))

        self.upgrade(self.next, "default-master")
        self.settle()
        late = self.read("second")
        self.kube.before = before
        self.assertIn("Another upgrade", self.upgrade(self.next, "first"))
        self.settle()
        self.assertEqual(([""], {}), (told, self.pins("second")))
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def names(self) -> list[str]:
        return [one["name"] for one in self.values["nodeGroups"]]


class TestNewcomers(Case):
    """A nodegroup that is asked for at the same time."""

    def new(self, name: str) -> tuple[Any, Any]:
        """The rows of a nodegroup as Magnum's conductor has just made them."""
        row = self.new_group(name, status="CREATE_IN_PROGRESS")
        row.create()
        return self.cluster(), row

    def test_one_that_is_refused_meanwhile_stays_so(self) -> None:
        rows = self.new("new")
        self.cloud.openstack.quota = 4  # as many server groups as there are

        self.while_cloud_is_asked(lambda: self.driver.create_nodegroup(self.context, *rows))
        self.assertEqual("", self.upgrade(self.next))
        self.assertEqual("CREATE_FAILED", self.group("new").status)
        self.after(6)
        self.settle()
        self.assertEqual("CREATE_FAILED", self.group("new").status)
        self.assertNotIn("new", [one["name"] for one in self.values["nodeGroups"]])

    def test_one_that_is_made_meanwhile_comes_along(self) -> None:
        rows = self.new("new")
        self.while_cloud_is_asked(lambda: self.driver.create_nodegroup(self.context, *rows))
        self.assertEqual("", self.upgrade(self.next))
        self.settle()
        self.assertEqual({}, self.pins("new"))
        self.assertTrue(self.group("new").status.endswith("_COMPLETE"))

    def test_one_that_is_asked_for_and_made_meanwhile_comes_along(self) -> None:
        self.while_cloud_is_asked(lambda: self.add_group("new"))
        self.assertEqual("", self.upgrade(self.next))
        self.assertEqual(OLD, self.pins("new")["kubernetesVersion"])
        self.settle()
        self.assertEqual({}, self.pins("new"))
        self.assertEqual("ubuntu-kube-1.35", self.group("new").image_id)

    def test_one_with_an_image_of_its_own_does_not(self) -> None:
        self.cloud.images["other"] = ("image-9", OLD)
        self.while_cloud_is_asked(lambda: self.add_group("new", image_id="other"))
        self.assertEqual("", self.upgrade(self.next))
        self.settle()
        self.assertEqual("image-9", self.pins("new")["machineImageId"])
        self.assertEqual("other", self.group("new").image_id)

    def test_one_that_is_deleted_meanwhile_goes(self) -> None:
        self.while_cloud_is_asked(lambda: self.drop_group("second"))
        self.assertEqual("", self.upgrade(self.next))
        self.assertEqual("DELETE_IN_PROGRESS", self.group("second").status)
        self.settle()
        self.assertNotIn("second", [row.name for row in self.cluster().nodegroups])
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)


class TestLateConductor(UpgradeCase):
    """One that was frozen while its helm came to its end, and awakes when others have its lock."""

    def setUp(self) -> None:
        super().setUp()
        self.seconds = 0.0
        kube, clock = self.kube, lambda: self.seconds
        mine = lease.ReleaseLeases(kube, holder="late", lease_duration=60, clock=clock)
        self.ports = dataclasses.replace(self.ports, leases=mine)
        self.made()

    def freeze(self, live: Any) -> None:
        self.helm.on_apply = None
        self.seconds += 100

    def test_it_writes_nothing_any_more(self) -> None:
        before = self.ports.leases.read(NAMESPACE, RELEASE)
        self.helm.on_apply = self.freeze
        self.assertEqual("", self.upgrade(self.next))
        after = self.ports.leases.read(NAMESPACE, RELEASE)
        self.assertEqual(before.applied_generations, after.applied_generations)
        self.assertEqual([False], [one.is_accepted for one in after.operations])
        self.assertEqual(self.template.uuid, self.cluster().cluster_template_id)

    def test_others_carry_it_on(self) -> None:
        self.helm.on_apply = self.freeze
        self.upgrade(self.next)
        for _ in range(5):
            self.status_task(2)
            self.capi_converges()
            self.seconds += 61
        self.status_task(2)
        self.assertEqual(self.next.uuid, self.cluster().cluster_template_id)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)


class TestLatePasses(UpgradeCase):
    """Passes that have read the cluster's row just before the upgrade was accepted."""

    def late_passes(self) -> list[Any]:
        """Upgrade, and give what Magnum's periodic task has read while helm ran."""
        self.made()
        read = list[Any]()

        def midway(release: Any) -> None:
            self.helm.midway = None
            read.extend(self.cluster() for _ in range(3))

        self.helm.midway = midway
        self.assertEqual("", self.upgrade(self.next))
        self.assertEqual(["UPDATE_IN_PROGRESS"] * 3, [one.status for one in read])
        return read

    def test_they_complete_nobody_who_waits_for_the_control_plane(self) -> None:
        for late in self.late_passes():
            status_task.advance(self.periodic(), self.context, late)
            self.assertEqual("UPDATE_IN_PROGRESS", self.group().status)
        self.assertEqual(PINS, self.pins())

    def test_they_pin_no_nodegroup_that_is_new(self) -> None:
        late = self.late_passes()
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            self.add_group("new", image_id="ubuntu-kube-1.35")
        self.assertNotIn("new", [one["name"] for one in self.values["nodeGroups"]])
        status_task.advance(self.periodic(), self.context, late[0])
        self.assertEqual(PINS, self.pins("new"), "its kubelet is newer than the control plane")
