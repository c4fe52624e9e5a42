# SPDX-License-Identifier: Apache-2.0
"""The management cluster as an onlooker reads it, with an administrator's rights."""

from __future__ import annotations

import base64
import functools
import gzip
import json
from pathlib import Path
import time
from typing import Any

import kubernetes

from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from sandbox.management import driver_kubeconfig, kubeconfig

Json = dict[str, Any]

CAPI = "/apis/cluster.x-k8s.io/v1beta2"
PATHS = {
    "Cluster": f"{CAPI}/{{}}/clusters",
    "MachineDeployment": f"{CAPI}/{{}}/machinedeployments",
    "MachineSet": f"{CAPI}/{{}}/machinesets",
    "Machine": f"{CAPI}/{{}}/machines",
    "MachineHealthCheck": f"{CAPI}/{{}}/machinehealthchecks",
    "KubeadmControlPlane": "/apis/controlplane.cluster.x-k8s.io/v1beta2/{}/kubeadmcontrolplanes",
    "OpenStackCluster": "/apis/infrastructure.cluster.x-k8s.io/v1beta1/{}/openstackclusters",
    "OpenStackServer": "/apis/infrastructure.cluster.x-k8s.io/v1alpha1/{}/openstackservers",
    "HelmRelease": "/apis/addons.stackhpc.com/v1alpha1/{}/helmreleases",
    "Manifests": "/apis/addons.stackhpc.com/v1alpha1/{}/manifests",
    "OpenStackMachineTemplate": (
        "/apis/infrastructure.cluster.x-k8s.io/v1beta1/{}/openstackmachinetemplates"
    ),
    "KubeadmConfigTemplate": ("/apis/bootstrap.cluster.x-k8s.io/v1beta2/{}/kubeadmconfigtemplates"),
    "Secret": "/api/v1/{}/secrets",
    "ConfigMap": "/api/v1/{}/configmaps",
    "Deployment": "/apis/apps/v1/{}/deployments",
    "Lease": "/apis/coordination.k8s.io/v1/{}/leases",
}
#: The versions of Cluster API's objects in these paths, and what 1.10 and older serve.
_NEW, _OLD = "v1beta2", "v1beta1"
#: Connecting and reading, in seconds.
_PATIENCE = (5.0, 20.0)
#: Seconds in which Kubernetes removes a namespace with nothing in it.
_REMOVED_AFTER = 120.0
#: What a project's namespace keeps when its last cluster is gone.
_STAYS = frozenset(
    {"serviceaccounts/default", "configmaps/kube-root-ca.crt", "rolebindings/magnum-k8s-capi-helm"}
)


