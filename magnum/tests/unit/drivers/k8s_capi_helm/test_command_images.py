# SPDX-License-Identifier: Apache-2.0
"""``images`` lists what clusters can be created from, with the faults that users would meet."""

from __future__ import annotations

from typing import Any
import uuid

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    CRITICAL,
    OK,
    UNKNOWN,
    WARNING,
)


def image_id(name: str) -> str:
    """Glance's ids are UUIDs, and are asked for as such."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


class TestImages(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.cloud.neighbours = ()
        self.cloud.images = {}

    def image(self, name: str, version: str = builders.VERSION, **fields: Any) -> None:
        """An image of the operator's."""
        self.cloud.images[name] = (image_id(name), version)
        self.cloud.image_fields[name] = fields

    def offer(self, name: str, image: str, **fields: Any) -> None:
        """A public template of this driver."""
        self._template(
            uuid=str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
            name=name,
            image_id=image,
            **{"driver": names.DRIVER, "public": True, **fields},
        )

    def rows(self, *argv: str, status: int = OK) -> list[dict[str, Any]]:
        printed = self.command("images", "-f", "json", *argv)
        self.assertEqual(status, printed.status, printed.out + printed.error)
        return printed.rows()

    def finding(self, *argv: str, status: int = CRITICAL) -> str:
        """The finding of the only image."""
        [row] = self.rows(*argv, status=status)
        return str(row["Finding"])

    def test_an_image_that_is_well(self) -> None:
        self.image("jammy", architecture="x86_64")
        self.offer("k8s", "jammy")
        self.offer("k8s-large", image_id("jammy"))
        [row] = self.rows()
        self.assertEqual(
            {
                "Image": "jammy",
                "ID": image_id("jammy"),
                "Kubernetes": builders.VERSION,
                "Distro": "ubuntu",
                "Architecture": "x86_64",
                "Visibility": "public",
                "Templates": "k8s, k8s-large",
                "Status": "OK",
                "Finding": "",
            },
            row,
        )

    def test_the_newest_version_is_first(self) -> None:
        for version in ("1.9.1", "1.35.10", "1.35.9"):
            self.image(f"v{version}", f"v{version}")
        rows = self.rows(status=WARNING)
        self.assertEqual(["1.35.10", "1.35.9", "1.9.1"], [row["Kubernetes"] for row in rows])

    def test_what_no_template_has_is_a_warning(self) -> None:
        self.image("jammy")
        self.offer("old", "jammy", hidden=True)
        self.offer("heat", "jammy", driver="k8s_heat")
        self.assertIn("No template that users see", self.finding(status=WARNING))

    def test_images_of_other_things_are_not_listed(self) -> None:
        self.image("cirros", "")
        self.image("former", os_hidden=True)
        self.assertEqual([], self.rows())
        self.image("named", "", magnum_driver=names.DRIVER)
        self.assertIn("no property 'kube_version'", self.finding(status=WARNING))

    def test_faults_of_the_image(self) -> None:
        self.offer("k8s", "jammy")
        for fields, words in (
            ({"os_distro": "fedora"}, "unsupported os_distro. Image 'jammy' has 'fedora'"),
            ({"os_distro": None}, "unsupported os_distro"),
            ({"kube_version": "1.34"}, "'kube_version' of the image is not a full"),
            ({"kube_version": None}, "The image has no property 'kube_version'"),
            ({"status": "queued"}, "The image is not active"),
            ({"magnum_driver": "k8s_heat"}, "'magnum_driver' is 'k8s_heat'"),
            ({"hw_architecture": "amd64"}, "Property 'hw_architecture' of the image is 'amd64'"),
            ({"hw_architecture": "aarch64", "architecture": "x86_64"}, "of the image differ"),
        ):
            with self.subTest(words):
                self.image("jammy", **fields)
                self.assertIn(words, self.finding())

    def test_another_architecture_than_the_hosts(self) -> None:
        self.image("arm", architecture="aarch64")
        self.offer("k8s", "arm")
        self.assertEqual("", self.finding("--architecture", "aarch64", status=OK))
        self.assertIn("the hosts are x86_64", self.finding("--architecture", "x86_64"))

    def test_an_image_that_users_do_not_see(self) -> None:
        self.image("secret", visibility="private")
        self.offer("k8s", "secret")
        rows = self.rows(status=CRITICAL)
        self.assertEqual({"secret"}, {row["Image"] for row in rows})
        [row] = [row for row in rows if row["Status"] == "CRITICAL"]
        self.assertIn("Template 'k8s': The image does not exist or is not visible", row["Finding"])

    def test_a_private_image_of_the_templates_project(self) -> None:
        self.image("own", visibility="private", owner="p1")
        self.offer("k8s", "own", public=False)
        self.assertEqual("", self.finding(status=OK))

    def test_a_name_that_two_images_have(self) -> None:
        self.image("jammy")
        self.offer("k8s", "jammy")
        self.assertEqual("OK", self.rows()[0]["Status"])
        self.image("twin")
        self.cloud.image_fields["twin"] = {"name": "jammy"}
        rows = self.rows(status=CRITICAL)
        texts = [row["Finding"] for row in rows if row["Status"] == "CRITICAL"]
        self.assertEqual(1, len(texts), rows)
        self.assertIn("The name of the image is not unique", texts[0])

    def test_a_template_that_says_another_version(self) -> None:
        self.image("jammy", "v1.35.2")
        self.offer("k8s", "jammy", labels={"kube_tag": "v1.35.1"})
        self.assertIn("kube_tag is 'v1.35.1', and the image has 'v1.35.2'", self.finding())

    def test_a_template_that_says_the_version_of_an_image_without(self) -> None:
        self.image("jammy", "")
        self.offer("k8s", "jammy", labels={"kube_tag": "v1.35.1"})
        self.assertEqual("", self.finding(status=OK))

    def test_a_template_of_another_distribution(self) -> None:
        self.image("container-linux", os_distro="flatcar")
        self.offer("k8s", "container-linux")
        self.assertIn("created from an image of another distribution", self.finding())

    def test_one_version(self) -> None:
        self.image("a", "v1.35.2")
        self.image("b", "v1.3.5")
        self.offer("k8s", "a")
        [row] = self.rows("--kubernetes", "v1.35")
        self.assertEqual("a", row["Image"])
        *_, last = self.rows("--kubernetes", "1.3", status=CRITICAL)
        self.assertIn("No image without a fault gives users Kubernetes 1.3.", last["Finding"])

    def test_a_cloud_that_is_away(self) -> None:
        self.cloud.refusal = errors.CloudUnreachable("Glance does not answer.")
        printed = self.command("images")
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))
        self.assertIn("Glance does not answer", printed.error)
