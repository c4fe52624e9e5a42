# SPDX-License-Identifier: Apache-2.0
"""The role of the chart's autoscaler allows each request that the cluster autoscaler makes.

The requests are those of its provider for Cluster API, from release 1.33 on; older ones update the
number of a group in place of patching it. Its module cannot be had from a module proxy, so that the
program itself does not run here.
https://github.com/kubernetes/autoscaler/tree/master/cluster-autoscaler/cloudprovider/clusterapi
"""

from __future__ import annotations

from typing import Any

from kubernetes import client, dynamic

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.envtest.test_charts import ChartCase, TIMEOUT

_CORE = "cluster.x-k8s.io/v1beta2"
_INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io/v1beta1"
_MERGE = "application/merge-patch+json"
_DELETE = "cluster.x-k8s.io/delete-machine"


class TestAutoscalerRole(ChartCase):
    """A release with a group of the autoscaler's and one of a fixed size."""

    def setUp(self) -> None:
        super().setUp()
        self.upgrade(rendering.scenarios(rendering.CLUSTER)["ovn-autoscaled"].values)
        account = "demo-autoscaler"
        core = client.CoreV1Api(self.api)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = core.create_namespaced_service_account_token(
            account, self.namespace, body, _request_timeout=TIMEOUT
        ).status.token
        settings = client.Configuration()
        known: Any = self.api.configuration
        settings.host, settings.ssl_ca_cert = known.host, known.ssl_ca_cert
        settings.api_key = {"authorization": f"Bearer {token}"}
        api = client.ApiClient(settings)
        self.addCleanup(api.close)
        # What is served is public; what is allowed is asked with the token.
        self.client = dynamic.DynamicClient(api)  # type: ignore[no-untyped-call]

    def kind(self, api_version: str, kind: str) -> Any:
        return self.client.resources.get(api_version=api_version, kind=kind)

    def scale(self, name: str, replicas: int) -> Any:
        return self.kind(_CORE, "MachineDeployment").scale.patch(
            name=name,
            namespace=self.namespace,
            body={"spec": {"replicas": replicas}},
            content_type=_MERGE,
            _request_timeout=TIMEOUT,
        )

    def test_it_lists_what_it_knows_groups_by(self) -> None:
        found = {}
        for kind in ("MachineDeployment", "MachineSet", "MachinePool", "Machine"):
            listed = self.kind(_CORE, kind).get(namespace=self.namespace, _request_timeout=TIMEOUT)
            found[kind] = len(listed.items)
        self.assertEqual(2, found["MachineDeployment"], found)
        templates = self.kind(_INFRASTRUCTURE, "OpenStackMachineTemplate")
        listed = templates.get(namespace=self.namespace, _request_timeout=TIMEOUT)
        self.assertGreater(len(listed.items), 0)

    def test_it_sets_the_number_of_its_group(self) -> None:
        scale = self.kind(_CORE, "MachineDeployment").scale
        asked = {"name": "demo-default-worker", "namespace": self.namespace}
        before = scale.get(**asked, _request_timeout=TIMEOUT).spec.replicas or 0
        self.assertEqual(before + 1, self.scale("demo-default-worker", before + 1).spec.replicas)
        self.assertEqual(
            before + 1,
            next(
                one.spec.replicas
                for one in self.live(_CORE, "MachineDeployment")
                if one.metadata.name == "demo-default-worker"
            ),
        )

    def test_it_does_not_set_that_of_another_group(self) -> None:
        with self.assertRaises(client.ApiException) as caught:
            self.scale("demo-gpu", 2)
        self.assertEqual(403, caught.exception.status, caught.exception.body)

    def test_it_marks_the_machine_that_is_to_go(self) -> None:
        machine = {
            "apiVersion": _CORE,
            "kind": "Machine",
            "metadata": {"name": "demo-machine", "namespace": self.namespace},
            "spec": {
                "clusterName": "demo",
                "bootstrap": {"dataSecretName": "demo-machine"},
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io",
                    "kind": "OpenStackMachine",
                    "name": "demo-machine",
                },
            },
        }
        own = self.kinds.resources.get(api_version=_CORE, kind="Machine")
        own.create(body=machine, namespace=self.namespace, _request_timeout=TIMEOUT)
        machines = self.kind(_CORE, "Machine")
        asked = {"namespace": self.namespace, "_request_timeout": TIMEOUT}
        found = machines.get(name="demo-machine", **asked).to_dict()
        found["metadata"].setdefault("annotations", {})[_DELETE] = "now"
        answer = machines.replace(body=found, **asked)
        self.assertEqual("now", answer.metadata.annotations[_DELETE])
