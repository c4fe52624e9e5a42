# SPDX-License-Identifier: Apache-2.0
"""Nodegroups that come, or come again, while upgrades owe something to those that are there."""

from __future__ import annotations

import pathlib
from typing import Any

import fixtures

from magnum.drivers.k8s_capi_helm.values.tree import merge
from magnum.tests.unit.drivers.k8s_capi_helm.test_upgrade_cluster import NEW, OLD, PINS, UpgradeCase

BIG = {"machineRootVolume": {"diskSize": 50}}


class NewcomerCase(UpgradeCase):
    def machines(self, name: str) -> dict[str, Any]:
        """A nodegroup as the chart sees it."""
        (entry,) = (one for one in self.values["nodeGroups"] if one["name"] == name)
        whole: dict[str, Any] = merge.merge(self.values["nodeGroupDefaults"], entry)
        return whole

    def finished(self) -> None:
        """Let everything come to its end."""
        for _ in range(2):
            self.capi_converges()
            self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def made_with(self, **labels: str) -> None:
        """A cluster that has the labels of its template."""
        self.template.labels = labels
        self.template.save()
        self.made(labels=labels)

    def add_late(self, name: str = "late", **fields: Any) -> None:
        self.add_group(name, image_id="ubuntu-kube-1.35", **fields)


class TestLabelsThatWentAway(NewcomerCase):
    def setUp(self) -> None:
        super().setUp()
        self.made_with(boot_volume_size="50")

    def test_while_the_upgrade_is_on_its_way(self) -> None:
        self.assertEqual("", self.upgrade(self.next))
        before = self.machines("default-worker")
        self.add_late()
        self.assertNotIn("machineRootVolume", self.machines("late"))
        self.assertEqual(before, self.machines("default-worker"))
        self.finished()
        self.assertNotIn("machineRootVolume", self.machines("late"))
        self.assertNotIn("machineRootVolume", self.values["nodeGroupDefaults"])

    def test_while_the_others_are_left_out(self) -> None:
        self.assertEqual("", self.upgrade(self.next, "default-master"))
        self.finished()
        self.add_late()
        self.assertNotIn("machineRootVolume", self.machines("late"))
        self.assertEqual(BIG, {key: self.machines("default-worker")[key] for key in BIG})
        self.assertEqual(PINS, self.pins())


class TestBesideOthers(NewcomerCase):
    def test_one_beside_a_control_plane_that_goes_alone_moves_nobody_else(self) -> None:
        self.made()
        template = self.template_of(
            "ubuntu-kube-1.35", 3, http_proxy="http://proxy.example.org:3128"
        )
        self.assertEqual("", self.upgrade(template, "default-master"))
        self.add_late()
        self.finished()
        self.assertEqual((PINS, {}), (self.pins(), self.pins("late")))
        self.assertIsNone(self.values.get("proxy"), "it would replace the worker's machines")
        self.assertEqual((), self.recorded())
        self.assertEqual("", self.upgrade(template))
        self.finished()
        self.assertEqual({"http": "http://proxy.example.org:3128"}, self.values["proxy"])

    def test_one_that_comes_after_the_conductor_died_is_no_newer_than_the_others(self) -> None:
        self.made()

        def die(_: Any) -> None:
            raise SystemExit

        self.helm.on_apply = die
        self.assertRaises(SystemExit, self.upgrade, self.next)
        self.helm.on_apply = None
        runs = len(self.helm.runs)
        self.add_late()
        for _, _, values in self.helm.runs[runs:]:
            (late,) = (one for one in values["nodeGroups"] if one["name"] == "late")
            self.assertEqual(PINS, {key: late.get(key) for key in PINS})
        self.finished()
        self.assertEqual((NEW, {}), (self.values["kubernetesVersion"], self.pins("late")))


class TestComeAgain(NewcomerCase):
    def test_one_of_the_same_name_is_not_owed_what_the_first_was(self) -> None:
        self.made_with(boot_volume_size="20")
        self.add_group("more")
        self.capi_converges()
        self.status_task(2)
        template = self.template_of("ubuntu-kube-1.35", 3, labels={"boot_volume_size": "50"})
        self.assertEqual("", self.upgrade(template, "default-master"))
        self.finished()
        self.drop_group("more")
        self.capi_converges()
        self.status_task(2)
        self.add_late("more", labels={"boot_volume_size": "20"})
        self.finished()
        self.assertEqual("", self.upgrade(template))
        self.finished()
        self.assertEqual(BIG, {key: self.machines("default-worker")[key] for key in BIG})
        self.assertEqual({"diskSize": 20}, self.machines("more")["machineRootVolume"])


class TestMarksOfAnOverlay(NewcomerCase):
    """What an overlay says of all nodegroups' labels is not what the row of a single one asks."""

    def test_they_come_for_all_and_stay(self) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        text = "nodeGroupDefaults:\n  nodeLabels:\n    example.org/site: a\n"
        (directory / "marked.yaml").write_text(text, encoding="utf-8")
        self.config(group="capi_helm", overlay_directory=str(directory))
        self.made()
        self.cloud.images["own"] = ("image-9", OLD)
        self.add_group("own", image_id="own")
        self.add_group("more", node_labels={"team": "x"})
        self.capi_converges()
        self.status_task(2)
        labels = {"capi_helm_overlay": "marked"}
        self.assertEqual("", self.upgrade(self.template_of("ubuntu-kube-1.35", 3, labels=labels)))
        self.assertNotIn("nodeLabels", self.values["nodeGroupDefaults"])
        runs = len(self.helm.runs)
        self.finished()
        self.assertEqual(runs + 1, len(self.helm.runs), "the nodegroups follow once")
        wanted = {"example.org/site": "a"}
        self.assertEqual({**wanted, "team": "x"}, self.machines("more")["nodeLabels"])
        self.assertEqual(wanted, self.machines("own")["nodeLabels"])
