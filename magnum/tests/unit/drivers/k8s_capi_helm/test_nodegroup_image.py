# SPDX-License-Identifier: Apache-2.0
"""Nodegroups with an image of their own: how they are made, and that upgrades leave them alone."""

from __future__ import annotations

from typing import Any

from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.test_upgrade_cluster import NEW, OLD, UpgradeCase

OWN = {"kubernetesVersion": "1.33.1", "machineImageId": "image-gpu"}


class ImageCase(UpgradeCase):
    """A cluster that runs, a newer template, and an image that one nodegroup has."""

    def setUp(self) -> None:
        super().setUp()
        self.cloud.images["gpu"] = ("image-gpu", "1.33.1")
        self.made()

    def complete(self) -> None:
        """Everything comes up, and Magnum says so."""
        for _ in range(2):
            self.capi_converges()
            self.status_task(2)
        cluster = self.cluster()
        self.assertEqual(("UPDATE_COMPLETE", None), (cluster.status, cluster.status_reason))
        self.assertEqual((), self.recorded())

    def with_own(self, name: str = "own", **fields: Any) -> None:
        """A nodegroup with an image of its own, which is up."""
        self.add_group(name, **{"image_id": "gpu", **fields})
        self.complete()
        self.assertEqual(OWN, self.pins(name))


class TestNew(ImageCase):
    def test_its_entry_alone_says_so(self) -> None:
        before = self.values
        self.add_group("own", image_id="gpu")
        *others, entry = self.values["nodeGroups"]
        entry.pop("serverGroupId")
        own = {"name": "own", "machineFlavor": "small", "machineCount": 1, **OWN}
        self.assertEqual((before["nodeGroups"], own), (others, entry))
        self.assertEqual({**before, "nodeGroups": []}, {**self.values, "nodeGroups": []})

    def test_the_clusters_image_is_none_of_its_own(self) -> None:
        self.add_group("plain")
        self.assertEqual({}, self.pins("plain"))

    def test_nor_is_it_in_other_words(self) -> None:
        """Nova and Terraform know images by their ids, and the template by its name."""
        self.cloud.images["image-1"] = self.cloud.images["ubuntu-kube"]
        self.add_group("plain", image_id="image-1")
        self.assertEqual({}, self.pins("plain"))
        self.complete()
        self.assertEqual("image-1", self.group("plain").image_id)
        before = self.values
        del self.helm.releases[NAMESPACE, RELEASE]
        self.resize(1)
        self.complete()
        self.assertEqual(before, self.values)
        self.assertEqual("", self.upgrade(self.next))
        self.assertEqual(OLD, self.pins("plain")["kubernetesVersion"])
        self.complete()
        self.assertEqual({}, self.pins("plain"))
        self.assertEqual("ubuntu-kube-1.35", self.group("plain").image_id)

    def test_the_clusters_image_may_leave_its_version_to_a_label(self) -> None:
        self.cloud.images["image-1"] = ("image-1", "")
        self.add_group("plain", image_id="image-1")
        self.assertEqual({}, self.pins("plain"))

    def test_what_does_not_go_with_the_cluster_fails_alone(self) -> None:
        before = self.values
        for image, version, words in (
            ("new", NEW, "newer Kubernetes version than the control plane"),
            ("old", "1.30.9", "more than 3 minor releases before"),
            ("strange", "", "no property 'kube_version'"),
            ("odd", "latest", "expected one like v1.36.3"),
        ):
            self.cloud.images[image] = ("image-3", version)
            self.add_group(image, image_id=image)
            group = self.group(image)
            self.assertEqual("CREATE_FAILED", group.status, image)
            self.assertIn(words, group.status_reason)
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual(before, self.values)

    def test_an_image_that_is_not_there(self) -> None:
        self.add_group("own", image_id="nowhere")
        self.assertEqual("CREATE_FAILED", self.group("own").status)
        self.assertIn("The image is 'nowhere'", self.group("own").status_reason)

    def test_an_image_of_another_distribution(self) -> None:
        self.cloud.distros["gpu"] = "flatcar"
        self.add_group("own", image_id="gpu")
        self.assertIn("has 'flatcar'", self.group("own").status_reason)

    def test_one_release_behind_the_limit_is_fine(self) -> None:
        self.cloud.images["gpu"] = ("image-gpu", "1.31.0")
        self.add_group("own", image_id="gpu")
        self.assertEqual("1.31.0", self.pins("own")["kubernetesVersion"])

    def test_a_later_image_of_that_name_moves_nothing(self) -> None:
        self.with_own()
        before = self.values
        self.cloud.images["gpu"] = ("image-gpu-2", "1.33.9")
        self.resize(1, "own")
        self.assertEqual(before, self.values)

    def test_a_release_that_is_gone_comes_back_with_it(self) -> None:
        self.with_own()
        before = self.values
        del self.helm.releases[NAMESPACE, RELEASE]
        self.resize(1)
        self.status_task()
        self.assertEqual(before, self.values)


