# SPDX-License-Identifier: Apache-2.0
"""``complete-move``: what ``clusterctl move`` has left behind is here afterwards, and not there."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
from typing import Any

import yaml

from magnum.drivers.k8s_capi_helm import errors, lease
from magnum.drivers.k8s_capi_helm.commands.move.complete_move import is_moved
from magnum.drivers.k8s_capi_helm.lease import codec
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.drivers.k8s_capi_helm.reconcile.ownership import moved_release, ownership
from magnum.drivers.k8s_capi_helm.reconcile.ownership.moved_release import Move
from magnum.tests.unit.drivers.k8s_capi_helm import fakes
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import CommandCase, UNKNOWN
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import CONF, DriverCase, NAMESPACE, RELEASE

LEASE = names.LEASE, NAMESPACE, names.lease(RELEASE)
ADDON, AUTOSCALER, CONFIG = f"{RELEASE}-cni", f"{RELEASE}-autoscaler", f"{RELEASE}-cni-config"
OBJECTS = (
    ("cluster.x-k8s.io/v1beta2", "MachineDeployment", f"{RELEASE}-gone"),
    ("addons.stackhpc.com/v1alpha1", "HelmRelease", ADDON),
    ("apps/v1", "Deployment", AUTOSCALER),
    ("v1", "Secret", CONFIG),
)


#: What clusterctl moves: kinds of Cluster API, and of these two what is labelled or named for it.
LABELLED = (names.SECRET, names.CONFIG_MAP)
MOVED = (
    *(one for one in vars(names).values() if isinstance(one, names.Kind) and "x-k8s" in one.group),
    *LABELLED,
)


def is_labelled(obj: Json) -> bool:
    """Whether clusterctl moves a Secret or ConfigMap."""
    name, labels = obj["metadata"]["name"], obj["metadata"].get("labels") or {}
    of_cluster = {names.ca_secret(RELEASE, purpose) for purpose in names.CA_PURPOSES}
    return name in of_cluster or names.LABEL_MOVE in labels


def manifest(version: str, kind: str, name: str) -> Json:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "labels": {"a": "b"}},
        "spec": {"x": 1},
    }


def revision(number: int) -> Json:
    """A Secret of Helm with one revision of the release."""
    text = yaml.safe_dump_all([manifest(*one) for one in OBJECTS])
    packed = base64.b64encode(gzip.compress(json.dumps({"manifest": text}).encode()))
    labels = {"owner": "helm", "name": RELEASE, "version": str(number), "status": "deployed"}
    return {
        "metadata": {
            "name": f"sh.helm.release.v1.{RELEASE}.v{number}",
            "namespace": NAMESPACE,
            "labels": labels,
        },
        "type": "helm.sh/release.v1",
        "data": {"release": base64.b64encode(packed).decode()},
    }


class MoveCase(DriverCase):
    """A cluster whose Cluster and labelled Secrets clusterctl has moved from *former* to *kube*."""

    def setUp(self) -> None:
        super().setUp()
        self.made()
        self.former, self.kube = self.kube, fakes.FakeKube()
        self.kube.put(names.NAMESPACE, {"metadata": {"name": NAMESPACE}})
        for kind in MOVED:
            for obj in self.former.list(kind, NAMESPACE):
                if kind in LABELLED and not is_labelled(obj):
                    continue
                self.kube.put(kind, obj)
                self.former.remove(kind, NAMESPACE, obj["metadata"]["name"])
        for obj in self.former.list(names.HELM_RELEASE, NAMESPACE):
            # Garbage collection takes what the Cluster owned and clusterctl did not move.
            self.former.remove(names.HELM_RELEASE, NAMESPACE, obj["metadata"]["name"])
        self.kube.put(names.SECRET, revision(1))
        self.ports = self.clients_of(
            kube=self.kube,
            leases=lease.ReleaseLeases(self.kube, holder="test", lease_duration=60),
            helm=self.helm,
            charts=self.ports.charts,
        )

    def move(self) -> Move:
        owner = ownership.owner(self.cluster(), CONF)
        return Move(self.ports, self.former, owner, "restricted")

    def complete(self) -> dict[str, str]:
        """Complete the move; what was changed last of each object."""
        move = self.move()
        self.assertTrue(is_moved(move))
        return {change.title: change.text for change in moved_release.complete_move(move)}

    def notes(self, kube: Any) -> dict[str, str]:
        """The annotations of the Lease, which has to be there."""
        obj = kube.get(*LEASE)
        assert obj is not None
        return dict(obj["metadata"]["annotations"])


class TestComplete(MoveCase):
    def test_the_record_is_here_and_not_there(self) -> None:
        owed = json.dumps([{"id": "x", "user": "u1", "since": "2026-11-21T11:00:00+00:00"}])
        note = {"metadata": {"annotations": {codec.RETIRED: owed, "of/another": "1"}}}
        self.former.patch(*LEASE, note)
        before = self.notes(self.former)
        self.complete()
        self.assertEqual(before, self.notes(self.kube))
        self.assertIsNone(self.former.get(*LEASE))

    def test_what_a_new_lease_says_already_stays(self) -> None:
        owner = ownership.owner(self.cluster(), CONF)
        self.ports.leases.open(
            NAMESPACE, RELEASE, cluster_uuid=owner.cluster_uuid, project_id=owner.project_id
        )
        self.kube.patch(*LEASE, {"metadata": {"annotations": {codec.WRITTEN: '{"new": 7}'}}})
        before = self.notes(self.former)
        self.complete()
        self.assertEqual({**before, codec.WRITTEN: '{"new": 7}'}, self.notes(self.kube))

    def test_objects_of_the_chart_are_created_as_helm_does(self) -> None:
        self.complete()
        for version, kind, name in OBJECTS[1:]:
            found = self.kube.find(manifest(version, kind, name), NAMESPACE)
            assert found is not None, name
            metadata = found["metadata"]
            self.assertEqual({"a": "b", "app.kubernetes.io/managed-by": "Helm"}, metadata["labels"])
            self.assertEqual(RELEASE, metadata["annotations"]["meta.helm.sh/release-name"])
            self.assertEqual({"x": 1}, found["spec"])

    def test_what_machines_are_made_of_is_never_created(self) -> None:
        self.complete()
        gone = OBJECTS[0][2]
        self.assertIsNone(self.kube.get(names.MACHINE_DEPLOYMENT, NAMESPACE, gone))

    def test_objects_of_the_chart_are_removed_there(self) -> None:
        self.former.put(names.DEPLOYMENT, manifest(*OBJECTS[2]) | place(AUTOSCALER))
        self.former.put(names.SECRET, manifest(*OBJECTS[3]) | place(CONFIG))
        self.complete()
        self.assertIsNone(self.former.get(names.DEPLOYMENT, NAMESPACE, AUTOSCALER))
        self.assertIsNone(self.former.get(names.SECRET, NAMESPACE, CONFIG))

    def test_a_secret_without_a_label_is_copied(self) -> None:
        name = names.credential_secret(RELEASE)
        secret = self.kube.get(names.SECRET, NAMESPACE, name)
        assert secret is not None
        self.kube.remove(names.SECRET, NAMESPACE, name)
        self.former.put(names.SECRET, secret)
        self.complete()
        copied = self.kube.get(names.SECRET, NAMESPACE, name)
        assert copied is not None
        self.assertEqual(secret["data"], copied["data"])
        self.assertIsNone(self.former.get(names.SECRET, NAMESPACE, name))

    def test_the_namespace_gets_its_labels_and_the_role(self) -> None:
        self.complete()
        namespace = self.kube.get(names.NAMESPACE, None, NAMESPACE)
        assert namespace is not None
        labels = namespace["metadata"]["labels"]
        self.assertEqual("p1", labels[names.LABEL_PROJECT])
        self.assertEqual("restricted", labels["pod-security.kubernetes.io/enforce"])
        self.assertEqual("true", namespace["metadata"]["annotations"][names.CREATED_NAMESPACE])
        self.assertTrue(self.kube.list(names.ROLE_BINDING, NAMESPACE))

    def test_the_namespace_goes_there_when_nothing_is_left_in_it(self) -> None:
        self.complete()
        self.assertIsNone(self.former.get(names.NAMESPACE, None, NAMESPACE))

    def test_the_namespace_stays_there_with_what_is_not_the_drivers(self) -> None:
        self.former.put(names.SECRET, {"data": {}, **place("of-somebody-else")})
        title = f"Namespace {NAMESPACE}"
        self.assertIn("not empty, stays", self.complete()[title])
        self.assertIn("not empty, stays", self.complete()[title])

    def test_again_changes_nothing(self) -> None:
        self.complete()
        before = sorted(map(str, self.kube.everything()))
        self.assertEqual({}, self.complete())
        self.assertEqual(before, sorted(map(str, self.kube.everything())))

    def test_a_later_resize_is_carried_out(self) -> None:
        self.complete()
        self.resize(2)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)


class TestRefused(MoveCase):
    def refused(self, kind: type[errors.DriverError], words: str) -> None:
        before = [sorted(map(str, one.everything())) for one in (self.kube, self.former)]
        error = self.assertRaises(kind, self.complete)
        self.assertIn(words, str(error))
        after = [sorted(map(str, one.everything())) for one in (self.kube, self.former)]
        self.assertEqual(before, after)

    def test_a_cluster_on_both(self) -> None:
        cluster = self.kube.get(names.CLUSTER, NAMESPACE, RELEASE)
        assert cluster is not None
        self.former.put(names.CLUSTER, cluster)
        self.refused(errors.InvalidRequest, "on both management clusters")

    def test_a_move_that_has_not_ended(self) -> None:
        self.kube.patch(names.CLUSTER, NAMESPACE, RELEASE, {"spec": {"paused": True}})
        self.refused(errors.InvalidRequest, "is paused")

    def test_a_lease_of_another_cluster(self) -> None:
        other = {"metadata": {"labels": {names.LABEL_UUID: "another"}}}
        self.former.patch(*LEASE, other)
        self.refused(errors.NotOwned, "another cluster")

    def test_one_that_was_not_moved(self) -> None:
        self.kube.remove(names.CLUSTER, NAMESPACE, RELEASE)
        self.assertFalse(is_moved(self.move()))

    def test_a_release_without_a_former_lease_is_completed(self) -> None:
        self.former.remove(*LEASE)
        move = dataclasses.replace(self.move(), level="baseline")
        titles = [change.title for change in moved_release.complete_move(move)]
        self.assertIn(f"Deployment {AUTOSCALER}", titles)
        self.assertIsNone(self.kube.get(*LEASE))


class TestAway(DriverCase):
    """The driver's kubeconfig still names the management cluster that the clusters have left."""

    def leave(self, labelled: bool) -> None:
        """What clusterctl and garbage collection take away, the labelled Secrets or not."""
        self.made()
        self.cloud.openstack.leave("servers", name=f"{RELEASE}-control-plane-bcdfg")
        for kind in (*MOVED, names.HELM_RELEASE):
            for obj in self.kube.list(kind, NAMESPACE):
                if kind not in LABELLED or (labelled and is_labelled(obj)):
                    self.kube.remove(kind, NAMESPACE, obj["metadata"]["name"])
        self.helm.releases.clear()

    def waits(self) -> None:
        self.resize(2)
        for minutes in (0, 4, 4):
            self.after(minutes)
            self.status_task()
            self.health_task()
        cluster = self.cluster()
        self.assertEqual("UPDATE_IN_PROGRESS", cluster.status)
        self.assertIn("waiting: This management cluster had the cluster", cluster.status_reason)
        self.assertEqual("UNKNOWN", cluster.health_status)
        self.assertEqual({}, self.helm.releases)
        self.assertEqual([], self.kube.list(names.CLUSTER, NAMESPACE))

    def test_a_request_waits(self) -> None:
        self.leave(labelled=True)
        self.waits()

    def test_nothing_is_installed_where_the_credential_was_left(self) -> None:
        self.leave(labelled=False)
        self.waits()


class TestCommand(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.made()

    def refused(self, path: str, words: str) -> None:
        printed = self.command("complete-move", "--from-kubeconfig", path)
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))
        self.assertIn(words, printed.error)

    def test_a_file_that_is_not_there(self) -> None:
        self.refused("/nowhere/kubeconfig", "There is no such kubeconfig")

    def test_the_management_cluster_that_is_configured(self) -> None:
        self.refused(str(self.kubeconfig), "the one that the configuration names")

    def test_a_former_one_that_does_not_answer(self) -> None:
        path = self.kubeconfig.with_name("former")
        path.write_text(self.kubeconfig.read_text().replace("6443", "1"))
        before = sorted(map(str, self.kube.everything()))
        self.refused(str(path), "does not answer")
        self.assertEqual(before, sorted(map(str, self.kube.everything())))


def place(name: str) -> Json:
    return {"metadata": {"name": name, "namespace": NAMESPACE}}
