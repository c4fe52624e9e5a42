# SPDX-License-Identifier: Apache-2.0
"""Objects for tests of the addon provider: what is usual, and what a test says is different."""

import base64
from typing import Any

from sandbox.addons import rules

Document = dict[str, Any]


def addon(kind: str = "HelmRelease", name: str = "rel-ccm", **spec: Any) -> Document:
    """An addon that waits for the control plane only."""
    usual: Document = {"clusterName": "rel", "targetNamespace": "kube-system", "bootstrap": True}
    if kind == "HelmRelease":
        chart = {"repo": "https://charts.example.org", "name": "ccm", "version": "1.2.3"}
        usual["chart"] = chart
    return {
        "apiVersion": f"{rules.GROUP}/{rules.VERSION}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "magnum-p1", "uid": f"uid-of-{name}"},
        "spec": usual | spec,
    }


def cluster(*true: str, **status: Any) -> Document:
    """A Cluster of which the named conditions are True."""
    conditions = [{"type": kind, "status": "True"} for kind in true]
    conditions += [
        {"type": kind, "status": "False"}
        for kind in ("ControlPlaneInitialized", "Available")
        if kind not in true
    ]
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "rel", "namespace": "magnum-p1", "uid": "uid-of-cluster"},
        "spec": {"infrastructureRef": {"kind": "OpenStackCluster", "name": "rel"}},
        "status": {"phase": "Provisioned", "conditions": conditions, **status},
    }


def infra_cluster(identity: Document | None = None) -> Document:
    """An OpenStackCluster; without an identity when that is empty."""
    named = {"name": "rel-cloud-credentials"} if identity is None else identity
    return {"kind": "OpenStackCluster", "spec": {"identityRef": named}}


def secret(name: str, **data: str) -> Document:
    """A Secret with text."""
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"kind": "Secret", **_named(name), "data": encoded}


def config_map(name: str, data: dict[str, str]) -> Document:
    """A ConfigMap."""
    return {"kind": "ConfigMap", **_named(name), "data": data}


def _named(name: str) -> Document:
    return {"apiVersion": "v1", "metadata": {"name": name, "namespace": "magnum-p1"}}


def seen(document: Document | None = None, **different: Any) -> rules.Seen:
    """Everything there, and the gate of a bootstrap addon open."""
    usual: dict[str, Any] = {
        "addon": document or addon(),
        "cluster": cluster("ControlPlaneInitialized"),
        "infra_cluster": infra_cluster(),
        "identity": secret("rel-cloud-credentials", **{"clouds.yaml": "clouds: {}"}),
    }
    return rules.Seen(**(usual | different))
