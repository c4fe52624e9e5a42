# SPDX-License-Identifier: Apache-2.0
"""``catalogue``: one file, checked as a whole, and applied as often as anybody likes."""

from __future__ import annotations

import hashlib
import pathlib
from typing import Any

import fixtures
import yaml

from magnum import objects
from magnum.common import context as magnum_context
from magnum.drivers.k8s_capi_helm.commands.catalogue.plan import TAG
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    OK,
    Printed,
    UNKNOWN,
    WARNING,
)

_PROJECT = "operators"
_IMAGE = "ubuntu-kube"


class CatalogueCase(CommandCase):
    """An operator with a file."""

    def setUp(self) -> None:
        super().setUp()
        self.cloud.neighbours = ()
        self.config(
            group="cluster_template",
            kubernetes_allowed_network_drivers=["calico", "cilium"],
            kubernetes_default_network_driver="calico",
        )
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = self.directory / "catalogue.yaml"
        self.file: dict[str, Any] = {
            "project": _PROJECT,
            "defaults": {
                "flavor_id": "small",
                "master_flavor_id": "small",
                "external_network_id": "public",
                "master_lb_enabled": True,
                "network_driver": "calico",
            },
            "images": [
                {
                    "name": _IMAGE,
                    "properties": {"os_distro": "ubuntu", "kube_version": builders.VERSION},
                }
            ],
            "templates": [
                {"name": "k8s", "image_id": _IMAGE, "labels": {"boot_volume_size": 30}},
            ],
        }

    @property
    def entry(self) -> dict[str, Any]:
        """The first template of the file."""
        entry: dict[str, Any] = self.file["templates"][0]
        return entry

    @property
    def image(self) -> dict[str, Any]:
        """The first image of the file."""
        image: dict[str, Any] = self.file["images"][0]
        return image

    def call(self, *argv: str, status: int = OK) -> Printed:
        self.path.write_text(yaml.safe_dump(self.file), encoding="utf-8")
        printed = self.command("catalogue", *argv)
        self.assertEqual(status, printed.status, printed.out + printed.error)
        return printed

    def rows(self, verb: str, *argv: str, status: int = OK) -> list[tuple[str, ...]]:
        printed = self.call(verb, "-f", "json", str(self.path), *argv, status=status)
        return [(row["Kind"], row["Name"], row["Action"]) for row in printed.rows()]

    def apply(self, *argv: str) -> list[tuple[str, ...]]:
        """Apply it: what was announced is done, and then nothing is left to do."""
        announced = self.rows("diff", *argv, status=WARNING)
        done = self.rows("apply", *argv)
        self.assertEqual(announced, done)
        self.assertEqual([], self.rows("diff", *argv))
        return done

    def templates(self) -> dict[str, Any]:
        """The templates of the operator, by name."""
        context = magnum_context.make_admin_context(all_tenants=True)
        found = objects.ClusterTemplate.list(context)
        return {one.name: one for one in found if TAG in (one.tags or "")}

    def use(self, name: str) -> None:
        """A tenant's cluster of a template."""
        self.template = self.templates()[name]
        self.made()


