# SPDX-License-Identifier: Apache-2.0
"""Nodes and rollouts of the control plane, what is left empty, and that no worker is moved."""

from __future__ import annotations

from typing import Any
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.control_plane import (
    api_server_flags,
    flags,
    kubeadm,
    OWN,
    rendered,
)


class RolloutTest(unittest.TestCase):
    def test_a_time_after_which_machines_are_old(self) -> None:
        time = "2026-11-21T18:00:00Z"
        for core, path in (("v1beta1", ("rolloutAfter",)), ("v1beta2", ("rollout", "after"))):
            change = {"apiVersions.core": core, "controlPlane.rolloutAfter": time}
            found: Any = rendering.only(rendered(change), "KubeadmControlPlane")["spec"]
            for step in path:
                found = found[step]
            self.assertEqual(time, found)

    def test_what_is_not_said_is_cluster_apis_own(self) -> None:
        for core in ("v1beta1", "v1beta2"):
            change = {
                "apiVersions.core": core,
                "controlPlane.remediationStrategy": None,
                "controlPlane.rolloutStrategy": None,
                "controlPlane.certificatesExpiryDays": 7,
            }
            spec = rendering.only(rendered(change), "KubeadmControlPlane")["spec"]
            self.assertEqual(set(), {"remediation", "remediationStrategy"} & spec.keys())
            self.assertNotIn("strategy", spec.get("rollout", {}))
            self.assertNotIn("rolloutStrategy", spec)
            before = spec.get("rolloutBefore") or spec["rollout"]["before"]
            self.assertEqual({"certificatesExpiryDays": 7}, before)

    def test_some_limits_of_healing_are_enough(self) -> None:
        change = {"controlPlane.remediationStrategy": {"maxRetry": 0, "retryPeriod": None}}
        spec = rendering.only(rendered(change), "KubeadmControlPlane")["spec"]
        self.assertEqual({"maxRetry": 0, "minHealthyPeriodSeconds": 3600}, spec["remediation"])


class NothingTest(unittest.TestCase):
    """A null is nothing: what people leave empty in a values file neither breaks nor weakens."""

    KEYS = (
        *("oidc", "tls", "tls.cipherSuites", "etcd.encryption"),
        *("apiServer.audit", "apiServer.admissionConfiguration", "apiServer.extraArgs"),
        *("apiServer.certSANs", "apiServer.extraVolumes", "azimuthAuthorizationWebhook"),
        *("controllerManager", "controllerManager.extraArgs", "scheduler.extraVolumes"),
        *("controlPlane.nodeTaints", "controlPlane.nodeLabels", "controlPlane.rolloutAfter"),
    )

    def test_a_null_is_what_is_not_set(self) -> None:
        plain = kubeadm(rendered())
        for key in self.KEYS:
            with self.subTest(key=key):
                self.assertEqual(plain, kubeadm(rendered({key: None})))
        etcd = kubeadm(rendered({"etcd.extraArgs": None}))["clusterConfiguration"]["etcd"]
        self.assertEqual({"local": {"dataDir": "/var/lib/etcd"}}, etcd)

    def test_an_audit_log_of_no_place_is_the_pods(self) -> None:
        policy = {"rules": [{"level": "None"}]}
        for change in ({"apiServer.audit": {"log": None}}, {"apiServer.audit.log.path": None}):
            given = api_server_flags({**change, "apiServer.audit.policy": policy})
            self.assertEqual("-", given["audit-log-path"])


class NodesTest(unittest.TestCase):
    def taints(self, value: Any) -> Any:
        spec = kubeadm(rendered({"controlPlane.nodeTaints": value}))
        init, join = (
            spec[phase]["nodeRegistration"].get("taints", "kubeadm's")
            for phase in ("initConfiguration", "joinConfiguration")
        )
        self.assertEqual(init, join)
        return init

    def test_taints_are_kubeadms_none_or_these(self) -> None:
        self.assertEqual("kubeadm's", self.taints(None))
        self.assertEqual([], self.taints([]))
        mine = [{"key": "a", "value": "1e3", "effect": "NoSchedule"}]
        self.assertEqual(mine, self.taints(mine))

    def test_load_balancers_may_send_to_nodes_that_take_any_pod(self) -> None:
        taint = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
        for taints, number in ((None, 0), ([taint], 0), ([], 1)):
            spec = kubeadm(rendered({"controlPlane.nodeTaints": taints}))
            commands = spec.get("postKubeadmCommands", [])
            self.assertEqual(number, len(commands))
            for command in commands:
                self.assertTrue(
                    command.endswith(" node.kubernetes.io/exclude-from-external-load-balancers-")
                )

    def test_labels_that_cluster_api_keeps_replace_no_machine(self) -> None:
        before = rendered({"controlPlane.nodeLabels": {"example.org/a": "1"}})
        kept = {"node-role.kubernetes.io/infra": "", "node.cluster.x-k8s.io/b": "no"}
        after = rendered({"controlPlane.nodeLabels": {"example.org/a": "1", **kept}})
        self.assertEqual(kubeadm(before), kubeadm(after))
        found = rendering.only(after, "KubeadmControlPlane")["spec"]["machineTemplate"]
        self.assertLessEqual(kept.items(), found["metadata"]["labels"].items())
        for phase in ("initConfiguration", "joinConfiguration"):
            given = flags(kubeadm(after)[phase]["nodeRegistration"])
            self.assertEqual("example.org/a=1", given["node-labels"])


class IsolationTest(unittest.TestCase):
    """The control plane's own business replaces no worker."""

    def test_no_key_of_the_control_plane_moves_a_node_group(self) -> None:
        plain = rendered()
        changes: dict[str, dict[str, Any]] = {
            "oidc": {"oidc": {"issuerUrl": "https://a.example.org", "clientId": "b"}},
            "encryption": {"etcd.encryption.enabled": True},
            "etcd": {"etcd.extraArgs": {"snapshot-count": "9"}, "etcd.dataDir": "/data/etcd"},
            "etcd disk": {"etcd.blockDevice": {"size": 5}},
            "log level": {"apiServer.logLevel": 5},
            "flags": {"apiServer.extraArgs": {"profiling": "false"}},
            "names": {"apiServer.certSANs": ["a"]},
            "volumes": {
                "apiServer.extraVolumes": [{"name": "a", "hostPath": "/a", "mountPath": "/a"}]
            },
            "audit": {"apiServer.audit.policy": {"rules": [{"level": "None"}]}},
            "admission": {"apiServer.admissionConfiguration": {"A": {}}},
            "controller manager": {"controllerManager.extraArgs": {"v": "4"}},
            "scheduler": {"scheduler.extraArgs": {"v": "4"}},
            "labels": {"controlPlane.nodeLabels": {"a": "b"}},
            "taints": {"controlPlane.nodeTaints": []},
            "kube-proxy": {
                "controlPlane.kubeadmConfigSpec.kubeProxyConfiguration": {"mode": "nftables"}
            },
            "cluster configuration": {f"{OWN}.featureGates": {"A": True}},
            "webhook": {"authWebhook": "k8s-keystone-auth"},
        }
        for name, change in changes.items():
            with self.subTest(key=name):
                after = rendered(change)
                self.assertNotEqual(kubeadm(plain), kubeadm(after))
                for kind in (
                    "MachineDeployment",
                    "KubeadmConfigTemplate",
                    "MachineHealthCheck",
                ):
                    self.assertEqual(
                        rendering.by_kind(plain, kind), rendering.by_kind(after, kind), kind
                    )
