# SPDX-License-Identifier: Apache-2.0
"""Two management clusters: a cluster is where its row says, and one away costs others nothing."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.conf import management_clusters
from magnum.drivers.k8s_capi_helm.handlers.tasks import failed_clusters, watch_trigger
from magnum.drivers.k8s_capi_helm.kube.watch.informers import Informers
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.policy import management_choice
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import CONF, NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.two_management_clusters import (
    GROUP,
    OTHER,
    TwoManagementClusters,
)

SECOND = "second-abcdefghijkl"


class TestChosen(TwoManagementClusters):
    def test_by_its_zone(self) -> None:
        with self.at_other():
            cluster = self.create(labels={"availability_zone": "z2"})
        self.assertEqual(f"{RELEASE}@{OTHER}", cluster.stack_id)
        self.assertIsNotNone(self.other_kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE)))
        self.assertEqual([], self.kube.calls)
        self.assertEqual([], self.helm.runs)

    def test_all_others_stay_with_the_default_one(self) -> None:
        self.assertEqual(RELEASE, self.create().stack_id)
        self.assertEqual([], self.other_kube.calls)

    def test_none_takes_it(self) -> None:
        self.config(group=GROUP, draining=True)
        self.config(group="capi_helm", management_clusters=[OTHER])
        cluster = self.create(labels={"availability_zone": "z2"})
        self.assertEqual(("CREATE_FAILED", None), (cluster.status, cluster.stack_id))
        self.assertIn("No management cluster of this cloud takes", cluster.status_reason)
        self.assertNotIn(OTHER, cluster.status_reason)
        self.assertEqual([], [*self.kube.calls, *self.other_kube.calls])

    def test_one_that_does_not_respond_is_left_out_while_there_is_another_one(self) -> None:
        """A choice is for life, and a creation there would fail."""
        self.config(group=GROUP, availability_zones=[])
        uuid = next(uuid for uuid in map(_uuid, range(99)) if self.chosen(uuid) == OTHER)
        self.other_kube.unreachable = True
        self.assertEqual(RELEASE, self.create(uuid=uuid).stack_id)

    def chosen(self, uuid: str) -> str:
        listed = management_clusters.read_management_clusters(CONF)
        return management_choice.by_weight(listed, uuid).name


def _uuid(number: int) -> str:
    return f"99999999-8888-4777-8666-{number:012d}"


class TestVerbs(TwoManagementClusters):
    def test_each_verb_is_about_its_own_management_cluster(self) -> None:
        self.made_there()
        with self.at_other():
            self.resize(3)
            self.add_group("more")
            self.capi_converges()
            self.status_task(2)
            self.assertEqual("UPDATE_COMPLETE", self.cluster().status, self.cluster().status_reason)
            self.change_group("more", max_node_count=5)
            self.drop_group("more")
            self.capi_converges()
            self.status_task(2)
            self.health_task()
            template = self._template(
                uuid="77777777-2222-4333-8444-555555555555", labels={"kube_tag": "v1.36.1"}
            )
            self.upgrade(template)
            self.capi_converges()
            self.status_task(3)
            self.health_task()
            self.assertEqual("HEALTHY", self.cluster().health_status)
        self.assertEqual([], self.kube.calls)

    def test_a_deletion(self) -> None:
        self.made_there()
        with self.at_other():
            self.delete()
            self.status_task()
            self.capi_deletes()
            self.status_task(3)
            self.assertEqual([], self.left())
        self.assertEqual([], objects.Cluster.list(self.context))
        self.assertEqual([], self.kube.calls)

    def test_a_request_about_one_that_is_not_configured(self) -> None:
        """An operator has taken its name out of the list."""
        self.made_there()
        del self.peers[OTHER]
        self.delete()
        cluster = self.cluster()
        self.assertEqual("DELETE_FAILED", cluster.status)
        self.assertIn(f"'{OTHER}'", cluster.status_reason)
        self.health_task()
        reasons = self.cluster().health_status_reason
        self.assertIn(f"'{OTHER}'", reasons["management"])
        self.assertEqual("UNKNOWN", self.cluster().health_status)
        self.assertEqual([], self.kube.calls)

    def test_a_row_without_a_release_is_looked_for_on_each(self) -> None:
        """Its conductor died between the Lease and the row."""
        self.create()
        cluster = self.cluster()
        self.open_lease_there(SECOND, cluster.uuid)
        cluster.stack_id = None
        cluster.save()
        self.delete()
        self.status_task()
        self.assertEqual([], objects.Cluster.list(self.context))
        for kube in (self.kube, self.other_kube):
            self.assertEqual([], kube.list(names.LEASE, NAMESPACE))

    def test_it_keeps_nobody_from_deleting_what_was_refused(self) -> None:
        self.create(labels={"availability_zone": "z2", "boot_volume_size": "x"})
        self.other_kube.unreachable = True
        self.delete()
        self.status_task()
        self.assertEqual([], objects.Cluster.list(self.context))


class TestAway(TwoManagementClusters):
    """Requests and waits of clusters are the same whether another management cluster is away."""

    def setUp(self) -> None:
        super().setUp()
        self.waits: list[float] = []
        self.ports = dataclasses.replace(self.ports, pause=self.waits.append)
        self.made()

    def calls_of_a_life(self) -> list[Any]:
        """What a resize, its passes and a health poll ask of the default management cluster."""
        self.kube.calls.clear()
        self.resize(3)
        self.capi_converges()
        self.status_task(2)
        self.health_task()
        self.resize(1)
        self.capi_converges()
        self.status_task(2)
        self.health_task()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        return list(self.kube.calls)

    def test_the_other_is_asked_the_same_and_waits_no_more(self) -> None:
        alone, waits = self.calls_of_a_life(), len(self.waits)
        self.other_cluster()
        self.other_kube.unreachable = True
        self.assertEqual(len(alone), len(self.calls_of_a_life()))
        self.assertEqual(waits, len(self.waits) - waits)
        cluster = objects.Cluster.get_by_name(self.context, "there")
        self.assertEqual("UNKNOWN", cluster.health_status)
        self.assertIn("management", cluster.health_status_reason)

    def test_and_no_request_is_made_about_its_clusters_there(self) -> None:
        self.other_cluster()
        self.other_kube.unreachable = True
        self.other_kube.calls.clear()
        self.calls_of_a_life()
        self.assertNotEqual([], self.other_kube.calls)
        self.assertEqual([], [call for call in self.kube.calls if SECOND in call[3]])

    def other_cluster(self) -> None:
        """A cluster that is there, by its row."""
        uuid = "99999999-8888-4777-8666-777777777777"
        self.open_lease_there(SECOND, uuid)
        objects.Cluster(
            self.context,
            uuid=uuid,
            name="there",
            project_id="p1",
            user_id="u1",
            cluster_template_id=self.template.uuid,
            stack_id=f"{SECOND}@{OTHER}",
            status="CREATE_COMPLETE",
            labels={},
            create_timeout=60,
        ).create()
        objects.NodeGroup(
            self.context,
            name="default-master",
            cluster_id=uuid,
            project_id="p1",
            image_id="ubuntu-kube",
            flavor_id="small",
            node_count=1,
            role="master",
            is_default=True,
            min_node_count=0,
        ).create()


class TestWatches(TwoManagementClusters):
    def watching(self, kube: Any, started: list[str]) -> Informers:
        return Informers(
            kube,
            staleness=45,
            covers=lambda namespace: True,
            kinds=(names.CLUSTER,),
            spawn=lambda name, run: started.append(name),
        )

    def test_each_is_watched_when_its_first_cluster_is_visited(self) -> None:
        """So no pass waits for the first lists of another management cluster."""
        started: dict[str, list[str]] = {"default": [], OTHER: []}
        for name, one in list(self.peers.items()):
            watching = self.watching(one.kube, started[name])
            self.peers[name] = dataclasses.replace(one, informers=watching)
        self.ports = self.peers["default"]
        polls = len(failed_clusters.polls(failed_clusters.magnum_release()))
        watch_trigger.start(self.peers[OTHER], CONF)
        self.assertEqual([], started["default"])
        self.assertEqual(1 + 3 + polls, len(started[OTHER]))
        watch_trigger.start(self.peers["default"], CONF)
        # Failed clusters of all management clusters are polled once.
        self.assertEqual(1 + 3, len(started["default"]))
        self.assertIsNot(
            watch_trigger.start(self.peers["default"], CONF),
            watch_trigger.start(self.peers[OTHER], CONF),
        )

    def test_a_watch_event_is_about_the_clusters_there(self) -> None:
        with self.at_other():
            self.create(labels={"availability_zone": "z2"})
            self.capi_converges()
        watch_trigger.sync(self.other, CONF, RELEASE)
        for _ in range(2):
            watch_trigger.confirm("default", RELEASE)
            self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)
        self.assertFalse(watch_trigger.sync(self.ports, CONF, RELEASE))
        self.assertEqual([], self.kube.calls)
        watch_trigger.confirm(OTHER, RELEASE)
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_threads_of_one_do_not_wait_for_the_other(self) -> None:
        """A thread that hangs in one management cluster leaves the other's threads free."""
        entered, leave = threading.Event(), threading.Event()

        def hang(verb: str, kind: names.Kind, name: str) -> None:
            entered.set()
            leave.wait(30)
            raise errors.ManagementUnreachable("away", "away")

        self.made()
        self.open_lease_there(SECOND, "u")
        self.other_kube.before = hang
        thread = threading.Thread(target=self.hang_there)
        thread.start()
        self.addCleanup(thread.join, 30)
        self.addCleanup(leave.set)
        self.assertTrue(entered.wait(30))
        self.resize(2)
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertTrue(thread.is_alive())

    def hang_there(self) -> None:
        try:
            self.other.leases.read(NAMESPACE, SECOND)
        except errors.DriverError as error:
            del error
