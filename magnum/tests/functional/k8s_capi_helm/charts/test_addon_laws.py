# SPDX-License-Identifier: Apache-2.0
"""What holds for every addon: each file of files/addons is looked at, so a new one is too."""

from __future__ import annotations

from collections.abc import Iterator
import functools
import re
from typing import Any
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import addon_operator, kubernetes_kinds, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Values

PREFIX = "registry.example.org:5000/mirror"
HOSTS = ("registry.k8s.io", "quay.io", "docker.io", "ghcr.io", "nvcr.io")
UNINITIALIZED = (
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cluster.x-k8s.io/uninitialized",
)
#: Charts that are installed before all nodes are initialised, and where tolerations stand.
EARLY = {
    "ccm-openstack": ["tolerations"],
    "cni-calico": ["tolerations", "installation.controlPlaneTolerations"],
    "cni-cilium": ["tolerations", "operator.tolerations", "envoy.tolerations"],
    "csi-cephfs": ["nodeplugin.tolerations", "provisioner.tolerations"],
    "csi-cinder": [
        "csi.plugin.nodePlugin.tolerations",
        "csi.plugin.controllerPlugin.tolerations",
    ],
    "csi-manila": ["nodeplugin.tolerations", "controllerplugin.tolerations"],
    "csi-nfs": ["node.tolerations", "controller.tolerations"],
    "csi-snapshot-controller": ["controller.tolerations"],
    "k8s-keystone-auth": ["tolerations"],
    "metrics-server": ["tolerations"],
}
#: Without them no node becomes ready.
FIRST = ("cni-calico", "cni-cilium", "cloud-config", "ccm-openstack")
#: Keys of a file of files/addons: files/addons/README.md.
KEYS = {
    "bootstrap",
    "chart",
    "component",
    "defaults",
    "files",
    "hooks",
    "images",
    "kind",
    "namespace",
    "release",
    "settings",
    "storageClasses",
    "template",
    "values",
    "volumes",
    "when",
}
#: One credential that every addon can use.
IDENTITY = addon_operator.credential(
    {"auth": {"auth_url": "https://keystone.example.org:5000/v3/", "user_id": "u"}}
)


@functools.cache
def files() -> dict[str, Any]:
    """The files of files/addons by the name of their component."""
    found = {
        path.stem: yaml.safe_load(path.read_text())
        for path in sorted((rendering.ADDONS / "files" / "addons").glob("*.yaml"))
    }
    assert len(found) > 30
    return found


@functools.cache
def rendered() -> list[tuple[str, list[Object]]]:
    """Every scenario's objects, and those of the scenario with all addons under Calico."""
    every = rendering.scenarios(rendering.ADDONS)
    calico = {"cni.type": "calico", "ingress": {"enabled": True}}
    values = rendering.changed(every["air-gapped"].values, calico)
    return [
        *((name, one.objects) for name, one in every.items()),
        ("air-gapped with calico", rendering.render(rendering.ADDONS, values)),
    ]


def each(*names: str) -> Iterator[tuple[str, list[Object], Object]]:
    """Scenario, its objects, and an addon of this chart among them; only of some scenarios."""
    for scenario, objects in rendered():
        if not names or scenario in names:
            for addon in addon_operator.addons(objects):
                if addon_operator.component(addon) in files():
                    yield scenario, objects, addon


