# SPDX-License-Identifier: Apache-2.0
"""Namespaces of projects and the autoscaler's pod, judged by Kubernetes' own admission."""

from __future__ import annotations

import copy
import types
from typing import Any
import unittest
import uuid

from kubernetes import client, config

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.drivers.k8s_capi_helm.reconcile.release import project_namespace
from magnum.drivers.k8s_capi_helm.values.sections import pod_security
from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.envtest import kubeconfig
from magnum.tests.functional.k8s_capi_helm.envtest.test_least_privilege import LeastPrivilegeCase

TIMEOUT = 60
#: Changes of the chart's pod, by path; a number is a place in a list.
CHANGES: tuple[tuple[str, Any], ...] = (
    ("hostNetwork", True),
    ("hostPID", True),
    ("volumes.0", {"name": "kubeconfig", "hostPath": {"path": "/"}}),
    ("volumes.0", {"name": "kubeconfig", "emptyDir": {}}),
    ("securityContext", {}),
    ("securityContext.runAsUser", 0),
    ("securityContext.runAsNonRoot", False),
    ("securityContext.seccompProfile", {"type": "Unconfined"}),
    ("securityContext.sysctls", [{"name": "kernel.msgmax", "value": "1"}]),
    ("containers.0.securityContext", {}),
    ("containers.0.securityContext.runAsUser", 0),
    ("containers.0.securityContext.privileged", True),
    ("containers.0.securityContext.allowPrivilegeEscalation", True),
    ("containers.0.securityContext.capabilities", {"drop": ["KILL"]}),
    ("containers.0.securityContext.capabilities.add", ["SYS_ADMIN"]),
    ("containers.0.securityContext.capabilities.add", ["NET_BIND_SERVICE"]),
    ("containers.0.securityContext.seccompProfile", {"type": "Unconfined"}),
    ("containers.0.securityContext.procMount", "Unmasked"),
    ("containers.0.securityContext.readOnlyRootFilesystem", False),
    ("containers.0.ports.0.hostPort", 8085),
)


class AdmissionTest(unittest.TestCase):
    """A namespace with the labels that the driver gives."""

    def setUp(self) -> None:
        super().setUp()
        untyped: Any = config
        api = untyped.new_client_from_config(kubeconfig())
        self.addCleanup(api.close)
        self.core = client.CoreV1Api(api)
        self.namespace = f"pods-{uuid.uuid4().hex[:8]}"
        labels = pod_security.namespace_labels(pod_security.RESTRICTED)
        self.core.create_namespace(
            {"metadata": {"name": self.namespace, "labels": labels}}, _request_timeout=TIMEOUT
        )
        self.addCleanup(self.core.delete_namespace, self.namespace, _request_timeout=TIMEOUT)
        scenario = rendering.scenarios(rendering.CLUSTER)["ovn-autoscaled"]
        pod: Json = rendering.only(scenario.objects, "Deployment")["spec"]["template"]["spec"]
        # Its account is looked for before the pod is judged.
        account = {"metadata": {"name": pod["serviceAccountName"]}}
        self.core.create_namespaced_service_account(
            self.namespace, account, _request_timeout=TIMEOUT
        )
        self.pod = copy.deepcopy(pod)

    def is_taken(self, pod: Json) -> bool:
        body = {"metadata": {"generateName": "pod-"}, "spec": pod}
        try:
            self.core.create_namespaced_pod(
                self.namespace, body, dry_run="All", _request_timeout=TIMEOUT
            )
        except client.ApiException as error:
            self.assertIn(error.status, (403, 422), error.body)
            return False
        return True

    def test_the_charts_pod(self) -> None:
        self.assertTrue(self.is_taken(self.pod))
        self.assertTrue(pod_security.is_restricted(self.pod))

    def test_what_the_driver_takes_for_restricted_is(self) -> None:
        """It may say no where Kubernetes says yes, never the other way."""
        found = []
        for path, value in CHANGES:
            pod = rendering.changed(copy.deepcopy(self.pod), {path: value})
            found.append((path, self.is_taken(pod), pod_security.is_restricted(pod)))
        self.assertEqual([], [one for one in found if one[2] and not one[1]])
        self.assertEqual([], [one for one in found if one[1] and not one[2]])
        self.assertEqual(3, sum(taken for _, taken, _ in found), found)


class TestOlder(LeastPrivilegeCase):
    """A namespace that was there before it could enforce anything, with the driver's own rights."""

    def older(self) -> str:
        name = self.make_namespace()
        gone = dict.fromkeys(pod_security.namespace_labels(pod_security.RESTRICTED))
        kind = names.NAMESPACE
        self.admin.patch(kind, None, name, {"metadata": {"labels": gone}})
        return name

    def level(self, name: str) -> str | None:
        found = self.admin.get(names.NAMESPACE, None, name)
        assert found is not None
        level: str | None = found["metadata"]["labels"].get(pod_security.ENFORCE)
        return level

    def test_it_gets_its_level(self) -> None:
        name = self.older()
        ports: Any = types.SimpleNamespace(kube=self.kube)
        project_namespace.enforce_pod_security(ports, name, pod_security.RESTRICTED)
        self.assertEqual(pod_security.RESTRICTED, self.level(name))

    def test_no_other_namespace_does(self) -> None:
        kind = names.NAMESPACE
        merge = {"metadata": {"labels": {pod_security.ENFORCE: "privileged"}}}
        for name in ("default", "kube-system"):
            self.assertRaises(errors.ManagementRefused, self.kube.patch, kind, None, name, merge)
