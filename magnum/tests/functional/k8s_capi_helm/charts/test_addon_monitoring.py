# SPDX-License-Identifier: Apache-2.0
"""What is watched, what an addon brings with it, and what becomes of its volumes."""

from __future__ import annotations

import json
from typing import Any
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import addon_operator, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object
from magnum.tests.functional.k8s_capi_helm.charts.test_addon_laws import each, IDENTITY
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

STORAGE = "volumeClaimTemplate.spec.resources.requests.storage"
PROMETHEUS = f"prometheus.prometheusSpec.storageSpec.{STORAGE}"
ALERTMANAGER = f"alertmanager.alertmanagerSpec.storage.{STORAGE}"


def rendered(change: dict[str, Any]) -> list[Object]:
    """The scenario without anything, changed."""
    values = rendering.scenarios(rendering.ADDONS)["bare"].values
    return rendering.render(rendering.ADDONS, rendering.changed(values, change))


def names(objects: list[Object]) -> set[str]:
    """Components of the addons."""
    return {addon_operator.component(one) for one in addon_operator.addons(objects)}


class VolumeTest(unittest.TestCase):
    """Volumes follow the values."""

    def hooks(self, component: str, values: dict[str, Any]) -> Any:
        section = {"kube-prometheus-stack": "kubePrometheusStack", "loki-stack": "lokiStack"}
        path = f"monitoring.{section[component]}.release.values"
        change = {f"{path}.{key}": value for key, value in values.items()}
        objects = rendered({"monitoring.enabled": True, **change})
        return addon_operator.addon(objects, component)["spec"]["lifecycleHooks"]

    def sizes(self, hooks: Any) -> list[Any]:
        return [
            hook["options"]["data"]["spec"]["resources"]["requests"]["storage"]
            for hook in hooks.get("preUpgrade", [])
            if hook["kind"] == "PersistentVolumeClaim"
        ]

    def test_a_size_is_asked_of_the_volume_too(self) -> None:
        hooks = self.hooks("kube-prometheus-stack", {ALERTMANAGER: "2Gi", PROMETHEUS: 2147483648})
        self.assertEqual(["2Gi", 2147483648], self.sizes(hooks))
        self.assertNotIn("postUpgrade", hooks)
        self.assertEqual(
            [
                {"alertmanager": "kube-prometheus-stack-alertmanager"},
                {"operator.prometheus.io/name": "kube-prometheus-stack-prometheus"},
            ],
            [hook["selector"] for hook in hooks["postDelete"]],
        )

    def test_a_volume_that_is_no_longer_wanted_goes(self) -> None:
        hooks = self.hooks("kube-prometheus-stack", {"prometheus.prometheusSpec.storageSpec": None})
        self.assertEqual(["10Gi"], self.sizes(hooks))
        (gone,) = hooks["postUpgrade"]
        self.assertEqual("delete", gone["action"])
        self.assertEqual(
            {"operator.prometheus.io/name": "kube-prometheus-stack-prometheus"}, gone["selector"]
        )

    def test_lokis_statefulset_gives_way(self) -> None:
        hooks = self.hooks("loki-stack", {"loki.persistence.size": "20Gi"})
        first, _ = hooks["preUpgrade"]
        self.assertEqual(
            ("StatefulSet", "loki-stack", "delete"), (first["kind"], first["name"], first["action"])
        )
        self.assertEqual(["20Gi"], self.sizes(hooks))
        without = self.hooks("loki-stack", {"loki.persistence.enabled": False})
        self.assertEqual([], self.sizes(without))
        self.assertEqual(
            {"app": "loki", "release": "loki-stack"}, without["postUpgrade"][0]["selector"]
        )

    def test_prometheus_leaves_room_on_its_volume(self) -> None:
        for size, wanted in (
            ("10Gi", "8704MiB"),
            ("1Gi", "870MiB"),
            ("1500Mi", "1275MiB"),
            ("1.5Ti", "1336934MiB"),
            ("10G", "8106MiB"),
            ("2000000Ki", "1660MiB"),
            (10737418240, "8704MiB"),
            ("", None),
            ("ten", None),
        ):
            path = f"monitoring.kubePrometheusStack.release.values.{PROMETHEUS}"
            objects = rendered({"monitoring.enabled": True, path: size})
            spec = addon_operator.values(objects, "kube-prometheus-stack")["prometheus"]
            with self.subTest(size=size):
                self.assertEqual(wanted, spec["prometheusSpec"].get("retentionSize"))

    def test_a_given_retention_wins(self) -> None:
        path = "monitoring.kubePrometheusStack.release.values.prometheus.prometheusSpec"
        objects = rendered({"monitoring.enabled": True, f"{path}.retentionSize": "1GiB"})
        spec = addon_operator.values(objects, "kube-prometheus-stack")["prometheus"]
        self.assertEqual("1GiB", spec["prometheusSpec"]["retentionSize"])


