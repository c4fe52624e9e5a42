# SPDX-License-Identifier: Apache-2.0
"""CADF notifications of a cluster's life: each change once, by oslo.messaging's own notifier."""

from __future__ import annotations

from typing import Any

import fixtures
import oslo_messaging
from oslo_messaging.notify import _impl_test
from oslo_messaging.notify import notifier as oslo_notifier

from magnum import objects
from magnum.common import rpc
from magnum.conductor import utils as conductor_utils
from magnum.drivers.k8s_capi_helm import errors, lease
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import saving
from magnum.drivers.k8s_capi_helm.model import names
from magnum.service import periodic
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import CONF, DriverCase, NAMESPACE, RELEASE

LABELS = {"auto_scaling_enabled": "true", "min_node_count": "1", "max_node_count": "5"}
PENDING, SUCCESS, FAILURE = "pending", "success", "failure"


class NotificationsCase(DriverCase):
    """Magnum's notifier is the real one, whose driver keeps messages."""

    def setUp(self) -> None:
        super().setUp()
        _impl_test.reset()
        self.addCleanup(_impl_test.reset)
        transport = oslo_messaging.get_notification_transport(CONF, "fake://")
        serializer = rpc.RequestContextSerializer(rpc.JsonPayloadSerializer())
        real = oslo_notifier.Notifier(transport, driver="test", serializer=serializer)
        self.useFixture(fixtures.MonkeyPatch("magnum.common.rpc.NOTIFIER", real))

    def events(self) -> list[tuple[str, str, int]]:
        """Action, outcome and number of nodes of what was sent since the last question."""
        found = [self._event(message) for _, message, _, _ in _impl_test.NOTIFICATIONS]
        _impl_test.reset()
        return found

    def _event(self, message: dict[str, Any]) -> tuple[str, str, int]:
        payload = message["payload"]
        [attachment] = payload["target"]["attachments"]
        self.assertEqual(f"magnum.cluster.{payload['action']}", message["event_type"])
        self.assertEqual(self.cluster_uuid, payload["target"]["id"])
        wanted = "ERROR" if payload["outcome"] == FAILURE else "INFO"
        self.assertEqual(wanted, message["priority"])
        return payload["action"], payload["outcome"], attachment["content"]["node_count"]

    cluster_uuid = "99999999-8888-4777-8666-555555555555"

    def another_conductor(self) -> Any:
        """The clients of another conductor beside this one."""
        return self.clients_of(
            kube=self.kube,
            leases=lease.ReleaseLeases(self.kube, holder="another", lease_duration=60),
            helm=self.helm,
            charts=self.ports.charts,
        )

    def settle(self) -> None:
        for _ in range(2):
            self.capi_converges()
            self.status_task(2)


class TestLife(NotificationsCase):
    def test_create_resize_and_delete(self) -> None:
        self.create(workers=2)
        self.assertEqual([("create", PENDING, 2)], self.events())
        self.settle()
        self.assertEqual([("create", SUCCESS, 2)], self.events())
        self.resize(3)
        self.assertEqual([("update", PENDING, 3)], self.events())
        self.settle()
        self.assertEqual([("update", SUCCESS, 3)], self.events())
        self.health_task()
        self.assertEqual([], self.events())
        self.delete()
        self.assertEqual([("delete", PENDING, 3)], self.events())
        self.capi_deletes()
        self.status_task(6)
        self.assertEqual([("delete", SUCCESS, 3)], self.events())
        self.assertEqual([], objects.Cluster.list(self.context))

    def test_nodegroups(self) -> None:
        """Magnum sends nothing when these begin."""
        self.made()
        self.events()
        self.add_group("more", 2)
        self.assertEqual([("update", PENDING, 3)], self.events())
        self.settle()
        self.assertEqual([("update", SUCCESS, 3)], self.events())
        self.change_group("more", max_node_count=4)
        self.settle()
        self.assertEqual([("update", PENDING, 3), ("update", SUCCESS, 3)], self.events())
        self.drop_group("more")
        self.assertEqual([("update", PENDING, 3)], self.events())
        self.settle()
        self.assertEqual([("update", SUCCESS, 1)], self.events())

    def test_a_nodegroup_request_that_magnum_fails(self) -> None:
        self.made()
        self.events()
        self.add_group("more", 0)
        self.settle()
        self.events()
        owner = {"metadata": {"labels": {names.LABEL_UUID: "88888888-7777-4666-8555-444444444444"}}}
        self.kube.patch(names.LEASE, NAMESPACE, names.lease(RELEASE), owner)
        self.drop_group("more")
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.assertEqual([("update", PENDING, 1), ("update", FAILURE, 1)], self.events())

    def test_a_deletion_that_helm_refuses(self) -> None:
        """Whether the request itself or the status task finds that out, once."""
        self.made()
        self.add_group("more", 0)
        self.settle()
        self.events()
        self.helm.refusal = errors.HelmRefused("Helm refused it: no.", "")
        self.drop_group("more")
        self.status_task(3)
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.assertEqual([("update", PENDING, 1), ("update", FAILURE, 1)], self.events())

    def test_bounds_alone(self) -> None:
        """Nothing rolls; the request itself, or the next pass, finds everything in place."""
        self.made(labels=LABELS)
        self.events()
        self.change_group(max_node_count=7)
        self.settle()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual([("update", PENDING, 1), ("update", SUCCESS, 1)], self.events())


