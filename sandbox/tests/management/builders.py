# SPDX-License-Identifier: Apache-2.0
"""Objects for tests, and a cluster of one machine with simulated CAPO and Cluster API."""

import base64
import json
import ssl
from typing import Any
import urllib.error
import urllib.request

from sandbox.management.api import path_of
from sandbox.management.connection import Connection, Refused
from sandbox.management.pki import make_pair, Pair, write_private
from sandbox.state import State

Document = dict[str, Any]

__all__ = ["Cast", "path_of"]

CORE = "cluster.x-k8s.io"
INFRA = "infrastructure.cluster.x-k8s.io"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
BOOTSTRAP = (
    "#cloud-config\nwrite_files:\n- path: /run/kubeadm/kubeadm.yaml\n"
    "  content: |\n    nodeRegistration: {}\n"
)


def document(version: str, kind: str, where: str, name: str, spec: Document) -> Document:
    """An object in a namespace."""
    identity = {"name": name, "namespace": where}
    return {"apiVersion": version, "kind": kind, "metadata": identity, "spec": spec}


def namespace(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def config_map(name: str) -> Document:
    identity = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": identity, "data": {"a": "b"}}


def secret(where: str, name: str, data: dict[str, bytes]) -> Document:
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    identity = {"name": name, "namespace": where}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": identity, "data": encoded}


def role_binding(role: str, user: str) -> Document:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }


def cluster(where: str, name: str, **more: Any) -> Document:
    reference = {"apiGroup": INFRA, "kind": "OpenStackCluster", "name": name}
    spec = {"infrastructureRef": reference, **more}
    return document(f"{CORE}/v1beta2", "Cluster", where, name, spec)


def machine_deployment(where: str, name: str, version: str) -> Document:
    template = {"apiGroup": INFRA, "kind": "OpenStackMachineTemplate", "name": name}
    spec = {
        "clusterName": name,
        "version": version,
        "bootstrap": {"dataSecretName": name},
        "infrastructureRef": template,
    }
    return document(
        f"{CORE}/v1beta2",
        "MachineDeployment",
        where,
        name,
        {"clusterName": name, "template": {"spec": spec}},
    )


def helm_release(where: str, cluster_name: str, chart: str) -> Document:
    spec = {
        "clusterName": cluster_name,
        "targetNamespace": "kube-system",
        "bootstrap": True,
        "chart": {"repo": "https://example.org", "name": chart, "version": "1.0.0"},
    }
    version = "addons.stackhpc.com/v1alpha1"
    return document(version, "HelmRelease", where, f"{cluster_name}-{chart}", spec)


