# SPDX-License-Identifier: Apache-2.0
"""Upgrades and labels: whose version counts, and what only a template may set."""

from __future__ import annotations

import pathlib
from typing import Any

import fixtures

from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.test_upgrade_cluster import NEW, OLD, UpgradeCase

TAG = f"{names.EFFECTIVE_LABEL}/kube_tag"


class TestVersion(UpgradeCase):
    """``kube_tag``: the new template and its image decide, whatever the cluster was made with."""

    def running(self) -> tuple[str, str | None, Any]:
        """What the control plane is to run, and where the label stands."""
        values = self.values
        told = (values.get("clusterAnnotations") or {}).get(TAG)
        return values["kubernetesVersion"], told, self.cluster().labels.get("kube_tag")

    def test_a_tenants_label_does_not_stop_an_upgrade(self) -> None:
        self.made(labels={"kube_tag": f"v{OLD}"})
        self.assertEqual((OLD, f"v{OLD}", f"v{OLD}"), self.running())
        self.assertEqual("", self.upgrade(self.next))
        self.assertEqual((NEW, None, None), self.running())
        self.assertNotIn("kube_tag", self.group().labels)

    def test_nor_with_a_template_that_has_one(self) -> None:
        self.made(labels={"kube_tag": f"v{OLD}"})
        template = self.template_of("ubuntu-kube-1.35", 3, labels={"kube_tag": f"v{NEW}"})
        self.assertEqual("", self.upgrade(template))
        self.assertEqual((NEW, f"v{NEW}", f"v{NEW}"), self.running())
        self.assertEqual(f"v{NEW}", self.group().labels["kube_tag"])

    def test_it_stays_until_an_upgrade_is_accepted(self) -> None:
        self.made(labels={"kube_tag": f"v{OLD}"})
        template = self.template_of("ubuntu-kube-1.35", 3, labels={"kube_tag": "v1.35.1"})
        self.assertIn("The label is v1.35.1", self.upgrade(template))
        self.assertEqual((OLD, f"v{OLD}", f"v{OLD}"), self.running())

    def test_one_nodegroup(self) -> None:
        self.made(labels={"kube_tag": f"v{OLD}"})
        self.add_group("more")
        self.capi_converges()
        self.status_task(2)
        self.cloud.images["ubuntu-kube"] = ("image-1a", "1.33.9")
        self.assertIn("cannot be downgraded", self.upgrade(self.template, "more"))
        self.cloud.images["ubuntu-kube"] = ("image-1b", OLD)
        self.assertEqual("", self.upgrade(self.template, "more"))
        self.assertEqual("image-1b", self.pins("more")["machineImageId"])

    def test_an_image_that_leaves_it_to_the_template(self) -> None:
        self.made()
        self.cloud.images["plain"] = ("image-9", "")
        template = self.template_of("plain", 3, labels={"kube_tag": f"v{NEW}"})
        self.assertEqual("", self.upgrade(template))
        self.assertEqual((NEW, f"v{NEW}", f"v{NEW}"), self.running())
        self.assertEqual("image-9", self.values["machineImageId"])

    def test_a_tenants_label_says_nothing_of_the_next_image(self) -> None:
        self.made(labels={"kube_tag": f"v{OLD}"})
        self.cloud.images["plain"] = ("image-9", "")
        self.assertIn("in the new template", self.upgrade(self.template_of("plain", 3)))
        self.assertEqual((OLD, f"v{OLD}", f"v{OLD}"), self.running())


class TestGroupThatIsNotThere(UpgradeCase):
    def test_one_that_was_never_made(self) -> None:
        self.made()
        self.cloud.gone = ("none",)
        self.add_group("bad", flavor_id="none")
        self.status_task(2)
        self.assertEqual("CREATE_FAILED", self.group("bad").status)
        before = (self.rows(), self.values)
        self.assertIn("'bad' was never created", self.upgrade(self.template, "bad"))
        self.assertEqual((before, ()), ((self.rows(), self.values), self.recorded()))

    def test_one_that_is_on_its_way_out(self) -> None:
        self.made()
        self.add_group("more")
        self.capi_converges()
        self.status_task(2)
        group = self.group("more")
        group.status = "DELETE_IN_PROGRESS"
        group.save()
        before = (self.rows(), self.values)
        self.assertIn("'more' is being deleted", self.upgrade(self.template, "more"))
        self.assertEqual((before, ()), ((self.rows(), self.values), self.recorded()))