class TestRecovery(NotificationsCase):
    def fail(self) -> None:
        """A resize that misses its deadline."""
        self.made()
        self.health_task()
        self.helm.refusal = errors.HelmInterrupted("Helm ran out of time.")
        self.resize(3)
        self.status_task()
        self.make_late()
        self.status_task()
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.assertEqual(("update", FAILURE, 3), self.events()[-1])

    def recover(self) -> None:
        self.helm.refusal = None
        self.health_task()
        self.capi_converges()
        for _ in range(6):
            self.health_task()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_a_failed_cluster_that_recovers_is_told_once(self) -> None:
        self.fail()
        self.health_task()
        self.assertEqual([], self.events())
        self.recover()
        self.assertEqual([("update", SUCCESS, 3)], self.events())

    def test_a_failed_creation_that_recovers(self) -> None:
        self.create()
        self.make_late()
        self.status_task()
        self.assertEqual("CREATE_FAILED", self.cluster().status)
        self.events()
        self.capi_converges()
        for _ in range(4):
            self.health_task()
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)
        self.assertEqual([("create", SUCCESS, 1)], self.events())

    def test_a_refused_request_that_ends_after_a_while(self) -> None:
        self.made()
        self.resize(0, remove=["nobody"])
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.events()
        self.health_task()
        self.assertEqual([], self.events())
        for _ in range(3):
            self.after(11)
            self.health_task()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual([("update", SUCCESS, 1)], self.events())

    def test_of_two_conductors_one_tells(self) -> None:
        """The other one has read the row before, and writes nothing."""
        self.fail()
        self.helm.refusal = None
        self.health_task()
        self.capi_converges()
        first, second = self.cluster(), self.cluster()
        monitors = [self.driver.get_monitor(self.context, first) for _ in range(4)]
        other = self.new_driver()
        other._clients_of = lambda settings: others
        others = self.another_conductor()
        late = other.get_monitor(self.context, second)
        found: list[str] = []

        def meanwhile(verb: str, kind: names.Kind, name: str) -> None:
            if not found and (verb, kind) == ("replace", names.LEASE):
                found.append(name)
                for monitor in monitors:
                    monitor.poll_health_status()

        late.poll_health_status()
        self.kube.before = meanwhile
        late.poll_health_status()
        self.kube.before = None
        for monitor in monitors:
            monitor.poll_health_status()
        late.poll_health_status()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual([("update", SUCCESS, 3)], self.events())

    def test_what_cannot_be_sent_keeps_nothing_from_being_written(self) -> None:
        self.fail()

        def refuse(*_args: Any) -> None:
            raise oslo_messaging.MessageDeliveryFailure("no broker")

        self.useFixture(
            fixtures.MonkeyPatch(
                f"{conductor_utils.__name__}.notify_about_cluster_operation", refuse
            )
        )
        log = self.useFixture(fixtures.FakeLogger())
        self.recover()
        self.assertIn("the notification 'update' is not sent", log.output)


class TestNodeCounts(NotificationsCase):
    def setUp(self) -> None:
        super().setUp()
        self.made(labels=LABELS)
        self.health_task()
        self.events()

    def test_what_the_autoscaler_changes_is_told_once(self) -> None:
        for count in (4, 2):
            self.scale("default-worker", count)
            self.capi_converges()
            for _ in range(3):
                self.health_task()
            self.assertEqual(count, self.group().node_count)
            self.assertEqual([("update", SUCCESS, count)], self.events())

    def test_other_addresses_are_no_change_of_nodes(self) -> None:
        group = self.group()
        group.node_addresses = ["192.0.2.1"]
        group.save()
        self.health_task()
        self.assertNotEqual(["192.0.2.1"], self.group().node_addresses)
        self.assertEqual([], self.events())

    def test_two_nodegroups_are_one_event(self) -> None:
        self.add_group("more", min_node_count=1, max_node_count=5)
        self.settle()
        self.events()
        for name in ("default-worker", "more"):
            self.scale(name, 3)
        self.capi_converges()
        self.health_task()
        self.assertEqual([("update", SUCCESS, 6)], self.events())


class TestClaim(NotificationsCase):
    def test_only_one_of_two_writes(self) -> None:
        self.made()
        first, second = self.group(), self.group()
        self.assertTrue(
            saving.claim(first, "node_count", node_count=3, node_addresses=["192.0.2.1"])
        )
        self.assertFalse(saving.claim(second, "node_count", node_count=3))
        self.assertEqual(1, second.node_count)
        self.assertEqual(set(), first.obj_what_changed())
        found = self.group()
        self.assertEqual((3, ["192.0.2.1"]), (found.node_count, found.node_addresses))

    def test_it_fits_the_columns(self) -> None:
        self.made()
        cluster = self.cluster()
        self.assertTrue(saving.claim(cluster, "status", status_reason="r" * 70000))
        self.assertLess(len(self.cluster().status_reason), 65536)
        self.assertEqual(cluster.status_reason, self.cluster().status_reason)


class TestMagnum(NotificationsCase):
    def test_each_end_has_an_action(self) -> None:
        """In every release of Magnum: the driver takes the actions from its status task."""
        for verb in ("CREATE", "UPDATE"):
            for end in ("COMPLETE", "FAILED"):
                actions = periodic.ClusterUpdateJob.status_to_event
                self.assertEqual(verb.lower(), actions[f"{verb}_{end}"])
