# SPDX-License-Identifier: Apache-2.0
"""Node groups: how many machines, how they change, when they are sick."""

from __future__ import annotations

from typing import Any
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.one_group import (
    BOUNDS,
    CAPACITY,
    deployment,
    of_group,
    rendered,
    templates,
)
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Values
from magnum.tests.functional.k8s_capi_helm.charts.test_schema import schema_of
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one


class SizeTest(unittest.TestCase):
    def test_zero_is_a_number(self) -> None:
        self.assertEqual(0, deployment({"machineCount": 0})["spec"]["replicas"])

    def test_the_number_is_the_autoscalers_or_the_charts(self) -> None:
        bounds = {"machineCountMin": 0, "machineCountMax": 7}
        for wanted in (True, "true"):
            found = deployment({"autoscale": wanted, **bounds})
            self.assertNotIn("replicas", found["spec"])
            annotations = found["metadata"]["annotations"]
            self.assertEqual("0", annotations[f"{BOUNDS}-min-size"])
            self.assertEqual("7", annotations[f"{BOUNDS}-max-size"])
        for unwanted in (False, "false"):
            found = deployment({"autoscale": unwanted, **bounds})
            self.assertEqual(1, found["spec"]["replicas"])
            self.assertNotIn("annotations", found["metadata"])

    def test_numbers_and_booleans_of_the_command_line(self) -> None:
        values = rendering.CLUSTER / "ci" / "minimal-values.yaml"
        for text in (
            "--set-string=nodeGroups[0].autoscale=true",
            "--set=nodeGroups[0].autoscale=true",
        ):
            said = rendering.run(
                *("template", "demo", rendering.CLUSTER, f"--values={values}", text),
                "--set=addons.enabled=false,nodeGroups[0].name=g,nodeGroups[0].machineCount=2",
                "--set=nodeGroups[0].machineCountMin=1,nodeGroups[0].machineCountMax=10",
                "--set=nodeGroups[0].capacity.cpu=4,nodeGroups[0].capacity.memory=17179869184",
                "--set=autoscaler.extraArgs.v=5",
            )
            objects = rendering.documents(said)
            annotations = of_group(objects, "MachineDeployment")["metadata"]["annotations"]
            self.assertEqual("10", annotations[f"{BOUNDS}-max-size"])
            self.assertEqual("4", annotations[f"{CAPACITY}/cpu"])
            self.assertEqual("17179869184", annotations[f"{CAPACITY}/memory"])
            pod = rendering.only(objects, "Deployment")["spec"]["template"]["spec"]
            self.assertIn("--v=5", pod["containers"][0]["args"])

    def test_a_null_counts_as_not_set(self) -> None:
        found = deployment({"machineCountMin": None, "machineFlavor": None, "capacity": None})
        self.assertEqual(1, found["spec"]["replicas"])

    def test_every_key_but_the_name_and_the_number_may_be_null(self) -> None:
        group = schema_of(rendering.CLUSTER)["properties"]["nodeGroups"]["items"]
        nothing = dict.fromkeys(set(group["properties"]) - {"name", "machineCount"})
        self.assertEqual(rendered(), rendered(nothing))
        parts = ("machineRootVolume", "machineNetworking", "machineMetadata", "rolloutStrategy")
        empty = {"machineNetworking": dict.fromkeys(("ports", "trunk", "securityGroups"))}
        self.assertEqual(rendered(), rendered({**dict.fromkeys(parts), **empty}))

    def test_numbers_may_come_as_text(self) -> None:
        self.assertEqual(rendered({"machineCount": 3}), rendered({"machineCount": "3"}))
        bounds = {"machineCountMin": 1, "machineCountMax": 10}
        text = {key: str(value) for key, value in bounds.items()}
        self.assertEqual(
            rendered({"autoscale": True, **bounds}), rendered({"autoscale": True, **text})
        )