class TestCatalogue(CatalogueCase):
    def test_a_template_is_created_once(self) -> None:
        self.assertEqual([("template", "k8s", "create")], self.apply())
        template = self.templates()["k8s"]
        self.assertEqual({"boot_volume_size": "30"}, template.labels)
        self.assertEqual(
            (names.DRIVER, "kubernetes", "ubuntu", "calico", True, False, TAG),
            (
                template.driver,
                template.coe,
                template.cluster_distro,
                template.network_driver,
                template.public,
                template.hidden,
                template.tags,
            ),
        )
        self.assertEqual([], self.rows("apply"))

    def test_a_template_that_nobody_uses_is_changed(self) -> None:
        self.apply()
        before = self.templates()["k8s"].uuid
        self.entry.update(master_lb_enabled=False, labels={"boot_volume_size": 40}, hidden=True)
        self.assertEqual([("template", "k8s", "update")], self.apply())
        template = self.templates()["k8s"]
        self.assertEqual((before, {"boot_volume_size": "40"}), (template.uuid, template.labels))
        self.assertEqual((False, True), (template.master_lb_enabled, template.hidden))

    def test_one_in_use_is_replaced_and_hidden(self) -> None:
        self.apply()
        self.use("k8s")
        self.entry["labels"] = {"boot_volume_size": 40}
        expected = [("template", "k8s-r2", "create"), ("template", "k8s", "hide")]
        self.assertEqual(expected, self.apply())
        found = self.templates()
        self.assertEqual((True, False), (found["k8s"].hidden, found["k8s-r2"].hidden))
        self.assertEqual({"boot_volume_size": "30"}, found["k8s"].labels)
        # And back: the first one is as the file says.
        self.entry["labels"] = {"boot_volume_size": 30}
        expected = [("template", "k8s", "update"), ("template", "k8s-r2", "hide")]
        self.assertEqual(expected, self.apply())
        self.entry["labels"] = {"boot_volume_size": 50}
        expected = [("template", "k8s-r2", "update"), ("template", "k8s", "hide")]
        self.assertEqual(expected, self.apply())

    def test_flags_of_one_in_use_are_changed(self) -> None:
        self.file["project"] = "p1"
        self.entry["public"] = False
        self.apply()
        self.use("k8s")
        self.entry.update(public=True, hidden=True)
        self.assertEqual([("template", "k8s", "update")], self.apply())
        # Magnum does not take a public one back.
        self.entry.update(public=False, hidden=False)
        expected = [("template", "k8s-r2", "create")]
        self.assertEqual(expected, self.apply())

    def test_what_the_file_leaves_out_is_hidden(self) -> None:
        other = {"name": "other", "image_id": _IMAGE}
        self.file["templates"].append(other)
        self.apply()
        self.file["templates"].remove(other)
        self.assertEqual([("template", "other", "hide")], self.apply())
        self.assertEqual([("template", "other", "delete")], self.apply("--prune"))
        self.assertEqual(["k8s"], list(self.templates()))

    def test_one_in_use_is_not_pruned(self) -> None:
        self.apply()
        self.use("k8s")
        self.file["templates"] = []
        self.assertEqual([("template", "k8s", "hide")], self.apply("--prune"))
        self.assertEqual(["k8s"], list(self.templates()))

    def test_templates_of_others_stay(self) -> None:
        self._template(uuid="31111111-2222-4333-8444-555555555555", project_id=_PROJECT)
        self.file["templates"] = []
        self.assertEqual([], self.rows("diff", "--prune"))

    def test_a_template_of_before_is_taken(self) -> None:
        self.apply()
        template = self.templates()["k8s"]
        template.tags = "gold"
        template.save()
        self.template = template
        self.made()
        self.assertEqual([("template", "k8s", "update")], self.apply())
        self.assertEqual(f"gold,{TAG}", self.templates()["k8s"].tags)

    def test_what_is_shown_changes_nothing(self) -> None:
        self.entry.update(dns_nameserver="192.0.2.1", docker_volume_size=20, server_type="bm")
        self.apply()
        shown = yaml.safe_load(self.call("show").out)
        self.assertEqual((_PROJECT, ["k8s"]), (shown["project"], _names(shown["templates"])))
        self.assertEqual([_IMAGE], _names(shown["images"]))
        self.file = shown
        self.assertEqual([], self.rows("diff"))


class TestImagesOfCatalogue(CatalogueCase):
    def data(self, text: bytes = b"a disk") -> str:
        """Data of a new image; returns their hash."""
        (self.directory / "disk.img").write_bytes(text)
        self.image.update(name="new", file="disk.img", disk_format="raw")
        self.entry["image_id"] = "new"
        return hashlib.sha512(text).hexdigest()

    def test_properties_are_changed(self) -> None:
        self.image["properties"]["kube_version"] = "v1.35.1"
        self.image["properties"]["hw_architecture"] = "x86_64"
        self.assertEqual([("image", _IMAGE, "update"), ("template", "k8s", "create")], self.apply())
        self.assertEqual("v1.35.1", self.cloud.images[_IMAGE][1])

    def test_an_image_is_uploaded(self) -> None:
        digest = self.data()
        self.image["sha512"] = digest
        self.assertEqual([("image", "new", "create"), ("template", "k8s", "create")], self.apply())
        created = self.cloud.image_fields["new"]
        fields = ("owner", "disk_format", "container_format", "visibility", "kube_version")
        self.assertEqual(
            (_PROJECT, "raw", "bare", "public", builders.VERSION),
            tuple(created[field] for field in fields),
        )
        self.assertEqual(digest, created["os_hash_value"])

    def test_refused_images(self) -> None:
        for change, words in (
            ({"name": "missing"}, "Image 'missing': The image does not exist"),
            (
                {"properties": {"os_distro": "ubuntu", "kube_version": "1.35"}},
                "Property 'kube_version' of the image is not a full Kubernetes version",
            ),
            (
                {"properties": {"os_distro": "debian", "kube_version": "v1.35.1"}},
                "unsupported os_distro. Image 'ubuntu-kube' has 'debian'",
            ),
            ({"visibility": "private"}, "has the visibility 'private', and the template is public"),
            ({"name": "missing", "file": "nothing"}, "The file of the image cannot be read"),
        ):
            with self.subTest(words):
                before = dict(self.image)
                self.image.update(change)
                if self.image["name"] != before["name"]:
                    self.entry["image_id"] = self.image["name"]
                printed = self.call("apply", str(self.path), status=UNKNOWN)
                self.assertIn(words, printed.error)
                self.image.clear()
                self.image.update(before)
                self.entry["image_id"] = _IMAGE
        self.assertEqual({}, self.templates())

    def test_other_data(self) -> None:
        self.data()
        self.image["sha512"] = "0" * 128
        printed = self.call("diff", str(self.path), status=UNKNOWN)
        self.assertIn("has another sha512 than the catalogue says", printed.error)
        del self.image["sha512"]
        self.apply()
        self.image["sha512"] = "0" * 128
        printed = self.call("diff", str(self.path), status=UNKNOWN)
        self.assertIn("Glance cannot change them", printed.error)


