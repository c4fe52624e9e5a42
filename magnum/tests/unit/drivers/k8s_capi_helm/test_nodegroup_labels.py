# SPDX-License-Identifier: Apache-2.0
"""What else a nodegroup has of its own: labels, role and a disk for images and containers."""

from __future__ import annotations

import dataclasses
from typing import Any

from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.cloud import network_id
from magnum.tests.unit.drivers.k8s_capi_helm.test_upgrade_cluster import UpgradeCase

TEAM = "node.cluster.x-k8s.io/team"
#: Labels of a nodegroup, and what of its entry comes of them beside a plain one's.
LABELS = (
    (
        {
            "boot_volume_size": "50",
            "boot_volume_type": "fast",
            "boot_volume_availability_zone": "z",
        },
        {"machineRootVolume": {"diskSize": 50, "volumeType": "fast", "availabilityZone": "z"}},
    ),
    ({"boot_volume_size": "0"}, {"machineRootVolume": {"diskSize": 0}}),
    ({"availability_zone": "zóna 2"}, {"failureDomain": "zóna 2"}),
    (
        {"extra_network_names": "san"},
        {"machineNetworking": {"ports": [{}, {"network": {"id": network_id("san")}}]}},
    ),
    ({"node_annotations": f"{TEAM}=blue"}, {"nodeAnnotations": {TEAM: "blue"}}),
    ({"auto_healing_enabled": "false"}, {"healthCheck": {"enabled": False}}),
    ({"boot_volume_size": "20"}, {}),
    ({"boot_volume_size": "", "unknown": "x"}, {}),
)
CLUSTER = {"boot_volume_size": "20"}


