# SPDX-License-Identifier: Apache-2.0
"""Law: nothing that a tenant writes moves what runs on the management cluster, or what it may do.

Every label and every field of Magnum's is moved to values that are hostile and accepted, as many as
can be had at once; what has a pod, an account or a role stays byte for byte as it was, but for what
:func:`settled` takes out.
"""

from __future__ import annotations

from collections.abc import Iterator
import functools
import re
from typing import Any
import unittest

import yaml

from magnum.drivers.k8s_capi_helm import labels
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.drivers.k8s_capi_helm.values.sections import pod_security
from magnum.tests.functional.k8s_capi_helm.charts import reference, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object
from magnum.tests.unit.drivers.k8s_capi_helm import tenant_inputs
from magnum.tests.unit.drivers.k8s_capi_helm import test_helm_values as driver
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

#: Kinds that controllers of other things read: they start nothing there, and give no rights.
DATA = re.compile(
    r"(Cluster|OpenStackCluster|OpenStackMachineTemplate|KubeadmControlPlane|KubeadmConfigTemplate|"
    r"MachineDeployment|MachineHealthCheck|HelmRelease|Manifests|Secret|ConfigMap)"
)
#: Kinds that run something there, or say what may be done there.
GUARDED = frozenset({"Deployment", "ServiceAccount", "Role", "RoleBinding"})
_SCALE = "machinedeployments/scale"


def settled(found: Object) -> str:
    """An object as text, without what is allowed to move.

    * The names of the groups that it scales, which only take rights away.
    * Its tag, as far as it is one of the operator's: the Kubernetes release chooses among them.
    """
    text = yaml.safe_dump(found)
    if found["kind"] == "Role":
        for rule in found["rules"]:
            if _SCALE in rule["resources"]:
                for name in rule.get("resourceNames", ()):
                    assert re.fullmatch(r"demo-[-a-z0-9]+", name), name
                    text = text.replace(name, "GROUP")
    for tag in _tags():
        text = text.replace(f"cluster-autoscaler:{tag}\n", "cluster-autoscaler:TAG\n")
    return text


def guarded(objects: list[Object]) -> dict[tuple[str, str], str]:
    """What runs, or may do something, on the management cluster."""
    return {rendering.identity(one): settled(one) for one in objects if one["kind"] in GUARDED}


@functools.cache
def _tags() -> tuple[str, ...]:
    tags = yaml.safe_load((rendering.CLUSTER / "files" / "autoscaler-tags.yaml").read_text())
    return tuple(tags.values())


def rendered(values: Json) -> list[Object]:
    return rendering.render(rendering.CLUSTER, values)


class TenantTest(unittest.TestCase):
    maxDiff = None

    def moved(self, values: Json, base: Json) -> dict[tuple[str, str], Any]:
        now, was = guarded(rendered(values)), guarded(rendered(base))
        self.assertEqual({kind for kind, _ in was}, GUARDED)
        return {key: now.get(key) for key in {*now, *was} if now.get(key) != was.get(key)}

    def test_labels(self) -> None:
        seen: set[str] = set()
        for cni in tenant_inputs.CNIS:
            values, base, names = tenant_inputs.together(cni)
            seen |= names
            with self.subTest(cni=cni):
                self.assertEqual({}, self.moved(values, base), sorted(names))
        # The others exclude one of those.
        self.assertGreater(len(seen & set(labels.BY_NAME)) / len(labels.REGISTRY), 0.9)

    def test_the_label_of_the_registry_alone(self) -> None:
        texts = {**tenant_inputs.SCALED, "container_infra_prefix": "evil.example.org/x"}
        values = driver.rendered(texts)
        self.assertEqual({}, self.moved(values, driver.rendered(tenant_inputs.SCALED)))
        machines = [one for one in rendered(values) if one["kind"] == "KubeadmControlPlane"]
        self.assertIn("evil.example.org", yaml.safe_dump_all(machines))

    def test_fields(self) -> None:
        *_, together = tenant_inputs.of_fields()
        self.assertEqual({}, self.moved(together.values, together.base))

    def test_the_kinds_that_there_are(self) -> None:
        """A kind that is neither of both makes somebody think."""
        found = {
            one["kind"]
            for scenario in rendering.scenarios(rendering.CLUSTER).values()
            for one in scenario.objects
        }
        unknown = {kind for kind in found - GUARDED if not DATA.fullmatch(kind)}
        self.assertEqual(set(), unknown)


class PodTest(unittest.TestCase):
    """What the pod is, and what its account may do."""

    def scenarios(self) -> Iterator[tuple[str, list[Object]]]:
        for scenario in rendering.scenarios(rendering.CLUSTER).values():
            if rendering.by_kind(scenario.objects, "Deployment"):
                yield scenario.name, scenario.objects

    def test_it_is_restricted_and_limited(self) -> None:
        for name, objects in at_least_one(self.scenarios()):
            for one in rendering.by_kind(objects, "Deployment"):
                pod = one["spec"]["template"]["spec"]
                with self.subTest(scenario=name):
                    if name != "every-key":  # which sets what can be set, to other values
                        self.assertTrue(pod_security.is_restricted(pod), pod)
                    for container in pod["containers"]:
                        self.assertTrue(container["resources"]["limits"]["memory"])

    def test_it_alone_has_the_token_of_its_account(self) -> None:
        for _, objects in at_least_one(self.scenarios()):
            account = rendering.only(objects, "ServiceAccount")
            pod = rendering.only(objects, "Deployment")["spec"]["template"]["spec"]
            self.assertIs(False, account["automountServiceAccountToken"])
            self.assertIs(True, pod["automountServiceAccountToken"])
            self.assertEqual(account["metadata"]["name"], pod["serviceAccountName"])

    def test_it_scales_the_groups_of_its_own_cluster(self) -> None:
        for _, objects in at_least_one(self.scenarios()):
            scaled = {
                one["metadata"]["name"]
                for one in rendering.by_kind(objects, "MachineDeployment")
                if "replicas" not in one["spec"]
            }
            rules = rendering.only(objects, "Role")["rules"]
            [rule] = [one for one in rules if _SCALE in one["resources"]]
            self.assertEqual(scaled, set(rule["resourceNames"]))


class ReferenceTest(unittest.TestCase):
    """The reference chart as it is, with what the driver tells it: skipped where there is none."""

    def test_its_pod_is_restricted_and_the_operators(self) -> None:
        from magnum.drivers.k8s_capi_helm.model import Chart
        from magnum.drivers.k8s_capi_helm.reconcile.release import autoscaler_deployment
        from magnum.tests.unit.drivers.k8s_capi_helm.test_management_cluster_isolation import CONF

        try:
            with reference.chart() as chart:
                found = []
                for values in tenant_inputs.together("calico")[:2]:
                    about = Chart("openstack-cluster", "0.27.0", str(chart))
                    told = autoscaler_deployment.with_operators_settings(values, about, CONF)
                    told["addons"] = {"enabled": False}  # it has rules of its own for those
                    found.append(rendering.render(chart, told))
        except reference.NotGiven as error:
            self.skipTest(str(error))
        evil, plain = map(guarded, found)
        self.assertEqual(plain, evil)
        pod = rendering.only(found[0], "Deployment")["spec"]["template"]["spec"]
        self.assertTrue(pod_security.is_restricted(pod), pod)
        self.assertTrue(pod["containers"][0]["resources"]["limits"]["memory"])