class ProbeTest(unittest.TestCase):
    """Keystone is probed at the address of the credential."""

    def monitor(self, change: dict[str, Any], **credential: str) -> Any:
        identity = addon_operator.credential({"auth": credential})
        objects = rendered({"monitoring.enabled": True, **change})
        return addon_operator.values(objects, "blackbox-exporter", identity=identity)[
            "serviceMonitor"
        ]

    def test_every_spelling_of_the_address_ends_alike(self) -> None:
        wanted = [{"name": "openstack-auth-url", "url": "https://k.example.org:5000/v3"}]
        for end in ("", "/", "/v3", "/v3/"):
            found = self.monitor({}, auth_url=f"https://k.example.org:5000{end}")
            self.assertEqual({"enabled": True, "targets": wanted}, found)

    def test_off(self) -> None:
        off = {"monitoring.blackboxExporter.openstackAuthUrlTarget.enabled": False}
        found = self.monitor(off, auth_url="https://k")
        self.assertEqual({"enabled": False, "targets": []}, found)
        path = "monitoring.blackboxExporter.release.values.serviceMonitor"
        own = [{"name": "a", "url": "b"}]
        found = self.monitor({**off, path: {"enabled": True, "targets": own}}, auth_url="https://k")
        self.assertEqual({"enabled": True, "targets": own}, found)


class CompanionTest(unittest.TestCase):
    """What comes with what."""

    def test_what_an_addon_needs_comes_with_it(self) -> None:
        for switch, brought in (
            ("nvidiaGPUOperator", {"node-feature-discovery"}),
            ("mellanoxNetworkOperator", {"node-feature-discovery"}),
            ("amdGPUOperator", {"node-feature-discovery", "cert-manager"}),
            ("intelDevicePlugin", {"node-feature-discovery", "cert-manager"}),
            ("nodeFeatureDiscovery", {"node-feature-discovery"}),
            ("certManager", {"cert-manager"}),
            ("headlamp", set()),
        ):
            found = names(rendered({f"{switch}.enabled": True}))
            with self.subTest(switch=switch):
                both = {"node-feature-discovery", "cert-manager"}
                self.assertEqual(brought, found & both)

    def test_each_operator_leaves_node_feature_discovery_alone(self) -> None:
        objects = rendering.scenarios(rendering.ADDONS)["air-gapped"].objects
        for name, key in (
            ("nvidia-gpu-operator", "nfd"),
            ("mellanox-network-operator", "nfd"),
            ("amd-gpu-operator", "node-feature-discovery"),
        ):
            self.assertIs(False, addon_operator.values(objects, name)[key]["enabled"], name)

    def test_the_network_operator_is_told_what_to_do(self) -> None:
        objects = rendering.scenarios(rendering.ADDONS)["gpu"].objects
        (policy,) = addon_operator.manifests(objects, "mellanox-network-operator-policy")
        driver = policy["spec"]["ofedDriver"]
        self.assertEqual(
            ("nvcr.io/nvidia/mellanox", "doca-driver", "1e3"),
            (driver["repository"], driver["image"], driver["version"]),
        )
        plugin = policy["spec"]["rdmaSharedDevicePlugin"]
        self.assertEqual(["configList"], list(json.loads(plugin["config"])))

    def test_metrics_are_offered_to_whoever_is_there(self) -> None:
        for name, path in (
            ("traefik", "metrics.prometheus.serviceMonitor.enabled"),
            ("node-problem-detector", "metrics.serviceMonitor.enabled"),
            ("nvidia-gpu-operator", "dcgmExporter.serviceMonitor.enabled"),
            (
                "amd-gpu-operator",
                "deviceConfig.spec.metricsExporter.prometheus.serviceMonitor.enable",
            ),
        ):
            for watched in (True, False):
                objects = rendered(
                    {
                        "monitoring.enabled": watched,
                        "ingress.enabled": True,
                        "nodeProblemDetector.enabled": True,
                        "nvidiaGPUOperator.enabled": True,
                        "amdGPUOperator.enabled": True,
                    }
                )
                found: Any = addon_operator.values(objects, name)
                for step in path.split("."):
                    found = found[step]
                with self.subTest(addon=name, watched=watched):
                    self.assertIs(watched, found)
                self.assertEqual(watched, "traefik-monitoring" in names(objects))

    def test_traefik_does_not_give_up_before_prometheus_is_there(self) -> None:
        objects = rendered({"monitoring.enabled": True, "ingress.enabled": True})
        values = addon_operator.values(objects, "traefik")
        self.assertIs(True, values["metrics"]["prometheus"]["disableAPICheck"])

    def test_either_ingress_controller(self) -> None:
        nginx = {"nginx": {"enabled": True}, "traefik": {"enabled": False}}
        for change, wanted in (({}, "traefik"), (nginx, "ingress-nginx")):
            found = names(rendered({"ingress": {"enabled": True, **change}}))
            self.assertEqual({wanted}, found & {"traefik", "ingress-nginx"})
        self.assertNotIn("traefik", names(rendered({})))