class TestRefusedCatalogue(CatalogueCase):
    def refused(self) -> str:
        printed = self.call("apply", str(self.path), status=UNKNOWN)
        self.assertEqual("", printed.out)
        self.assertEqual({}, self.templates())
        return printed.error

    def test_what_the_schema_refuses(self) -> None:
        for change, words in (
            ({"flavour": "small"}, "$.templates[0]: Additional properties are not allowed"),
            ({"labels": {"kube_tag": 1.3}}, "$.templates[0].labels.kube_tag: 1.3 is not of type"),
            ({"public": "yes"}, "$.templates[0].public: 'yes' is not of type"),
            ({"name": "k8s-r2"}, "'k8s-r2' ends like a revision"),
        ):
            with self.subTest(words):
                before = dict(self.entry)
                self.entry.update(change)
                self.assertIn(words, self.refused())
                self.entry.clear()
                self.entry.update(before)
        self.file["templates"].append(dict(self.entry))
        self.assertIn("$.templates[1].name: there are two of 'k8s'", self.refused())

    def test_what_magnum_refuses(self) -> None:
        for change, words in (
            ({"network_driver": "flannel"}, "Field 'network_driver' is 'flannel'"),
            ({"apiserver_port": 80}, "apiserver_port"),
            ({"dns_nameserver": "nowhere"}, "dns_nameserver"),
        ):
            with self.subTest(words):
                before = dict(self.entry)
                self.entry.update(change)
                self.assertIn(words, self.refused())
                self.entry.clear()
                self.entry.update(before)

    def test_what_the_driver_refuses(self) -> None:
        for change, words in (
            ({"labels": {"boot_volume_size": "much"}}, "'boot_volume_size' with the value 'much'"),
            ({"labels": {"boot_volume_sise": 1}}, "did you mean 'boot_volume_size'"),
            ({"registry_enabled": True}, "Field 'registry_enabled' of the cluster template"),
            ({"flavor_id": "huge"}, "The flavor is 'huge'"),
            ({"image_id": "nothing"}, "The image is 'nothing'"),
            ({"external_network_id": "nowhere"}, "'nowhere'"),
            ({"labels": {"capi_helm_chart_version": "0.0.9"}}, "0.0.9"),
            ({"labels": {"boot_volume_size": 9, "boot_volume_type": "gold"}}, "'gold'"),
        ):
            with self.subTest(words):
                before = dict(self.entry)
                self.entry.update(change)
                self.assertIn(words, self.refused())
                self.entry.clear()
                self.entry.update(before)

    def test_what_the_providers_policy_refuses(self) -> None:
        policy = self.directory / "policy.yaml"
        rule = {"name": "small-disks", "labels": {"boot_volume_size": {"maximum": 20}}}
        policy.write_text(yaml.safe_dump({"rules": [rule]}), encoding="utf-8")
        self.config(group="capi_helm", policy_file=str(policy))
        self.assertIn("small-disks", self.refused())

    def test_what_is_missing(self) -> None:
        del self.file["defaults"]["flavor_id"], self.file["defaults"]["external_network_id"]
        self.assertIn("Without flavor_id, external_network_id no cluster", self.refused())

    def test_all_problems_are_told(self) -> None:
        self.entry["flavor_id"] = "huge"
        self.image["properties"]["os_distro"] = "debian"
        self.file["templates"].append({"name": "second", "image_id": "nothing"})
        error = self.refused()
        self.assertIn("The catalogue has 2 problems, and nothing is changed.", error)

    def test_a_name_that_another_project_offers(self) -> None:
        self._template(
            uuid="31111111-2222-4333-8444-555555555555", name="k8s", project_id="p2", public=True
        )
        self.assertIn("Another project has a public cluster template of this name", self.refused())

    def test_a_file_that_cannot_be_read(self) -> None:
        printed = self.call("diff", str(self.directory / "nothing.yaml"), status=UNKNOWN)
        self.assertIn("The catalogue cannot be used.", printed.error)


def _names(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["name"] for entry in entries]