def at(values: Values, path: str) -> Any:
    """What stands at a dotted path, None for nothing."""
    found: Any = values
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def texts(value: Any) -> Iterator[str]:
    """Every text in values or objects."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, str):
        yield value


class FileTest(unittest.TestCase):
    """The files themselves."""

    def test_a_file_is_called_as_its_addon_and_has_known_keys(self) -> None:
        for name, file in files().items():
            with self.subTest(file=name):
                self.assertEqual(name, file["component"])
                self.assertLessEqual(set(file), KEYS)
                self.assertIsInstance(file["bootstrap"], bool)

    def test_every_path_is_a_key_of_values_yaml(self) -> None:
        values = yaml.safe_load((rendering.ADDONS / "values.yaml").read_text())
        for name, file in files().items():
            volumes = file.get("volumes", [])
            paths = [
                *(
                    path
                    for part in [file, *volumes]
                    for one in part.get("when", [])
                    for path in one
                ),
                *file.get("settings", {}).values(),
                *(volume["size"] for volume in volumes),
                *file.get("storageClasses", []),
                *(file[key] for key in ("namespace", "chart", "values") if key in file),
            ]
            for path in paths:
                with self.subTest(file=name, path=path):
                    above, _, last = path.rpartition(".")
                    self.assertIn(last, at(values, above) if above else values)

    def test_every_addon_is_in_a_scenario(self) -> None:
        shown = {addon_operator.component(addon) for _, _, addon in each()}
        self.assertEqual(set(files()), shown)

    def test_the_readme_names_every_key(self) -> None:
        text = (rendering.ADDONS / "files" / "addons" / "README.md").read_text()
        for key in KEYS:
            self.assertIn(f"`{key}`", text)

    def test_the_readme_of_the_chart_names_the_values_of_every_addon(self) -> None:
        text = (rendering.ADDONS / "README.md").read_text()
        for name, file in files().items():
            with self.subTest(addon=name):
                switches = [path.removesuffix(".enabled") for one in file["when"] for path in one]
                self.assertTrue(any(f"`{switch}`" in text for switch in switches), switches)


class EarlyTest(unittest.TestCase):
    """Nodes that nobody has initialised."""

    def test_network_and_cloud_controller_wait_for_nothing(self) -> None:
        for name in FIRST:
            self.assertIs(True, files()[name]["bootstrap"], name)

    def test_whatever_comes_early_is_known_to_the_next_test(self) -> None:
        early = {
            name
            for name, file in files().items()
            if file["bootstrap"] and file["kind"] == "HelmRelease"
        }
        self.assertEqual(set(EARLY), early)

    def test_what_comes_early_runs_on_uninitialized_nodes(self) -> None:
        for scenario, objects, addon in each():
            name = addon_operator.component(addon)
            if name not in EARLY:
                continue
            values = addon_operator.values(objects, name, identity=IDENTITY)
            for path in EARLY[name]:
                for taint in UNINITIALIZED:
                    with self.subTest(scenario=scenario, addon=name, path=path, taint=taint):
                        self.assertTrue(
                            any(
                                one.get("operator") == "Exists"
                                and one.get("key") in (None, taint)
                                and one.get("effect") in (None, "NoSchedule")
                                for one in at(values, path)
                            )
                        )


class ImageTest(unittest.TestCase):
    """global.imageRegistryPrefix."""

    def test_every_addon_with_images_has_them_below_the_prefix(self) -> None:
        seen = set()
        for scenario, objects, addon in each("air-gapped", "air-gapped with calico"):
            name = addon_operator.component(addon)
            if addon["kind"] == "HelmRelease":
                found = [*texts(addon_operator.values(objects, name, identity=IDENTITY))]
                found = [text for text in found if PREFIX in text]
            else:
                made = addon_operator.manifests(objects, name, identity=IDENTITY)
                found = [image for one in made for image in images(one)]
            seen |= {name} if found else set()
            for text in found:
                with self.subTest(scenario=scenario, addon=name, text=text):
                    self.assertRegex(text, f"^{re.escape(PREFIX)}/({'|'.join(HOSTS)})(/|$)")
        releases = {name for name, file in files().items() if file["kind"] == "HelmRelease"}
        self.assertEqual(
            releases
            | {"etcd-defrag", "etcd-snapshot"}
            | {"intel-xpumanager", "mellanox-network-operator-policy"},
            seen,
        )

    def test_without_a_prefix_nothing_is_said_of_images(self) -> None:
        for scenario, _, addon in each("standalone", "gpu", "shared-filesystems"):
            if addon["kind"] == "HelmRelease":
                keys = [source["secret"]["key"] for source in addon["spec"]["valuesSources"]]
                with self.subTest(scenario=scenario, addon=addon_operator.component(addon)):
                    self.assertIn(keys, (["defaults", "overrides"], ["overrides"]))

    def test_an_image_in_the_values_of_an_addon_wins(self) -> None:
        given = rendering.scenarios(rendering.ADDONS)["bare"].values
        change = {
            "global.imageRegistryPrefix": PREFIX,
            "metricsServer.release.values": {"image": {"repository": "own.example.org/m"}},
            "etcdDefrag": {
                "enabled": True,
                "release": {"values": {"image": {"repository": "own.example.org/etcd"}}},
            },
        }
        objects = rendering.render(rendering.ADDONS, rendering.changed(given, change))
        values = addon_operator.values(objects, "metrics-server")
        self.assertEqual("own.example.org/m", values["image"]["repository"])
        (job,) = addon_operator.manifests(objects, "etcd-defrag")
        self.assertEqual(["own.example.org/etcd:3.6.8-0"], [*images(job)])

    def test_openstack_cluster_hands_its_prefix_on(self) -> None:
        given = rendering.scenarios(rendering.CLUSTER)["minimal"].values
        objects = rendering.render(
            rendering.CLUSTER, rendering.changed(given, {"global.imageRegistryPrefix": PREFIX})
        )
        values = addon_operator.values(objects, "ccm-openstack")
        self.assertTrue(values["image"]["repository"].startswith(f"{PREFIX}/registry.k8s.io/"))


def images(found: Any) -> Iterator[str]:
    """Images of an object's containers, and repositories in an object of an operator."""
    if isinstance(found, dict):
        for key, inner in found.items():
            if key in ("image", "repository") and isinstance(inner, str) and "/" in inner:
                yield inner
            else:
                yield from images(inner)
    elif isinstance(found, list):
        for inner in found:
            yield from images(inner)


