# SPDX-License-Identifier: Apache-2.0
"""A small cluster's infrastructure objects, and those of v1beta2 told in v1beta1.

The latter is the OpenStack provider's own conversion, written down a second time from its migration
notes: so what the chart renders in one version can be compared with what it renders in the other.
"""

from __future__ import annotations

from typing import Any

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Values

Spec = dict[str, Any]

#: API versions of the infrastructure.
VERSIONS = ("v1beta1", "v1beta2")
#: Where a field of v1beta2 stood in v1beta1, and whether it was the other way round.
_CLUSTER = {
    "enableExternalNetwork": ("disableExternalNetwork", True),
    "apiServer.managedLoadBalancer": ("apiServerLoadBalancer", False),
    "apiServer.enableFloatingIP": ("disableAPIServerFloatingIP", True),
    "apiServer.floatingIP": ("apiServerFloatingIP", False),
    "apiServer.fixedIP": ("apiServerFixedIP", False),
    "apiServer.port": ("apiServerPort", False),
    "managedNetwork.mtu": ("networkMTU", False),
    "managedNetwork.enablePortSecurity": ("disablePortSecurity", True),
    "managedRouter.externalIPs": ("externalRouterIPs", False),
}
_MOVED = {path.partition(".")[0] for path in _CLUSTER}


def small(**change: Any) -> Values:
    """A small cluster without addons, with other values at some paths ("__" for a dot)."""
    values = {
        **rendering.scenarios(rendering.CLUSTER)["minimal"].values,
        "addons": {"enabled": False},
        "nodeGroups": [{"name": "g", "machineCount": 1}],
    }
    paths = {path.replace("__", "."): value for path, value in change.items()}
    return rendering.changed(values, paths)


def rendered(**change: Any) -> list[Object]:
    """What :func:`small` renders."""
    return rendering.render(rendering.CLUSTER, small(**change))


def cluster(**change: Any) -> Object:
    """The OpenStackCluster of :func:`small`."""
    return rendering.only(rendered(**change), "OpenStackCluster")


def machines(objects: list[Object]) -> dict[str, Any]:
    """Spec of each machine template by the component or node group that it is for."""
    return {
        _of(found): found["spec"]["template"]["spec"]
        for found in rendering.by_kind(objects, "OpenStackMachineTemplate")
    }


def _of(found: Object) -> str:
    """The node group of an object, or else its component."""
    labels = {key.partition("/")[2]: value for key, value in found["metadata"]["labels"].items()}
    return str(labels.get("node-group", labels["component"]))


def template_names(objects: list[Object]) -> list[str]:
    """Names of the machine templates."""
    return [
        str(found["metadata"]["name"])
        for found in rendering.by_kind(objects, "OpenStackMachineTemplate")
    ]


def in_v1beta1(found: Object) -> Object:
    """An infrastructure object of v1beta2 as v1beta1 has it; any other object as it is."""
    old, new = (f"infrastructure.cluster.x-k8s.io/{version}" for version in VERSIONS)
    if found["apiVersion"] != new:
        return found
    spec = found["spec"]
    if found["kind"] == "OpenStackCluster":
        spec = cluster_in_v1beta1(spec)
    else:
        spec = {"template": {"spec": machine_in_v1beta1(spec["template"]["spec"])}}
    return {**found, "apiVersion": old, "spec": spec}


def cluster_in_v1beta1(spec: Spec) -> Spec:
    """Spec of an OpenStackCluster of v1beta2 as v1beta1 has it."""
    result = {key: value for key, value in spec.items() if key not in _MOVED}
    for path, (old, turned) in _CLUSTER.items():
        above, _, key = path.rpartition(".")
        place = spec.get(above, {}) if above else spec
        if key in place:
            result[old] = not place[key] if turned else place[key]
    if groups := spec.get("managedSecurityGroups"):
        result["managedSecurityGroups"] = {
            {"clusterNodesSecurityGroupRules": "allNodesSecurityGroupRules"}.get(key, key): value
            for key, value in groups.items()
        }
    if machine := spec.get("bastion", {}).get("spec"):
        result["bastion"] = {**spec["bastion"], "spec": machine_in_v1beta1(machine)}
    return result


def machine_in_v1beta1(spec: Spec) -> Spec:
    """Spec of an OpenStackMachine of v1beta2 as v1beta1 has it."""
    result = {**spec, "flavor": spec["flavor"]["filter"]["name"]}
    if "ports" in spec:
        result["ports"] = [_port_in_v1beta1(port) for port in spec["ports"]]
    return result


def _port_in_v1beta1(port: Spec) -> Spec:
    result = {key: value for key, value in port.items() if key != "enablePortSecurity"}
    if "enablePortSecurity" in port:
        result["disablePortSecurity"] = not port["enablePortSecurity"]
    return result