class RolloutTest(unittest.TestCase):
    group = {
        "minReadySeconds": 30,
        "rolloutAfter": "2026-11-21T18:00:00Z",
        "rolloutStrategy": {
            "rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0, "deletePolicy": "Oldest"},
            "remediation": {"maxInFlight": "20%"},
        },
    }

    def test_all_of_it_in_both_api_versions(self) -> None:
        new = deployment(self.group)["spec"]
        rolling = {"maxSurge": "10%", "maxUnavailable": 0}
        self.assertEqual(
            {
                "after": "2026-11-21T18:00:00Z",
                "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            },
            new["rollout"],
        )
        self.assertEqual({"order": "Oldest"}, new["deletion"])
        self.assertEqual({"maxInFlight": "20%"}, new["remediation"])
        self.assertEqual(30, new["template"]["spec"]["minReadySeconds"])
        old = deployment(self.group, apiVersions__core="v1beta1")["spec"]
        self.assertEqual("2026-11-21T18:00:00Z", old["rolloutAfter"])
        self.assertEqual(30, old["minReadySeconds"])
        self.assertEqual(
            {
                "type": "RollingUpdate",
                "rollingUpdate": {**rolling, "deletePolicy": "Oldest"},
                "remediation": {"maxInFlight": "20%"},
            },
            old["strategy"],
        )

    def test_none_of_it_is_said_unless_it_is_set(self) -> None:
        for core in ("v1beta1", "v1beta2"):
            text = yaml.safe_dump(deployment(apiVersions__core=core))
            for field in ("minReadySeconds", "after", "rolloutAfter", "maxInFlight", "null"):
                self.assertNotIn(field, text)

    def test_none_of_it_replaces_machines(self) -> None:
        self.assertEqual(templates(rendered()), templates(rendered(self.group)))

    def test_on_delete(self) -> None:
        group = {"rolloutStrategy": {"type": "OnDelete"}}
        self.assertEqual({"strategy": {"type": "OnDelete"}}, deployment(group)["spec"]["rollout"])
        old = deployment(group, apiVersions__core="v1beta1")["spec"]["strategy"]
        self.assertEqual({"type": "OnDelete", "rollingUpdate": {"deletePolicy": "Random"}}, old)


class HealthTest(unittest.TestCase):
    condition = {"type": "NodeHealthy", "status": "Unknown", "timeout": "1h0m0s"}

    def check(self, spec: Values, **api: str) -> Any:
        group = {"healthCheck": {"neverCameUpTimeout": "20m0s", "spec": spec}}
        return of_group(rendered(group, apiVersions=api), "MachineHealthCheck")["spec"]

    def test_machine_conditions_where_cluster_api_can_look_at_them(self) -> None:
        given = {"unhealthyMachineConditions": [self.condition]}
        for release in ("", "1.12", "1.13", "1.20"):
            self.assertEqual(
                [
                    {"type": "InfrastructureReady", "status": "False", "timeoutSeconds": 1200},
                    {"type": "NodeHealthy", "status": "Unknown", "timeoutSeconds": 3600},
                ],
                self.check(given, clusterApi=release)["checks"]["unhealthyMachineConditions"],
            )
        for release in ("1.13", "1.14"):
            self.assertEqual(
                [
                    {"type": "InfrastructureReady", "status": "False", "timeout": "20m0s"},
                    self.condition,
                ],
                self.check(given, core="v1beta1", clusterApi=release)["unhealthyMachineConditions"],
            )
        self.assertNotIn(
            "unhealthyMachineConditions", self.check(given, clusterApi="1.11")["checks"]
        )
        for release in ("", "1.10", "1.12"):
            self.assertNotIn(
                "unhealthyMachineConditions",
                self.check(given, core="v1beta1", clusterApi=release),
            )

    def test_the_control_plane_is_looked_at_alike(self) -> None:
        for release, seen in (("1.11", False), ("1.12", True)):
            objects = rendered(apiVersions={"clusterApi": release})
            for found in at_least_one(rendering.by_kind(objects, "MachineHealthCheck")):
                self.assertEqual(seen, "unhealthyMachineConditions" in found["spec"]["checks"])

    def test_a_range_wins_over_a_limit(self) -> None:
        given = {"unhealthyRange": "[1-3]"}
        self.assertEqual(
            {"triggerIf": {"unhealthyInRange": "[1-3]"}}, self.check(given)["remediation"]
        )
        old = self.check(given, core="v1beta1")
        self.assertEqual("[1-3]", old["unhealthyRange"])
        self.assertNotIn("maxUnhealthy", old)

    def test_somebody_else_may_replace_machines(self) -> None:
        template = {"apiVersion": "example.org/v1", "kind": "Repair", "name": "r"}
        given = {"remediationTemplate": template}
        self.assertEqual(template, self.check(given)["remediation"]["templateRef"])
        self.assertEqual(template, self.check(given, core="v1beta1")["remediationTemplate"])


class ClusterApiTest(unittest.TestCase):
    def test_the_release_chooses_the_api_version(self) -> None:
        for release, core in (("1.10", "v1beta1"), ("1.11", "v1beta2"), ("", "v1beta2")):
            found = deployment(apiVersions={"clusterApi": release})
            self.assertEqual(f"cluster.x-k8s.io/{core}", found["apiVersion"])

    def test_no_release_renames_a_template(self) -> None:
        taint = [{"key": "a", "effect": "NoSchedule"}]
        names = [
            templates(
                rendered({"nodeTaints": taint}, apiVersions={"clusterApi": release, "core": core})
            )
            for release in ("", "1.11", "1.13")
            for core in ("v1beta1", "v1beta2")
        ]
        self.assertEqual([names[0]] * len(names), names)
