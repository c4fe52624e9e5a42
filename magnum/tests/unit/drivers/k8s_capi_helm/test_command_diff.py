# SPDX-License-Identifier: Apache-2.0
"""``diff`` and ``render``: what is desired is what the driver then gives to Helm."""

from __future__ import annotations

from typing import Any

import yaml

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import OK, UNKNOWN, WARNING
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.rendered_case import (
    DEPLOYMENT,
    OWNERSHIP,
    RenderedCase,
)

NEXT = "1.35.2"


class DiffCase(RenderedCase):
    def setUp(self) -> None:
        super().setUp()
        self.cloud.images["ubuntu-kube-1.35"] = ("image-2", NEXT)
        self.next = self.template_of("ubuntu-kube-1.35", "next")

    def template_of(self, image: str, name: str, number: int = 2, **changes: Any) -> Any:
        uuid = f"{number}1111111-2222-4333-8444-555555555555"
        return self._template(uuid=uuid, name=name, image_id=image, public=True, **changes)

    def diff(self, *argv: str, status: int = OK) -> list[dict[str, Any]]:
        printed = self.command("diff", "-f", "json", "demo", *argv)
        self.assertEqual(status, printed.status, printed.out + printed.error)
        return printed.rows()

    def refused(self, words: str, *argv: str) -> None:
        printed = self.command("diff", *(argv or ("demo",)))
        self.assertEqual(UNKNOWN, printed.status, printed.out)
        self.assertIn(words, printed.error)

    def values(self, *argv: str) -> Json:
        """The values as ``render`` prints them."""
        printed = self.command("render", "--values", "demo", *argv)
        self.assertEqual(OK, printed.status, printed.error)
        [values] = yaml.safe_load_all(printed.out)
        return dict(values)

    @property
    def live_values(self) -> Json:
        return self.helm.live(NAMESPACE, RELEASE).values


class TestNow(DiffCase):
    def test_a_cluster_that_is_well_has_no_difference_and_nothing_is_written(self) -> None:
        before = self.world()
        self.assertEqual([], self.diff())
        self.assertEqual([self.live_values], self.rendered_values)
        self.assertEqual(before, self.world())

    def test_fields_with_their_values_and_the_machines_that_roll(self) -> None:
        self.resize(3)
        self.capi_converges()

        def change(objects: list[Json]) -> None:
            for obj in objects:
                if obj["metadata"]["name"] == DEPLOYMENT:
                    obj["spec"]["template"]["spec"]["version"] = "v1.99.0"
                    obj["spec"]["template"]["spec"]["failureDomain"] = "az2"

        self.renders(change)
        first, second = self.diff(status=WARNING)
        self.assertEqual(f"MachineDeployment {DEPLOYMENT}", first["Object"])
        self.assertEqual("spec.template.spec.version", first["Field"])
        self.assertEqual((f"v{builders.VERSION}", "v1.99.0"), (first["Live"], first["Desired"]))
        self.assertEqual((3, 30), (first["Machines"], first["Minutes"]))
        self.assertEqual(("", "az2", ""), (second["Live"], second["Desired"], second["Machines"]))

    def test_objects_that_come_and_disappear(self) -> None:
        self.deployed([*self.existing(), self.config_map("old")])
        new = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}
        self.renders(lambda objects: objects.append(new))
        self.assertEqual(
            [("ConfigMap new", "created"), ("ConfigMap old", "deleted")],
            [(row["Object"], row["Desired"]) for row in self.diff(status=WARNING)],
        )

    def test_what_the_records_ask_for_is_what_helm_gets(self) -> None:
        nodegroup = self.group("default-worker")
        nodegroup.node_count = 3
        nodegroup.save()
        self.diff()
        self.resize(3)
        self.assertEqual(self.live_values, self.rendered_values[0])

    def test_a_new_nodegroup_is_what_helm_gets(self) -> None:
        self.new_group("more").create()
        before = self.world()
        self.diff()
        self.assertEqual(before, self.world())
        self.group("more").destroy()
        self.add_group("more")
        live = self.live_values
        # The request makes it; who predicts does not.
        self.assertTrue(live["nodeGroups"][-1].pop("serverGroupId"))
        self.assertEqual(live, self.rendered_values[0])

    def test_no_secret_is_printed(self) -> None:
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "s", "namespace": NAMESPACE, **OWNERSHIP},
            "data": {"note": "b2xkLXBhc3N3b3Jk"},
        }
        self.kube.put(names.SECRET, secret)
        changed = {**secret, "data": {"note": "bmV3LXBhc3N3b3Jk"}}
        self.renders(lambda objects: objects.append(changed))
        [row] = self.diff(status=WARNING)
        self.assertEqual(("***", "***"), (row["Live"], row["Desired"]))
        printed = self.command("render", "demo")
        self.assertNotIn("bmV3", printed.out)
        self.assertIn("note: '***'", printed.out)

    def test_one_that_is_not_adopted(self) -> None:
        self.kube.remove(names.LEASE, NAMESPACE, names.lease(RELEASE))
        self.refused("adopt --dry-run")

    def test_one_whose_release_is_gone(self) -> None:
        self.helm.releases.clear()
        self.refused("has no Helm release")

    def test_the_lease_of_another_cluster(self) -> None:
        self.kube.remove(names.LEASE, NAMESPACE, names.lease(RELEASE))
        self.ports.leases.open(NAMESPACE, RELEASE, cluster_uuid="another", project_id="p1")
        self.refused("is that of cluster 'another'")