class TestTemplateOnly(UpgradeCase):
    """Labels that only a template may set hold as the template has them."""

    def setUp(self) -> None:
        super().setUp()
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, level in (("hard", 7), ("harder", 9)):
            text = f"apiServer:\n  logLevel: {level}\n"
            (directory / f"{name}.yaml").write_text(text, encoding="utf-8")
        self.config(group="capi_helm", overlay_directory=str(directory))

    def hardened(self, **labels: str) -> None:
        """A cluster that replaced the labels of a template with an overlay."""
        self.template.labels = {"capi_helm_overlay": "hard"}
        self.template.save()
        self.made(labels=labels)

    def level(self) -> Any:
        return self.values["apiServer"].get("logLevel")

    def test_replacing_the_labels_does_not_drop_them(self) -> None:
        self.hardened(auto_healing_enabled="false")
        self.assertEqual(7, self.level())

    def test_an_upgrade_takes_them_from_the_new_template(self) -> None:
        self.hardened(auto_healing_enabled="false")
        new = {"capi_helm_overlay": "harder"}
        self.assertEqual("", self.upgrade(self.template_of("ubuntu-kube-1.35", 3, labels=new)))
        self.assertEqual(9, self.level())
        expected = {"auto_healing_enabled": "false", "capi_helm_overlay": "harder"}
        self.assertEqual(expected, self.cluster().labels)

    def test_one_of_another_value_is_refused(self) -> None:
        self.template.labels = {"capi_helm_overlay": "hard"}
        self.template.save()
        cluster = self.create(labels={"capi_helm_overlay": "harder"})
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn("only a template can set this label", cluster.status_reason)

    def test_a_templates_own_of_wrong_form_is_refused(self) -> None:
        self.template.labels = {"capi_helm_chart_version": "not a version"}
        self.template.save()
        cluster = self.create(labels={"auto_healing_enabled": "false"})
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn("'capi_helm_chart_version'", cluster.status_reason)

    def test_one_that_a_cluster_was_taken_over_with(self) -> None:
        self.made()
        cluster = self.cluster()
        cluster.labels = {"capi_helm_chart_version": "0.1.0"}
        cluster.save()
        self.health_task()
        notice = self.cluster().health_status_reason["notice"]
        self.assertIn("Label 'capi_helm_chart_version' has no effect", notice)
        self.assertEqual("", self.upgrade(self.next))
        self.assertEqual({}, self.cluster().labels)
        self.assertEqual(NEW, self.values["kubernetesVersion"])


class TestOffersThatAreGone(UpgradeCase):
    """What the cloud has no longer stops only the upgrade of what asks for it."""

    VOLUME = ("boot_volume_size", "boot_volume_type")

    def setUp(self) -> None:
        super().setUp()
        self.cloud.volume_types = ("fast", "odd")
        self.cloud.images["gpu"] = ("image-gpu", "1.33.1")

    def with_odd(self, **fields: Any) -> None:
        """A cluster with a nodegroup that has a volume type of its own, which goes."""
        self.made(labels=dict(zip(self.VOLUME, ("20", "fast"), strict=True)))
        self.add_group("more")
        odd = dict(zip(self.VOLUME, ("20", "odd"), strict=True))
        self.add_group("gpu", labels=odd, **fields)
        self.capi_converges()
        self.status_task(2)
        self.cloud.volume_types = ("fast",)

    def test_of_a_group_that_is_left_alone(self) -> None:
        self.with_odd(image_id="gpu")
        self.assertEqual("", self.upgrade(self.template, "more"))
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("", self.upgrade(self.next))

    def test_of_a_group_that_follows(self) -> None:
        self.with_odd()
        before = (self.rows(), self.values)
        for name in ("default-worker", "gpu"):
            said = self.upgrade(self.next if name != "gpu" else self.template, name)
            self.assertIn("Label 'boot_volume_type' of nodegroup 'gpu' names no volume type", said)
            self.assertIn("delete the nodegroup and create another one", said)
        self.assertEqual((before, ()), ((self.rows(), self.values), self.recorded()))
        self.assertEqual("", self.upgrade(self.next, "default-master"))

    def test_of_the_cluster(self) -> None:
        self.with_odd()
        self.cloud.volume_types = ("slow", "odd")
        said = self.upgrade(self.next)
        self.assertIn("Label 'boot_volume_type' names no volume type", said)
        self.assertIn("ask the cloud's operator to offer this value again", said)
        self.assertNotIn("nodegroup", said)
