# SPDX-License-Identifier: Apache-2.0
"""Worlds for addon providers: a cluster that is ready, and addons of all kinds in it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from magnum.tests.functional.k8s_capi_helm.charts import addon_operator
from magnum.tests.functional.k8s_capi_helm.charts.addon_providers import World
from magnum.tests.functional.k8s_capi_helm.charts.rendering import NAMESPACE, Object

READY = ("ControlPlaneInitialized", "Available")
IDENTITY = "demo-cloud-credentials"


def cluster(*true: str, **status: Any) -> Object:
    """A Cluster of which these conditions are True."""
    conditions = [{"type": kind, "status": str(kind in true)} for kind in READY]
    return {
        **addon_operator.CLUSTER,
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "demo", "namespace": NAMESPACE},
        "spec": {
            **addon_operator.CLUSTER["spec"],
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io",
                "kind": "OpenStackCluster",
                "name": "demo",
            },
        },
        "status": {"phase": "Provisioned", "conditions": conditions, **status},
    }


def infra_cluster(**spec: Any) -> Object:
    """An OpenStackCluster."""
    return {
        **addon_operator.INFRA_CLUSTER,
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "OpenStackCluster",
        "metadata": {"name": "demo", "namespace": NAMESPACE},
        "spec": spec or {"identityRef": {"name": IDENTITY, "cloudName": "openstack"}},
    }


def secret(name: str, texts: Mapping[str, str] | None = None, **metadata: Any) -> Object:
    """A Secret with these texts."""
    data = {key: base64.b64encode(text.encode()).decode() for key, text in (texts or {}).items()}
    return _named("Secret", name, metadata, data)


def config_map(name: str, texts: Mapping[str, str]) -> Object:
    """A ConfigMap with these texts."""
    return _named("ConfigMap", name, {}, dict(texts))


def identity(content: Object = addon_operator.IDENTITY) -> Object:
    """The credential that the OpenStackCluster names."""
    return _named("Secret", IDENTITY, {}, content["data"])


def ready(addon: Object, *sources: Object, **different: Any) -> World:
    """A cluster that is ready, an addon, and what that takes values or manifests from.

    :param different: other objects for cluster, infra_cluster or identity; None for none.
    """
    usual = {"cluster": cluster(*READY), "infra_cluster": infra_cluster(), "identity": identity()}
    around = [different.pop(name, one) for name, one in usual.items()]
    objects = (*(one for one in around if one is not None), *sources)
    return World(_placed(addon), objects, **different)


def of_chart(addon: Object, objects: list[Object], credential: Object) -> World:
    """The same for an addon that a chart has rendered with these objects."""
    secrets = [
        secret(one["metadata"]["name"], one["stringData"], labels=one["metadata"].get("labels"))
        for one in objects
        if one["kind"] == "Secret" and "stringData" in one
    ]
    here = cluster(*READY)
    here["metadata"]["name"] = addon["spec"]["clusterName"]
    return ready(addon, *secrets, cluster=here, identity=identity(credential))


def helm_release(**spec: Any) -> Object:
    """A HelmRelease; ``values`` are the text of its only template."""
    values = spec.pop("values", None)
    if values is not None:
        spec["valuesSources"] = [{"template": values}]
    chart = {"repo": "https://charts.example.org", "name": "ccm", "version": "1.2.3"}
    return _addon("HelmRelease", {"chart": chart, **spec})


def manifests(text: str | None = None, **spec: Any) -> Object:
    """Manifests; the text is their only template."""
    if text is not None:
        spec["manifestSources"] = [{"template": text}]
    return _addon("Manifests", spec)


def _addon(kind: str, spec: Object) -> Object:
    usual = {"clusterName": "demo", "targetNamespace": "kube-system", "bootstrap": True}
    return {
        "apiVersion": "addons.stackhpc.com/v1alpha1",
        "kind": kind,
        "metadata": {"name": "demo-addon"},
        "spec": {**usual, **spec},
    }


def _placed(addon: Object) -> Object:
    return {**addon, "metadata": {**addon["metadata"], "namespace": NAMESPACE}}


def _named(kind: str, name: str, metadata: Object, data: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
        "data": data,
    }