class Cast:
    """A Cluster with one control-plane machine, ``NAME-m``."""

    def __init__(self, admin: Connection, state: State, where: str, name: str) -> None:
        self._admin, self._where, self.name = admin, where, name
        self._authority = make_pair(f"{name}-ca")
        self._port = state.port(f"workload-{name}")
        client = make_pair("kubernetes-admin", self._authority)
        self._kubeconfig = self._way(client)
        self._pem = state.path("test", f"{name}.pem")
        write_private(self._pem, client.pem + client.key_pem)

    def enter(self) -> None:
        """The Cluster has an address, and Nova says that the server is ACTIVE."""
        pair = {"tls.crt": self._authority.pem, "tls.key": self._authority.key_pem}
        endpoint = {"host": "127.0.0.1", "port": self._port}
        machine = document(f"{CORE}/v1beta2", "Machine", self._where, f"{self.name}-m", {})
        machine["metadata"]["labels"] = {f"{CORE}/control-plane": ""}
        machine["spec"] = {
            "clusterName": self.name,
            "version": "v1.34.4",
            "bootstrap": {"dataSecretName": f"{self.name}-m"},
            "infrastructureRef": {
                "apiGroup": INFRA,
                "kind": "OpenStackMachine",
                "name": f"{self.name}-m",
            },
        }
        infra = {
            "identityRef": {"name": f"{self.name}-cloud", "cloudName": "openstack"},
            "managedSubnets": [{"cidr": "10.0.0.0/24"}],
        }
        objects = [
            secret(self._where, f"{self.name}-ca", pair),
            secret(self._where, f"{self.name}-etcd", pair),
            secret(self._where, f"{self.name}-cloud", {"clouds.yaml": b"clouds: {}"}),
            secret(self._where, f"{self.name}-m", {"value": BOOTSTRAP.encode()}),
            secret(self._where, f"{self.name}-kubeconfig", {"value": self._kubeconfig}),
            document(f"{INFRA}/v1beta1", "OpenStackCluster", self._where, self.name, infra),
            cluster(self._where, self.name, controlPlaneEndpoint=endpoint),
            machine,
            self._server(),
        ]
        for item in objects:
            query = [("fieldManager", "test")]
            self._admin.request("PATCH", path_of(item), query=query, body=item, content_type=APPLY)
        self._status(self._server(), {"instanceState": "ACTIVE", "instanceID": "1-2-3"})

    def say_initialized(self) -> None:
        """The control plane of the Cluster is initialized."""
        condition = {
            "type": "ControlPlaneInitialized",
            "status": "True",
            "reason": "Initialized",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        status = {"phase": "Provisioned", "conditions": [condition]}
        self._status(cluster(self._where, self.name), status)

    def leave(self) -> None:
        """The server is gone, and then the Cluster; it may be so already."""
        for item in (self._server(), cluster(self._where, self.name)):
            try:
                self._admin.request("DELETE", path_of(item))
            except Refused as error:
                if error.status != 404:
                    raise

    def answers(self) -> bool:
        """Whether the workload API server says that it is ready."""
        try:
            return self._fetch("/readyz") == b"ok"
        except (urllib.error.URLError, OSError):
            return False

    def has(self, path: str) -> bool:
        """Whether there is an object at an API path of the workload cluster."""
        try:
            return bool(self._fetch(path))
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return False

    def ready_nodes(self) -> dict[str, str]:
        """Name and version of the nodes that are Ready."""
        found = json.loads(self._fetch("/api/v1/nodes"))
        return {
            node["metadata"]["name"]: node["status"]["nodeInfo"]["kubeletVersion"]
            for node in found["items"]
            for condition in node["status"]["conditions"]
            if condition["type"] == "Ready" and condition["status"] == "True"
        }

    def addon_status(self, chart: str) -> Document:
        """status of an addon."""
        status: Document = self._addon(chart).get("status") or {}
        return status

    def progress(self, chart: str) -> str:
        """What kopf has written about an addon that it is not done with."""
        annotations = self._addon(chart)["metadata"].get("annotations") or {}
        wanted = "addons.stackhpc.com/handle_addon_updated"
        return "".join(value for key, value in annotations.items() if key.startswith(wanted))

    def _addon(self, chart: str) -> Document:
        return self._admin.request("GET", path_of(helm_release(self._where, self.name, chart)))

    def _server(self) -> Document:
        spec = {
            "flavor": "m1.small",
            "image": {"filter": {"name": "ubuntu"}},
            "sshKeyName": "",
            "ports": [{}],
            "identityRef": {"name": f"{self.name}-cloud", "cloudName": "openstack"},
        }
        name = f"{self.name}-m"
        return document(f"{INFRA}/v1alpha1", "OpenStackServer", self._where, name, spec)

    def _way(self, client: Pair) -> bytes:
        """A kubeconfig as Cluster API writes it."""
        cluster = {
            "server": f"https://127.0.0.1:{self._port}",
            "certificate-authority-data": base64.b64encode(self._authority.pem).decode(),
        }
        user = {
            "client-certificate-data": base64.b64encode(client.pem).decode(),
            "client-key-data": base64.b64encode(client.key_pem).decode(),
        }
        found = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.name, "cluster": cluster}],
            "users": [{"name": "admin", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": self.name, "user": "admin"}}],
            "current-context": "x",
        }
        return json.dumps(found).encode()

    def _status(self, item: Document, status: Document) -> None:
        path = f"{path_of(item)}/status"
        self._admin.request("PATCH", path, body={"status": status}, content_type=MERGE)

    def _fetch(self, path: str) -> bytes:
        trust = ssl.create_default_context(cadata=self._authority.pem.decode())
        trust.load_cert_chain(self._pem)
        address = f"https://127.0.0.1:{self._port}{path}"
        with urllib.request.urlopen(address, timeout=5.0, context=trust) as answer:
            content: bytes = answer.read()
        return content