class DashboardTest(unittest.TestCase):
    """Dashboards, alerts and monitors of every addon."""

    def test_dashboards_are_ones_that_grafana_reads(self) -> None:
        seen = {}
        for _, objects, addon in each():
            if addon["kind"] != "Manifests":
                continue
            name = addon_operator.component(addon)
            for found in addon_operator.manifests(objects, name, identity=IDENTITY):
                if found["metadata"].get("labels", {}).get("grafana_dashboard") == "1":
                    ((file, text),) = found["data"].items()
                    self.assertTrue(file.endswith(".json"))
                    seen[name] = json.loads(text)
        files = {path.stem for path in (rendering.ADDONS / "files" / "dashboards").iterdir()}
        self.assertEqual(len(files), len({one["title"] for one in seen.values()}))
        for name, dashboard in seen.items():
            places = [tuple(panel["gridPos"].values()) for panel in dashboard["panels"]]
            with self.subTest(addon=name):
                self.assertEqual(name, dashboard["uid"])
                self.assertLessEqual(len(name), 40)  # Grafana's limit
                self.assertCountEqual(set(places), places)
                variables = {one["name"] for one in dashboard["templating"]["list"]}
                for panel in dashboard["panels"]:
                    uid = panel["datasource"]["uid"]
                    self.assertIn(uid.strip("${}"), variables)
                    self.assertTrue(all(target["expr"] for target in panel["targets"]))

    def test_no_panel_hides_another(self) -> None:
        objects = rendering.scenarios(rendering.ADDONS)["air-gapped"].objects
        made = addon_operator.manifests(objects, "loki-stack-monitoring")
        (text,) = made[0]["data"].values()
        taken: set[tuple[int, int]] = set()
        for panel in at_least_one(json.loads(text)["panels"]):
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            self.assertEqual(set(), taken & cells, panel["title"])
            taken |= cells

    def test_alerts_keep_prometheus_own_templates(self) -> None:
        objects = rendering.scenarios(rendering.ADDONS)["ingress-and-monitoring"].objects
        for name in ("traefik", "blackbox-exporter"):
            made = addon_operator.manifests(objects, f"{name}-monitoring")
            (rule,) = [one for one in made if one["kind"] == "PrometheusRule"]
            path = rendering.ADDONS / "files" / "alerts" / f"{name}.yaml"
            (group,) = rule["spec"]["groups"]
            self.assertEqual(yaml.safe_load(path.read_text())["rules"], group["rules"])
            self.assertIn("{{ $value | humanizeDuration }}", str(group["rules"]))

    def test_calico_is_scraped_by_services_of_our_own(self) -> None:
        values = rendering.scenarios(rendering.CLUSTER)["minimal"].values
        change = {"addons.monitoring": {"enabled": True}}
        objects = rendering.render(rendering.CLUSTER, rendering.changed(values, change))
        made = addon_operator.manifests(objects, "cni-calico-monitoring")
        services = {one["metadata"]["name"]: one for one in made if one["kind"] == "Service"}
        monitors = [one for one in made if one["kind"] == "ServiceMonitor"]
        calico = addon_operator.values(objects, "cni-calico")["installation"]
        self.assertEqual(3, len(monitors))
        for monitor in monitors:
            service = services[monitor["metadata"]["name"]]
            self.assertEqual(
                service["metadata"]["labels"], monitor["spec"]["selector"]["matchLabels"]
            )
            (port,) = service["spec"]["ports"]
            self.assertEqual(port["name"], monitor["spec"]["endpoints"][0]["port"])
        ports = {name: one["spec"]["ports"][0]["port"] for name, one in services.items()}
        self.assertEqual(calico["nodeMetricsPort"], ports["calico-node-scraped"])
        self.assertEqual(calico["typhaMetricsPort"], ports["calico-typha-scraped"])

    def test_xpu_manager_is_scraped_by_its_service(self) -> None:
        objects = rendering.scenarios(rendering.ADDONS)["gpu"].objects
        service, daemons = addon_operator.manifests(objects, "intel-xpumanager")
        made = addon_operator.manifests(objects, "intel-xpumanager-monitoring")
        (monitor,) = [one for one in made if one["kind"] == "ServiceMonitor"]
        labels = service["metadata"]["labels"]
        self.assertEqual(labels, monitor["spec"]["selector"]["matchLabels"])
        pod = daemons["spec"]["template"]
        self.assertEqual(service["spec"]["selector"], pod["metadata"]["labels"])
        self.assertEqual(
            {"docker.io/intel/xpumanager:V1.2.38"},
            {one["image"] for one in pod["spec"]["containers"]},
        )