class ObjectTest(unittest.TestCase):
    """What is installed is valid, and called so that the operator can take it."""

    def test_objects_of_kubernetes_own_kinds_are_valid(self) -> None:
        kinds = set()
        for scenario, objects, addon in each():
            name = addon_operator.component(addon)
            if addon["kind"] != "Manifests":
                continue
            for found in addon_operator.manifests(objects, name, identity=IDENTITY):
                with self.subTest(scenario=scenario, addon=name, name=found["metadata"]["name"]):
                    self.assertTrue(found["apiVersion"] and found["kind"])
                    if kubernetes_kinds.knows(found):
                        kinds.add(found["kind"])
                        self.assertEqual([], kubernetes_kinds.faults(found))
        wanted = {"ConfigMap", "CronJob", "DaemonSet", "Secret", "Service", "StorageClass"}
        self.assertLessEqual(wanted, kinds)

    def test_names_are_valid_and_tell_addons_apart_for_long_releases(self) -> None:
        values = rendering.scenarios(rendering.ADDONS)["air-gapped"].values
        values = rendering.changed(
            values,
            {
                "clusterName": "c" * 63,
                "custom": {
                    f"own-{'a' * 48}{end}": {
                        "kind": "Manifests",
                        "spec": {"namespace": "a", "manifests": {"a": ""}},
                    }
                    for end in "bc"
                },
            },
        )
        for length in (43, 53):
            objects = rendering.render(rendering.ADDONS, values, release="r" * length)
            with self.subTest(length=length):
                self.assertEqual(
                    [],
                    [fault for one in objects for fault in kubernetes_kinds.metadata_faults(one)],
                )
                names = [rendering.identity(one) for one in objects]
                self.assertCountEqual(set(names), names)
                for addon in addon_operator.addons(objects):
                    self.assertLessEqual(len(addon["spec"]["releaseName"]), 53)