class TestUpgrade(DiffCase):
    def upgraded(self, template: Any) -> Json:
        """The values with which an upgrade ends."""
        self.upgrade(template)
        for _ in range(3):
            self.capi_converges()
            self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        return self.live_values

    def test_the_prediction_is_what_the_upgrade_ends_with(self) -> None:
        self.add_group("more")
        self.capi_converges()
        self.status_task(2)
        before = self.world()
        self.diff("--template", "next")
        self.assertEqual(before, self.world())
        self.assertEqual(NEXT, self.rendered_values[0]["kubernetesVersion"])
        self.assertEqual(self.upgraded(self.next), self.rendered_values[0])

    def test_a_label_that_no_template_has_yet(self) -> None:
        self.diff("--label", "boot_volume_size=77")
        predicted = self.rendered_values[0]
        template = self.cluster().cluster_template
        labels = {**(template.labels or {}), "boot_volume_size": "77"}
        other = self.template_of(template.image_id, "other", 3, labels=labels)
        self.assertEqual(self.upgraded(other), predicted)
        self.assertNotEqual({}, predicted)

    def test_during_an_upgrade_it_is_where_that_leads(self) -> None:
        self.upgrade(self.next)
        self.diff()
        predicted = self.rendered_values[-1]
        for _ in range(3):
            self.capi_converges()
            self.status_task()
        self.assertEqual(self.live_values, predicted)

    def test_before_helm_has_taken_an_upgrade(self) -> None:
        self.helm.refusal = errors.ManagementUnreachable("The management cluster does not answer.")
        self.upgrade(self.next)
        self.helm.refusal = None
        self.diff()
        predicted = self.rendered_values[-1]
        self.status_task()
        for _ in range(3):
            self.capi_converges()
            self.status_task()
        self.assertEqual(self.live_values, predicted)

    def test_what_the_driver_would_refuse(self) -> None:
        self.cloud.images["ubuntu-kube-1.40"] = ("image-9", "1.40.0")
        self.template_of("ubuntu-kube-1.40", "far", 4)
        self.refused("1.40", "demo", "--template", "far")

    def test_another_upgrade_while_one_is_in_progress(self) -> None:
        self.upgrade(self.next)
        self.refused("An operation is in progress", "demo", "--template", "next")

    def test_a_template_that_does_not_exist(self) -> None:
        self.refused("There is no such cluster template", "demo", "--template", "none")

    def test_the_name_of_a_template_that_is_not_public_may_be_anybodys(self) -> None:
        self.next.public = False
        self.next.save()
        self.refused(f"Give the UUID of 'next': {self.next.uuid}", "demo", "--template", "next")
        self.diff("--template", self.next.uuid)

    def test_a_label_without_a_value(self) -> None:
        self.refused("--label has 'boot_volume_size'", "demo", "--label", "boot_volume_size")

    def test_the_cluster_as_it_is_after_render(self) -> None:
        self.assertEqual(self.live_values["nodeGroups"], self.values()["nodeGroups"])
        self.assertEqual(NEXT, self.values("--template", "next")["kubernetesVersion"])
