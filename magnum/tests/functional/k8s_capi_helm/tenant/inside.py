# SPDX-License-Identifier: Apache-2.0
"""What a tenant does in a cluster whose API server is a real one, and what runs for it."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import kubernetes

from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from magnum.tests.functional.k8s_capi_helm.sandbox.workload import Json, Workload
from magnum.tests.functional.k8s_capi_helm.waiting import until
from sandbox import processes
from sandbox.management import controllers

NAMESPACE = "default"
GUARD = "guard"


def ask(workload: Workload, verb: str, path: str, body: Json | None = None) -> Json:
    """A request as the cluster's administrator.

    :raises kubernetes.client.ApiException: it is refused.
    """
    return workload._ask(verb, path, body)


def refusal(workload: Workload, verb: str, path: str, body: Json | None = None) -> int:
    """The status of a request that is refused, 0 of one that is not."""
    try:
        ask(workload, verb, path, body)
    except kubernetes.client.ApiException as error:
        return int(error.status)
    return 0


def pods(workload: Workload, namespace: str = NAMESPACE, query: str = "") -> list[Json]:
    """Pods of a namespace."""
    path = f"/api/v1/namespaces/{namespace}/pods{query}"
    found: list[Json] = ask(workload, "GET", path)["items"]
    return found


def deploy_guard(workload: Workload) -> str:
    """A Deployment of one pod that a PodDisruptionBudget never lets go; the node of the pod."""
    labels = {"app": GUARD}
    spec = {"containers": [{"name": GUARD, "image": "example.org/guard"}]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    selector = {"matchLabels": labels}
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
    body = {"replicas": 1, "selector": selector, "template": template}
    ask(workload, "POST", path, {"metadata": {"name": GUARD}, "spec": body})
    budget = {"minAvailable": 1, "selector": selector}
    ask(workload, "POST", _budgets(), {"metadata": {"name": GUARD}, "spec": budget})
    return str(until(lambda: guard_node(workload), "a pod that runs"))


def guard_node(workload: Workload) -> str:
    """The node of the guard that is ready, "" without one."""
    for pod in pods(workload):
        ready = [
            one["status"] for one in pod["status"].get("conditions") or () if one["type"] == "Ready"
        ]
        if "deletionTimestamp" not in pod["metadata"] and ready == ["True"]:
            return str(pod["spec"]["nodeName"])
    return ""


def release_guard(workload: Workload) -> None:
    """Take the budget away."""
    ask(workload, "DELETE", f"{_budgets()}/{GUARD}")


def helm_releases(workload: Workload) -> dict[str, Json]:
    """The newest revision of each Helm release in the cluster, by its name."""
    listed = ask(workload, "GET", "/api/v1/secrets?fieldSelector=type%3Dhelm.sh/release.v1")
    found: dict[str, Json] = {}
    for secret in listed["items"]:
        packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
        release = json.loads(gzip.decompress(packed))
        known = found.get(release["name"])
        if known is None or known["version"] < release["version"]:
            found[release["name"]] = release
    return found


def children(cluster: str) -> dict[int, str]:
    """Command lines of the processes of a cluster, by pid.

    :param cluster: name of the Cluster, which is a part of each command line's paths.
    """
    found = {}
    for pid in processes.members(setting.state(), controllers.MACHINES):
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        if f"/{cluster}/" in line:
            found[pid] = line
    return found


def _budgets() -> str:
    return f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
