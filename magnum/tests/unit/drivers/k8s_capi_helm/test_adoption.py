# SPDX-License-Identifier: Apache-2.0
"""Clusters that another driver made: magnum-capi-helm's are taken over, all others left alone."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from magnum import objects
from magnum.common import exception
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.status.deletion import order as deletion_order
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE


class TestMagnumCapiHelm(DriverCase):
    """What magnum-capi-helm leaves: no Lease, other spellings of values, unread labels."""

    def adopted(self, **labels: str) -> None:
        """A cluster as magnum-capi-helm leaves it."""
        self.made()
        cluster = self.cluster()
        cluster.labels = labels
        cluster.save()
        self.kube.remove(names.LEASE, NAMESPACE, names.lease(RELEASE))

    def rename(self, old: str, new: str) -> None:
        """Give a nodegroup another name in Magnum, which the API does not allow."""
        group = self.group(old)
        group.name = new
        group.save()

    def counts(self) -> dict[str, int]:
        groups = self.helm.live(NAMESPACE, RELEASE).values["nodeGroups"]
        return {one["name"]: one["machineCount"] for one in groups}

    def test_a_label_that_cannot_be_read_stops_nothing(self) -> None:
        self.adopted(boot_volume_size="much", auto_scaling_enabled="perhaps", fixed_subnet_cidr="x")
        self.health_task()
        notice = self.cluster().health_status_reason["notice"]
        self.assertIn("'boot_volume_size' has the value 'much'", notice)
        self.resize(3)
        self.add_group("more")
        self.assertEqual("CREATE_IN_PROGRESS", self.group("more").status)
        self.assertEqual({"default-worker": 3, "more": 1}, self.counts())

    def test_labels_that_contradict_each_other_stop_nothing(self) -> None:
        self.adopted(min_node_count="5", max_node_count="2")
        self.resize(3)
        self.assertEqual({"default-worker": 3}, self.counts())

    def test_old_names_and_unknown_labels_make_notices(self) -> None:
        self.adopted(etcd_volume_size="10", etcd_volume_type="fast", heapster="true")
        self.health_task()
        notice = self.cluster().health_status_reason["notice"]
        for word in ("etcd_volume_size", "etcd_blockdevice_size", "heapster"):
            self.assertIn(word, notice)

    def test_a_bad_label_of_a_new_template_is_refused(self) -> None:
        self.adopted(boot_volume_size="much")
        self.cloud.images["newer"] = ("image-2", "1.35.1")
        one = self._template(uuid=_uuid(1), image_id="newer", labels={"etcd_volume_size": "big"})
        self.assertIn("etcd_volume_size", self.upgrade(one))
        other = self._template(uuid=_uuid(2), image_id="newer")
        self.assertEqual("", self.upgrade(other))

    def test_a_group_with_any_name_is_found_again(self) -> None:
        self.made()
        self.add_group("gpu-pool")
        self.capi_converges()
        self.status_task(2)
        self.rename("gpu-pool", "GPU_Pool")
        runs = len(self.helm.runs)
        self.health_task()
        self.resize(2)
        self.assertEqual({"default-worker": 2, "gpu-pool": 1}, self.counts())
        self.resize(4, "GPU_Pool")
        self.assertEqual({"default-worker": 2, "gpu-pool": 4}, self.counts())
        self.assertEqual(runs + 2, len(self.helm.runs))
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.group("GPU_Pool").status)
        self.drop_group("GPU_Pool")
        self.capi_converges()
        self.status_task(2)
        self.assertEqual({"default-worker": 2}, self.counts())
        rows = objects.NodeGroup.list(self.context, self.cluster().uuid)
        self.assertNotIn("GPU_Pool", [row.name for row in rows])

    def test_two_hyphens_in_a_row_were_one(self) -> None:
        self.made()
        self.add_group("gpu-pool")
        self.capi_converges()
        self.status_task(2)
        self.rename("gpu-pool", "gpu--pool")
        runs = len(self.helm.runs)
        self.health_task()
        self.resize(2)
        self.assertEqual({"default-worker": 2, "gpu-pool": 1}, self.counts())
        self.assertEqual(runs + 1, len(self.helm.runs))
        self.add_group("one--more")
        self.assertEqual("CREATE_FAILED", self.group("one--more").status)

    def test_bounds_of_a_row_that_labels_had_won_over_stay_without_effect(self) -> None:
        labels = {"auto_scaling_enabled": "true", "max_node_count": "4"}
        self.made(labels=labels)
        self.kube.remove(names.LEASE, NAMESPACE, names.lease(RELEASE))
        live = self.helm.releases[NAMESPACE, RELEASE]
        live.values["nodeGroups"][0]["autoscale"] = "true"
        row = self.group()
        row.max_node_count = 9
        row.save()
        before = self.helm.live(NAMESPACE, RELEASE).values["nodeGroups"]
        runs = len(self.helm.runs)
        self.health_task()
        self.add_group("more", min_node_count=1, max_node_count=3)
        after = self.helm.live(NAMESPACE, RELEASE).values["nodeGroups"]
        self.assertEqual(before, after[:1])
        self.assertEqual(runs + 1, len(self.helm.runs))

    def test_a_namesake_of_such_a_group_takes_nothing_away(self) -> None:
        self.made()
        self.add_group("gpu-pool", 3)
        self.capi_converges()
        self.status_task(2)
        self.rename("gpu-pool", "GPU_Pool")
        self.add_group("gpu-pool", 1)
        row = self.group("gpu-pool")
        self.assertEqual("CREATE_FAILED", row.status)
        self.assertIn("'GPU_Pool'", row.status_reason)
        self.drop_group("gpu-pool")
        self.status_task(2)
        self.assertEqual({"default-worker": 1, "gpu-pool": 3}, self.counts())
        self.assertEqual(3, self.group("GPU_Pool").node_count)

    def test_a_stack_id_whose_name_was_cut_at_a_hyphen(self) -> None:
        release = "name-that-is-cut-at-a-hyphen--abcdefghijkl"
        self.assertTrue(names.is_release(release), release)
        self.adopted()
        cluster = self.cluster()
        cluster.stack_id = release
        cluster.save()
        live = self.helm.releases.pop((NAMESPACE, RELEASE))
        self.helm.releases[NAMESPACE, release] = dataclasses.replace(live, name=release)
        # magnum-capi-helm made one hyphen of two in the names of the Secrets.
        for secret in self.kube.list(names.SECRET, NAMESPACE):
            text = json.dumps(secret).replace(RELEASE, release)
            odd = json.loads(text)
            odd["metadata"]["name"] = odd["metadata"]["name"].replace("--", "-")
            self.kube.remove(names.SECRET, NAMESPACE, secret["metadata"]["name"])
            self.kube.put(names.SECRET, odd)
        self.capi_deletes()
        self.delete()
        self.status_task(3)
        self.assertEqual([], objects.Cluster.list(self.context))
        self.assertEqual({}, self.cloud.credentials)


class TestOthers(DriverCase):
    """Clusters of magnum-cluster-api, of Heat, of nobody: a sentence, and nothing else."""

    STACKS = ("kube-abcde", "047c6319-7abd-4bd9-a033-8c6af0173cd0")

    def verbs(self, stack_id: str) -> dict[str, Any]:
        cluster = self.cluster()
        cluster.stack_id, cluster.status = stack_id, "CREATE_COMPLETE"
        cluster.save()
        worker = self.group()
        driver, context = self.driver, self.context
        return {
            "delete": lambda: driver.delete_cluster(context, cluster),
            "update": lambda: driver.update_cluster(context, cluster),
            "resize": lambda: driver.resize_cluster(context, cluster, None, 2, None, worker),
            "upgrade": lambda: driver.upgrade_cluster(context, cluster, self.template, 1, worker),
            "nodegroup delete": lambda: driver.delete_nodegroup(context, cluster, worker),
            "rotate": lambda: driver.rotate_credential(context, cluster),
        }

    def test_verbs_are_refused(self) -> None:
        self.made()
        before = (self.left(), self.helm.runs[:])
        for stack_id in self.STACKS:
            for verb, call in self.verbs(stack_id).items():
                with self.subTest(stack_id=stack_id, verb=verb):
                    error = self.assertRaises((errors.NotOwned, exception.NotSupported), call)
                    self.assertIn(stack_id, str(error))
                    self.assertEqual("CREATE_COMPLETE", self.cluster().status)
        self.assertEqual(before, (self.left(), self.helm.runs))

    def test_a_new_or_changed_nodegroup_fails_alone(self) -> None:
        self.made()
        for number, stack_id in enumerate(self.STACKS):
            self.verbs(stack_id)
            self.add_group(f"more-{number}")
            row = self.group(f"more-{number}")
            self.assertEqual("CREATE_FAILED", row.status)
            self.assertIn(stack_id, row.status_reason)

    def test_passes_leave_them_alone(self) -> None:
        self.made()
        for stack_id in self.STACKS:
            for status in ("CREATE", "UPDATE", "DELETE"):
                self.verbs(stack_id)
                cluster, doing = self.cluster(), f"{status}_IN_PROGRESS"
                cluster.status = doing
                cluster.save()
                self.status_task(2)
                with self.subTest(stack_id=stack_id, status=doing):
                    self.assertEqual(doing, self.cluster().status)
                    self.assertIn(stack_id, self.cluster().status_reason)

    def test_a_deletion_fails_and_the_row_stays(self) -> None:
        self.made()
        for stack_id in self.STACKS:
            self.verbs(stack_id)
            self.delete()
            self.status_task(2)
            self.health_task()
            self.assertEqual("DELETE_FAILED", self.cluster().status)
            self.assertIn(stack_id, self.cluster().status_reason)

    def test_their_health_is_not_known(self) -> None:
        self.made()
        for stack_id in self.STACKS:
            self.verbs(stack_id)
            self.health_task()
            cluster = self.cluster()
            self.assertEqual("UNKNOWN", cluster.health_status)
            self.assertIn(stack_id, cluster.health_status_reason["management"])

    def test_one_of_nobody_is_refused(self) -> None:
        self.made()
        cluster = self.cluster()
        cluster.stack_id = "other-abcdefghijkl"
        error = self.assertRaises(
            errors.NotOwned, self.driver.delete_cluster, self.context, cluster
        )
        self.assertEqual(deletion_order.NO_PROOF_SENTENCE, str(error))


def _uuid(number: int) -> str:
    return f"{number:08d}-2222-4333-8444-555555555555"
