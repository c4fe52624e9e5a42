# SPDX-License-Identifier: Apache-2.0
"""Nodes of a cluster's servers, as their kubelets register them with an external cloud provider.

https://kubernetes.io/docs/reference/command-line-tools-reference/cloud-controller-manager/
"""

from __future__ import annotations

from typing import Any

from magnum.tests.functional.k8s_capi_helm.cloud_programs.tenant_api import Object, TenantApi
from magnum.tests.functional.k8s_capi_helm.sandbox.tenant import Tenant

UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
#: Set by kubeadm, together with the role.
_EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers"


def servers(tenant: Tenant, *, workers: bool) -> list[Any]:
    """The servers of workers, or those of the control plane, by name."""
    found = [
        one
        for one in tenant.connection.compute.servers()
        if ("-control-plane-" in one.name) is not workers
    ]
    return sorted(found, key=lambda one: str(one.name))


def register(api: TenantApi, server: Any, provider_id: str = "", *, address: str = "") -> None:
    """Add the Node of a server: its kubelet is ready, and no cloud has initialised it.

    :param provider_id: of one that was initialised before.
    :param address: which a kubelet with ``--node-ip=0.0.0.0`` reports; others know their name only.
    """
    labels = {"kubernetes.io/hostname": server.name, "kubernetes.io/os": "linux"}
    if "-control-plane-" in server.name:
        labels |= {_CONTROL_PLANE: "", _EXCLUDED: ""}
    taint = {"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}
    known = [{"type": "Hostname", "address": server.name}]
    known += [{"type": "InternalIP", "address": address}] if address else []
    document = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": server.name, "labels": labels},
        "spec": {"providerID": provider_id} if provider_id else {"taints": [taint]},
        # Complete from the beginning: a later write could undo the cloud's addresses.
        "status": {"addresses": known, "conditions": [_ready(True)]},
    }
    api.request("POST", "/api/v1/nodes", document)


def report(api: TenantApi, name: str, *, ready: bool) -> None:
    """Write the kubelet's condition."""
    status = {"status": {"conditions": [_ready(ready)]}}
    api.request("PATCH", f"/api/v1/nodes/{name}/status", status)


def node(api: TenantApi, server: Any) -> Object:
    """The Node of a server."""
    return api.request("GET", f"/api/v1/nodes/{server.name}")


def is_initialized(found: Object) -> bool:
    """Whether a cloud has told the Node what it is, and after that which addresses it has."""
    keys = [taint["key"] for taint in found["spec"].get("taints") or ()]
    kinds = [one["type"] for one in found["status"]["addresses"]]
    return UNINITIALIZED not in keys and "InternalIP" in kinds


def addresses(server: Any) -> set[tuple[str, str]]:
    """Kind and address of what Nova knows of a server's network."""
    kinds = {"fixed": "InternalIP", "floating": "ExternalIP"}
    return {
        (kinds[one["OS-EXT-IPS:type"]], one["addr"])
        for found in server.addresses.values()
        for one in found
    }


def _ready(ready: bool) -> Object:
    return {"type": "Ready", "status": str(ready), "reason": "Kubelet"}
