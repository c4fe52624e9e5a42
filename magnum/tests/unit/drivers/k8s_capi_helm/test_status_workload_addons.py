# SPDX-License-Identifier: Apache-2.0
"""What addons consist of by their objects, and what the health says of what is missing."""

from __future__ import annotations

import dataclasses
from typing import Any

import testtools

from magnum.drivers.k8s_capi_helm import model, status
from magnum.drivers.k8s_capi_helm.model import AddonInventory, Missing, WorkloadObject
from magnum.drivers.k8s_capi_helm.status.objects import workload_addons
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.builders import NOW

APPS = workload_addons.KINDS[("apps/v1", "DaemonSet")]
SECRET = workload_addons.KINDS[("v1", "Secret")]


def addon(component: str, *listed: Any, **status: Any) -> dict[str, Any]:
    made = builders.addon(component)
    made["status"] |= {"resources": list(listed), **status}
    return made


def entry(kind: str = "DaemonSet", name: str = "one", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "namespace": "ns", **more}


class TestExpected(testtools.TestCase):
    def names(self, *found: dict[str, Any]) -> list[str]:
        return [one.title for one in workload_addons.expected(found)]

    def test_what_runs_comes_first(self) -> None:
        secret = entry("Secret", "cloud", apiVersion="v1")
        found = self.names(addon("cloud-config", secret), addon("csi-cinder", entry()))
        self.assertEqual(["DaemonSet ns/one", "Secret ns/cloud"], found)

    def test_optional_addons_and_those_at_work_are_not_looked_for(self) -> None:
        found = self.names(
            addon("metrics-server", entry()), addon("csi-cinder", entry(), phase="Upgrading")
        )
        self.assertEqual([], found)

    def test_only_some_kinds_are(self) -> None:
        others = (entry("ClusterRole"), entry("Job"), entry(apiVersion="apps/v2"))
        self.assertEqual([], self.names(addon("csi-cinder", *others)))

    def test_helms_own_namespace_is_meant_where_none_is_named(self) -> None:
        made = addon("csi-cinder", entry(namespace=""))
        made["spec"]["targetNamespace"] = "target"
        handled = next(iter(made["metadata"]["annotations"]))
        text = made["metadata"]["annotations"][handled]
        made["metadata"]["annotations"][handled] = text.replace(
            '"clusterName"', '"targetNamespace": "target", "clusterName"'
        )
        self.assertEqual(["DaemonSet target/one"], self.names(made))

    def test_names_that_nothing_can_have_are_left_out(self) -> None:
        odd = [entry(name=name) for name in ("../../x", "", "A", "a b", "-a", "x" * 300)]
        broken = (None, 7, [], {}, {"kind": ["DaemonSet"], "apiVersion": {}}, *odd)
        self.assertEqual([], self.names(addon("csi-cinder", *broken)))
        self.assertEqual((), workload_addons.expected(Missing.UNREADABLE))
        odd_list = addon("csi-cinder")
        odd_list["status"]["resources"] = "all"
        self.assertEqual([], self.names(odd_list))


class TestHealth(testtools.TestCase):
    def judge(self, found: AddonInventory | None) -> model.Verdict:
        look = dataclasses.replace(builders.observed(), inside=found)
        return status.evaluate(look, builders.state("UPDATE_COMPLETE"), NOW)

    def test_what_is_missing_is_named_with_its_addon(self) -> None:
        verdict = self.judge(
            AddonInventory(
                (
                    WorkloadObject("csi-cinder", APPS, "kube-system", "b"),
                    WorkloadObject("csi-cinder", APPS, "kube-system", "a"),
                    WorkloadObject("cloud-config", SECRET, "kube-system", "cloud-config"),
                )
            )
        )
        self.assertEqual("UNHEALTHY", verdict.health)
        self.assertEqual(
            "cloud-config: Secret kube-system/cloud-config not found in the cluster; csi-cinder: "
            "DaemonSet "
            "kube-system/b, DaemonSet kube-system/a not found in the cluster",
            verdict.health_reason["inside"],
        )

    def test_all_there(self) -> None:
        verdict = self.judge(AddonInventory())
        self.assertEqual(("HEALTHY", "Ready"), (verdict.health, verdict.health_reason["inside"]))

    def test_nobody_knows(self) -> None:
        verdict = self.judge(AddonInventory(unknown="not looked for"))
        self.assertEqual("HEALTHY", verdict.health)
        self.assertEqual("not looked for", verdict.health_reason["inside"])
        self.assertNotIn("inside", self.judge(None).health_reason)