class TestUpgrade(ImageCase):
    def test_a_cluster_leaves_it_as_it_is(self) -> None:
        self.with_own(labels={"boot_volume_size": "33"})
        (entry,) = (one for one in self.values["nodeGroups"] if one["name"] == "own")
        self.assertEqual("", self.upgrade(self.next, batch=2))
        self.assertEqual("CREATE_COMPLETE", self.group("own").status)
        self.complete()
        self.assertEqual({}, self.pins())
        self.assertIn(entry, self.values["nodeGroups"])
        group = self.group("own")
        self.assertEqual(("gpu", {"boot_volume_size": "33"}), (group.image_id, group.labels))

    def test_nobody_asks_for_its_image(self) -> None:
        self.with_own()
        del self.cloud.images["gpu"]
        self.assertEqual("", self.upgrade(self.next))
        self.complete()
        self.assertEqual(OWN, self.pins("own"))

    def test_it_waits_for_nobody(self) -> None:
        self.with_own()
        self.upgrade(self.next)
        self.status_task()
        self.assertNotIn("own", self.cluster().status_reason)

    def test_refused_where_it_would_become_too_old(self) -> None:
        self.cloud.images["older"] = ("image-older", "1.31.9")
        self.add_group("own", image_id="older")
        self.complete()
        before = (self.rows(), self.values)
        said = self.upgrade(self.next)
        self.assertIn("of nodegroup 'own' is too old for this upgrade. It runs v1.31.9", said)
        self.assertIn("Upgrade the nodegroup first", said)
        self.assertEqual(before, (self.rows(), self.values))

    def test_by_its_name_it_follows_the_cluster(self) -> None:
        self.with_own()
        self.assertEqual("", self.upgrade(self.template, "own"))
        self.assertEqual({}, self.pins("own"))
        self.assertEqual("ubuntu-kube", self.group("own").image_id)
        self.complete()
        self.upgrade(self.next)
        self.assertEqual(OLD, self.pins("own")["kubernetesVersion"])
        self.complete()
        self.assertEqual({}, self.pins("own"))

    def test_another_group_by_name_leaves_it_alone(self) -> None:
        self.with_own()
        self.add_group("more")
        self.complete()
        self.upgrade(self.template, "more")
        self.complete()
        self.assertEqual((OWN, "gpu"), (self.pins("own"), self.group("own").image_id))

    def test_the_control_plane_alone(self) -> None:
        self.with_own()
        self.upgrade(self.next, "default-master")
        self.complete()
        self.assertEqual((OWN, "gpu"), (self.pins("own"), self.group("own").image_id))
        self.upgrade(self.next)
        self.complete()
        self.assertEqual(({}, OWN), (self.pins(), self.pins("own")))

    def test_a_template_with_that_very_image(self) -> None:
        self.cloud.images["same"] = ("image-same", OLD)
        self.add_group("own", image_id="same")
        self.complete()
        self.assertEqual("", self.upgrade(self.template_of("same", 3)))
        self.complete()
        self.assertEqual({}, self.pins("own"))


class TestOnItsWay(ImageCase):
    """An upgrade that is interrupted, or meets other requests."""

    def test_a_conductor_that_dies_before_the_rows_say_so(self) -> None:
        self.with_own()

        def die(_: Any) -> None:
            raise SystemExit

        self.helm.on_apply = die
        self.assertRaises(SystemExit, self.upgrade, self.next)
        self.helm.on_apply = None
        self.complete()
        self.assertEqual(({}, OWN), (self.pins(), self.pins("own")))
        self.assertEqual("gpu", self.group("own").image_id)

    def test_a_conductor_that_dies_when_the_workers_follow(self) -> None:
        self.with_own()
        self.upgrade(self.next)
        self.capi_converges()

        def die(_: Any) -> None:
            raise SystemExit

        self.helm.on_apply = die
        self.assertRaises(SystemExit, self.status_task)
        self.helm.on_apply = None
        self.complete()
        self.assertEqual(({}, OWN), (self.pins(), self.pins("own")))

    def test_one_that_is_made_meanwhile(self) -> None:
        self.upgrade(self.next)
        self.add_group("own", image_id="gpu")
        self.complete()
        self.assertEqual(({}, OWN), (self.pins(), self.pins("own")))

    def test_one_with_the_name_of_a_group_that_waited(self) -> None:
        self.add_group("more")
        self.complete()
        self.upgrade(self.next)
        self.drop_group("more")
        self.capi_converges()
        self.status_task(2)
        self.assertNotIn("more", [row.name for row in self.cluster().nodegroups])
        self.add_group("more", image_id="gpu")
        self.complete()
        self.assertEqual(({}, OWN), (self.pins(), self.pins("more")))

    def test_a_row_that_another_driver_left_behind(self) -> None:
        """The release says nothing of the old template's image, so the group follows."""
        group = self.group()
        group.image_id = "of-an-older-template"
        group.save()
        self.assertEqual("", self.upgrade(self.next))
        self.complete()
        self.assertEqual({}, self.pins())
        self.assertEqual("ubuntu-kube-1.35", self.group().image_id)