def without_server_group(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry without what every new nodegroup has."""
    return {key: value for key, value in entry.items() if key != "serverGroupId"}


class OwnCase(UpgradeCase):
    def entry(self, name: str = "more") -> dict[str, Any]:
        """A nodegroup's entry in the live values; {} without one."""
        groups = (without_server_group(one) for one in self.values["nodeGroups"])
        return next((one for one in groups if one["name"] == name), {})

    def plain(self, name: str = "more") -> dict[str, Any]:
        """The entry of a nodegroup that has nothing of its own."""
        return {"name": name, "machineFlavor": "small", "machineCount": 1}

    def complete(self) -> None:
        """Everything comes up, the workers after the control plane."""
        for _ in range(2):
            self.capi_converges()
            self.status_task(2)
        self.assertIn("_COMPLETE", self.cluster().status)

    def made_by(self, **chart: str) -> None:
        """The cluster was made with another chart."""
        live = self.helm.releases[NAMESPACE, RELEASE]
        self.helm.releases[NAMESPACE, RELEASE] = dataclasses.replace(live, **chart)

    def refused(self, words: str, **fields: Any) -> None:
        """A nodegroup that fails alone, and nothing else changes."""
        before = self.values
        self.add_group("more", **fields)
        group = self.group("more")
        self.assertEqual("CREATE_FAILED", group.status)
        self.assertIn(words, group.status_reason)
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual(before, self.values)
        group.destroy()


class TestLabels(OwnCase):
    def test_they_stand_in_its_entry_alone(self) -> None:
        self.made(labels=CLUSTER)
        before = self.values
        for number, (texts, more) in enumerate(LABELS):
            name = f"more-{number}"
            self.add_group(name, labels=texts)
            self.assertEqual({**self.plain(name), **more}, self.entry(name))
            self.complete()
        self.assertEqual(before["nodeGroups"], self.values["nodeGroups"][:1])
        self.assertEqual(
            {**before, "nodeGroups": []}, {**self.values, "nodeGroups": []}, "nothing else"
        )

    def test_copies_of_the_clusters_say_nothing(self) -> None:
        labels = {**CLUSTER, "availability_zone": "az-1", "extra_network_name": "san"}
        self.made(labels=labels)
        self.add_group("more", labels=labels)
        self.assertEqual(self.plain(), self.entry())

    def test_what_a_nodegroup_cannot_have(self) -> None:
        self.made(labels=CLUSTER)
        self.refused("applies to whole clusters", labels={"monitoring_enabled": "true"})
        self.refused(
            "'boot_volume_size' has an invalid value. The value is 'big'",
            labels={"boot_volume_size": "big"},
        )
        self.refused("no docker_volume_size", labels={"docker_volume_type": "fast"})
        self.refused("'example.org/team'", labels={"node_annotations": "example.org/team=blue"})

    def test_annotations_that_the_operator_allows(self) -> None:
        self.made()
        live = self.helm.releases[NAMESPACE, RELEASE]
        live.values["clusterApi"] = {"additionalSyncMachineAnnotations": ["^example[.]org/"]}
        self.add_group("more", labels={"node_annotations": "example.org/team=blue"})
        self.assertEqual({"example.org/team": "blue"}, self.entry()["nodeAnnotations"])

    def test_the_clusters_are_those_of_the_first_workers(self) -> None:
        self.made(labels={"node_annotations": f"{TEAM}=blue", "auto_healing_enabled": "false"})
        self.assertEqual({TEAM: "blue"}, self.entry("default-worker")["nodeAnnotations"])
        self.assertNotIn("healthCheck", self.entry("default-worker"))
        self.assertIs(False, self.values["nodeGroupDefaults"]["healthCheck"]["enabled"])

    def test_a_cluster_with_annotations_that_nobody_would_see(self) -> None:
        self.create(labels={"node_annotations": "example.org/team=blue"})
        self.assertIn("'example.org/team'", self.cluster().status_reason)
        self.assertEqual([], self.left())

    def test_a_foreign_chart_does_what_it_can(self) -> None:
        self.made(labels=CLUSTER)
        self.made_by(chart_family="")
        words = "The chart of this cluster does not support"
        for labels in (
            {"node_annotations": f"{TEAM}=blue"},
            {"auto_healing_enabled": "false"},
            {"boot_volume_size": "0"},
        ):
            self.refused(words, labels=labels)
        self.refused(words, role="gpu")
        self.refused(words, docker_volume_size=5)
        self.add_group("more", labels={"boot_volume_size": "50"})
        self.assertEqual({"diskSize": 50}, self.entry()["machineRootVolume"])

    def test_an_older_chart_of_this_project_too(self) -> None:
        self.made()
        self.made_by(chart_version="1.0.0")
        words = "The chart of this cluster does not support"
        self.refused(words, role="gpu")
        self.refused(words, docker_volume_size=5)
        self.refused(words, node_taints=[{"key": "x", "effect": "NoExecute"}])
        self.made_by(chart_version="1.1.0")
        self.refused(words, docker_volume_size=5)

    def test_a_foreign_chart_and_labels_that_nobody_can_read(self) -> None:
        self.made()
        cluster = self.cluster()
        cluster.labels = {"boot_volume_size": "much"}
        cluster.save()
        self.made_by(chart_family="")
        self.add_group("more")
        self.assertEqual(self.plain(), self.entry())

    def test_texts_that_another_driver_took_hinder_nobody(self) -> None:
        self.made()
        group = self.group()
        group.labels = {"boot_volume_size": "a big one"}
        group.save()
        before = self.entry("default-worker")
        self.resize(2)
        self.assertEqual({**before, "machineCount": 2}, self.entry("default-worker"))


class TestUpgrade(OwnCase):
    """Copies follow the cluster, a nodegroup's own stay."""

    def upgraded(self, old: dict[str, str], new: dict[str, str]) -> None:
        """A cluster with one nodegroup of copies and one of its own, after an upgrade."""
        self.template.labels = old
        self.template.save()
        self.made(labels=dict(old))
        self.add_group("copies", labels=dict(old))
        self.complete()
        self.add_group("own", labels={**old, "boot_volume_size": "50"})
        self.complete()
        self.assertEqual("", self.upgrade(self.template_of("ubuntu-kube-1.35", 3, labels=new)))
        self.complete()

    def test_a_size_that_grows(self) -> None:
        self.upgraded({"boot_volume_size": "20"}, {"boot_volume_size": "30"})
        defaults = self.values["nodeGroupDefaults"]
        self.assertEqual({"diskSize": 30}, defaults["machineRootVolume"])
        self.assertEqual(self.plain("copies"), self.entry("copies"))
        self.assertEqual({"diskSize": 50}, self.entry("own")["machineRootVolume"])
        self.assertEqual({"boot_volume_size": "30"}, self.group("copies").labels)
        self.assertEqual({"boot_volume_size": "50"}, self.group("own").labels)

    def test_a_label_that_comes(self) -> None:
        new = {"boot_volume_size": "30", "node_annotations": f"{TEAM}=blue"}
        self.upgraded({}, new)
        marked = {"nodeAnnotations": {TEAM: "blue"}}
        self.assertEqual({**self.plain("copies"), **marked}, self.entry("copies"))
        self.assertEqual(
            {**self.plain("own"), "machineRootVolume": {"diskSize": 50}, **marked},
            self.entry("own"),
        )
        self.assertEqual(new, self.group("copies").labels)

    def test_a_label_that_goes(self) -> None:
        self.upgraded({"boot_volume_size": "20", "availability_zone": "az-1"}, {})
        self.assertNotIn("machineRootVolume", self.values["nodeGroupDefaults"])
        self.assertEqual(
            {**self.plain("own"), "machineRootVolume": {"diskSize": 50}}, self.entry("own")
        )
        self.assertEqual(({}, {"boot_volume_size": "50"}), self.labels_of("copies", "own"))

    def labels_of(self, *names: str) -> tuple[dict[str, str], ...]:
        return tuple(dict(self.group(name).labels) for name in names)


class TestRole(OwnCase):
    def test_it_is_the_charts(self) -> None:
        self.made()
        self.add_group("more", role="gpu")
        self.assertEqual({**self.plain(), "role": "gpu"}, self.entry())

    def test_what_no_label_can_be(self) -> None:
        self.made()
        for role in ("a/b", "-a", "a b", "x" * 64, "größe"):
            self.refused(f"The role is '{role}'", role=role)
        self.refused("reserved for the control plane", role="control-plane")


class TestDisk(OwnCase):
    """docker_volume_size: a disk for images and containers on every machine."""

    def test_of_a_cluster(self) -> None:
        labels = {"docker_volume_type": "fast"}
        self.made(docker_volume_size=30, labels=labels)
        disk = {"size": 30, "volumeType": "fast"}
        self.assertEqual(disk, self.values["controlPlane"]["containerdBlockDevice"])
        self.assertEqual(disk, self.entry("default-worker")["containerdBlockDevice"])
        self.add_group("more", labels=labels)
        self.assertEqual(disk, self.entry()["containerdBlockDevice"])

    def test_of_a_nodegroup(self) -> None:
        self.made()
        before = self.values
        self.add_group("more", docker_volume_size=40, labels={"docker_volume_type": "fast"})
        disk = {"containerdBlockDevice": {"size": 40, "volumeType": "fast"}}
        self.assertEqual({**self.plain(), **disk}, self.entry())
        self.assertEqual(before["controlPlane"], self.values["controlPlane"])

    def test_flatcar_has_none(self) -> None:
        self.made()
        self.helm.releases[NAMESPACE, RELEASE].values["osDistro"] = "flatcar"
        self.refused(
            "docker_volume_size 5, which is not supported with Flatcar", docker_volume_size=5
        )

    def test_a_type_that_cinder_lacks(self) -> None:
        self.create(docker_volume_size=30, labels={"docker_volume_type": "slow"})
        self.assertIn(
            "'docker_volume_type' names no volume type that this project can use. "
            "The value is 'slow'",
            self.cluster().status_reason,
        )

    def test_a_running_cluster_gets_none(self) -> None:
        self.made()
        before = self.values
        cluster = self.cluster()
        cluster.docker_volume_size = 30
        cluster.save()
        self.resize(2)
        before["nodeGroups"][0]["machineCount"] = 2
        self.assertEqual(before, self.values)
        self.upgrade(self.next)
        self.complete()
        self.assertNotIn("containerdBlockDevice", self.entry("default-worker"))
        self.assertNotIn("containerdBlockDevice", self.values["controlPlane"])

    def test_its_type_follows_the_template_where_there_is_one(self) -> None:
        self.cloud.volume_types = ("fast", "slow")
        self.template.labels = {"docker_volume_type": "fast"}
        self.template.save()
        self.made(docker_volume_size=30, labels={"docker_volume_type": "fast"})
        del self.helm.releases[NAMESPACE, RELEASE].values["controlPlane"]["containerdBlockDevice"]
        labels = {"docker_volume_type": "slow"}
        self.upgrade(self.template_of("ubuntu-kube-1.35", 3, labels=labels))
        self.complete()
        disk = {"size": 30, "volumeType": "slow"}
        self.assertEqual(disk, self.entry("default-worker")["containerdBlockDevice"])
        self.assertNotIn("containerdBlockDevice", self.values["controlPlane"])


class TestZero(OwnCase):
    def test_a_group_without_nodes_has_all_that_is_its_own(self) -> None:
        self.cloud.images["gpu"] = ("image-gpu", "1.33.1")
        self.made()
        self.add_group("more", 0, image_id="gpu", role="gpu", docker_volume_size=40)
        entry = self.entry()
        self.assertEqual(
            (0, "gpu", "image-gpu"),
            tuple(entry[key] for key in ("machineCount", "role", "machineImageId")),
        )
        self.complete()
        before = self.values
        self.resize(1, "more")
        self.assertEqual({**entry, "machineCount": 1}, self.entry())
        self.complete()
        self.resize(0, "more")
        self.assertEqual(before, self.values)
