# SPDX-License-Identifier: Apache-2.0
"""Objects that a core addon creates in the tenant's cluster.

No image runs there, so a chart is played by its Deployments and DaemonSets alone, under the names
that it gives them. Manifests are what they are.
"""

import base64
from collections.abc import Iterable
from typing import Any

import yaml

from sandbox.addons import rules
from sandbox.management.connection import Connection, Document, Refused

#: By spec.chart.name of a HelmRelease: kind and name.
CHARTS = {
    "openstack-cloud-controller-manager": (("DaemonSet", "openstack-cloud-controller-manager"),),
    "openstack-cinder-csi": (
        ("Deployment", "openstack-cinder-csi-controllerplugin"),
        ("DaemonSet", "openstack-cinder-csi-nodeplugin"),
    ),
    "tigera-operator": (("Deployment", "tigera-operator"),),
    "cilium": (("DaemonSet", "cilium"), ("Deployment", "cilium-operator")),
}
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
#: Of a node of the control plane, until the addons run.
TAINTS = (
    CONTROL_PLANE,
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.kubernetes.io/not-ready",
)
#: What is put there; the in-memory API server of a cluster knows few kinds.
KINDS = frozenset(
    {("apps/v1", "DaemonSet"), ("apps/v1", "Deployment"), ("v1", "Secret"), ("v1", "ConfigMap")}
)


def documents(addon: rules.Document, rendered: Any) -> list[Document]:
    """The objects of an addon, by what its values or manifests render to."""
    if addon["kind"] == "Manifests":
        return [dict(one) for one in rendered]
    spec = addon["spec"]
    return [
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {
                "name": name,
                "namespace": spec["targetNamespace"],
                "labels": {"app.kubernetes.io/managed-by": "Helm"},
            },
            "spec": _pods(kind, name),
        }
        for kind, name in CHARTS.get(spec["chart"]["name"], ())
    ]


def _pods(kind: str, name: str) -> Document:
    """The pods of a core addon, in the shape that an API takes.

    Those of a DaemonSet run on every node, one of a Deployment on the control plane. If it ran
    anywhere and tolerated everything, it would be scheduled again onto a node that is being
    drained, so the drain would not end.
    """
    labels = {"app": name}
    spec: Document = {
        "containers": [{"name": name, "image": f"example.org/{name}"}],
        "tolerations": [{"operator": "Exists"}],
    }
    replicas = {}
    if kind == "Deployment":
        replicas["replicas"] = 1
        spec["nodeSelector"] = {CONTROL_PLANE: ""}
        spec["tolerations"] = [
            {"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in TAINTS
        ]
    return {
        **replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": spec},
    }


class Inside:
    """A cluster by the kubeconfig that Cluster API has written.

    :param secret: the Secret with it.
    """

    def __init__(self, secret: Document) -> None:
        text = base64.b64decode(secret["data"]["value"])
        self._connection = Connection(yaml.safe_load(text))

    def put(self, found: Iterable[Document], namespace: str) -> None:
        """Make what is not there yet.

        :raises SandboxError: the cluster refuses, or does not answer.
        """
        for one in found:
            if (one["apiVersion"], one["kind"]) not in KINDS:
                continue
            path = _path(one, namespace)
            if self._make(path, one) == 404:  # no namespace yet: Helm is told to create it
                name = path.split("/")[-2]
                self._make("/api/v1/namespaces", {"metadata": {"name": name}})
                self._make(path, one, tolerated=(409,))

    def _make(self, path: str, one: Document, tolerated: tuple[int, ...] = (404, 409)) -> int:
        """Make an object; the status of the response that was tolerated, 0 without one."""
        try:
            self._connection.request("POST", path, body=one)
        except Refused as error:
            if error.status not in tolerated:
                raise
            return error.status
        return 0

    def remove(self, found: Iterable[Document], namespace: str) -> None:
        """Take away what is there.

        :param found: entries of ``status.resources``.
        :raises SandboxError: the cluster refuses, or does not answer.
        """
        for one in found:
            if (one["apiVersion"], one["kind"]) not in KINDS:
                continue
            try:
                self._connection.request("DELETE", f"{_path(one, namespace)}/{one['name']}")
            except Refused as error:
                if error.status != 404:
                    raise


def _path(document: Document, namespace: str) -> str:
    version, kind = document["apiVersion"], document["kind"]
    own = (document.get("metadata") or document).get("namespace")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}/namespaces/{own or namespace}/{kind.lower()}s"