class Management:
    """Reads (and where a test says so, patches) the management cluster through plain JSON.

    :param path: of the kubeconfig; the administrator's without it.
    """

    def __init__(self, path: Path | None = None) -> None:
        path = path or kubeconfig(setting.state())
        self._client: Any = kubernetes.config.new_client_from_config(str(path))  # type: ignore[no-untyped-call]

    def objects(self, kind: str, namespace: str) -> list[Json]:
        """All objects of a kind of :data:`PATHS` in a namespace."""
        items: list[Json] = self._ask("GET", self._path(kind, namespace))["items"]
        return [_newer(item) for item in items] if self._core == _OLD else items

    def named(self, kind: str, namespace: str, name: str) -> Json:
        """The object of a kind that has this name; it has to be there."""
        found = {one["metadata"]["name"]: one for one in self.objects(kind, namespace)}
        assert name in found, f"of {kind} there is {sorted(found)}, and not {name}"
        return found[name]

    def patch(self, kind: str, namespace: str, name: str, change: Json) -> None:
        """A JSON merge patch."""
        self._ask("PATCH", f"{self._path(kind, namespace)}/{name}", change)

    def scale(self, namespace: str, name: str, count: int, account: str) -> None:
        """Set the number of a MachineDeployment, as a service account of the namespace.

        The cluster autoscaler patches it so from its release 1.33 on.
        """
        path = f"{self._path('MachineDeployment', namespace)}/{name}/scale"
        user = f"system:serviceaccount:{namespace}:{account}"
        change = {"spec": {"replicas": count}}
        self._ask("PATCH", path, change, {"Impersonate-User": user})

    def release(self, namespace: str, name: str) -> Json | None:
        """Helm's newest revision of a release, as Helm itself keeps it; None without one."""
        selected = [
            secret
            for secret in self.objects("Secret", namespace)
            if secret["type"] == "helm.sh/release.v1"
            and secret["metadata"]["labels"]["name"] == name
        ]
        if not selected:
            return None
        newest = max(selected, key=lambda one: int(one["metadata"]["labels"]["version"]))
        packed = base64.b64decode(base64.b64decode(newest["data"]["release"]))
        release: Json = json.loads(gzip.decompress(packed))
        return release

    def left(self, namespace: str) -> list[str]:
        """Everything in a namespace that outlives its clusters without need, as ``plural/name``."""
        found = []
        for path, plural in self._kinds:
            try:
                listed = self._ask("GET", f"{path}/namespaces/{namespace}/{plural}")
            except kubernetes.client.ApiException as error:
                if error.status in (404, 405):
                    continue
                raise
            found += [f"{plural}/{one['metadata']['name']}" for one in listed.get("items") or ()]
        return sorted(set(found) - _STAYS)

    def gone(self, namespace: str) -> None:
        """Wait until Kubernetes has removed a namespace that is being deleted.

        :raises AssertionError: it is not being deleted, or it takes too long.
        """
        deadline, obj = time.monotonic() + _REMOVED_AFTER, self._namespace(namespace)
        while obj is not None:
            metadata = obj["metadata"]
            assert metadata.get("deletionTimestamp"), (metadata, self.left(namespace))
            assert time.monotonic() < deadline, f"not after {_REMOVED_AFTER:.0f} s: {obj}"
            time.sleep(0.5)
            obj = self._namespace(namespace)

    def _namespace(self, name: str) -> Json | None:
        try:
            return self._ask("GET", f"/api/v1/namespaces/{name}")
        except kubernetes.client.ApiException as error:
            if error.status != 404:
                raise
            return None

    @functools.cached_property
    def _kinds(self) -> list[tuple[str, str]]:
        """Path and plural of every kind that lives in namespaces and can be listed; not events."""
        groups = self._ask("GET", "/apis")["groups"]
        paths = [f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups]
        return [
            (path, one["name"])
            for path in ("/api/v1", *paths)
            for one in self._ask("GET", path)["resources"]
            if one["namespaced"] and "list" in one["verbs"] and one["name"] != "events"
        ]

    @functools.cached_property
    def _core(self) -> str:
        """The version of Cluster API's objects that is served: the newest one."""
        group = self._ask("GET", "/apis/cluster.x-k8s.io")
        return str(group["preferredVersion"]["version"])

    def _path(self, kind: str, namespace: str) -> str:
        return PATHS[kind].replace(_NEW, self._core).format(f"namespaces/{namespace}")

    def _ask(
        self,
        verb: str,
        path: str,
        body: Json | None = None,
        headers: dict[str, str] | None = None,
    ) -> Json:
        accept = {"Accept": "application/json", **(headers or {})}
        if body is not None:
            accept["Content-Type"] = "application/merge-patch+json"
        request = self._client.param_serialize(
            verb, path, header_params=accept, body=body, auth_settings=["BearerToken"]
        )
        answer = self._client.call_api(*request, _request_timeout=_PATIENCE)
        text = answer.read()
        if not 200 <= answer.status < 300:
            raise kubernetes.client.ApiException(status=answer.status, reason=str(text)[:300])
        parsed: Json = json.loads(text)
        return parsed


@functools.cache
def seen_by_driver() -> Management:
    """The same with the rights that the driver has, and no others."""
    return Management(driver_kubeconfig(setting.state()))


def management() -> Management:
    """The management cluster that is looked at: the sandbox's, unless another one was chosen."""
    return _of(_chosen or kubeconfig(setting.state()))


def choose(path: Path | None) -> None:
    """Look at the management cluster of another kubeconfig from now on; None: at the sandbox's.

    What it serves is asked anew.
    """
    global _chosen
    _chosen = path
    _of.cache_clear()


_chosen: Path | None = None


@functools.cache
def _of(path: Path) -> Management:
    return Management(path)


def answers(limit: float) -> bool:
    """Whether it answers (again) within so many seconds."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        try:
            management().objects("Lease", "default")
            return True
        except Exception:  # whatever the transport raises while nobody is there
            time.sleep(0.5)
    return False


def _newer(thing: Json) -> Json:
    """An object of Cluster API 1.10 with the conditions and counters that it has for v1beta2."""
    status = thing.get("status") or {}
    return {**thing, "status": {**status, **status.get("v1beta2", {})}} if status else thing
