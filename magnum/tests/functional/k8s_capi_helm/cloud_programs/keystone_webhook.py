# SPDX-License-Identifier: Apache-2.0
"""The objects that k8s-keystone-auth is installed with, and the API server's files that name it.

The addon's chart is in no package: ``KEYSTONE_AUTH_CHART`` names a directory with it. Without one
these tests have objects of their own, with the flags of that chart and a shorter policy.
https://github.com/catalyst-cloud/capi-plugin-helm-charts/tree/main/charts/k8s-keystone-auth
"""

from __future__ import annotations

import json
import os
from pathlib import Path
import re
from typing import Any

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.cloud_programs.addon import Addon
from magnum.tests.functional.k8s_capi_helm.cloud_programs.tenant_api import Object
from sandbox.management.pki import write_private

CHART = "KEYSTONE_AUTH_CHART"
ADMINISTRATOR, READER = "k8s_admin", "k8s_viewer"
#: A namespace that the policy keeps from readers.
SYSTEM = "kube-system"
_NAME, _POLICY = "k8s-keystone-auth", "k8s-keystone-auth-policy"
_KEYS = "/etc/kubernetes/pki"
_PORT = 8443


def objects(addon: Addon) -> list[Object]:
    """What the addon's chart makes of its values."""
    values = addon.content()
    chart = os.environ.get(CHART)
    if not chart:
        return _own(values["openstackAuthUrl"], values["projectId"])
    asked = ("template", _NAME, Path(chart).resolve(), f"--namespace={addon.namespace}")
    text = rendering.run(*asked, "--values=-", stdin=json.dumps(values))
    return [one for one in rendering.documents(text) if one["kind"] != "Pod"]


def flags(control_plane: Object, folder: Path, port: int) -> dict[str, str]:
    """The flags of a cluster's API server that name its webhook, with their files in a folder.

    :param control_plane: the KubeadmControlPlane.
    :param port: of the webhook here.
    """
    spec = control_plane["spec"]["kubeadmConfigSpec"]
    arguments = spec["clusterConfiguration"]["apiServer"]["extraArgs"]
    found = {
        one["name"]: str(folder / Path(one["value"]).name)
        for one in arguments
        if "/keystone-auth/" in one["value"]
    }
    for one in spec["files"]:
        path = Path(one["path"])
        if path.parent.name == "keystone-auth":
            text = one["content"].replace(str(path.parent), str(folder))
            write_private(folder / path.name, re.sub(rf":{_PORT}\b", f":{port}", text).encode())
    return found


def _own(url: str, project: str) -> list[Object]:
    """Objects of these tests' own, for when the chart is not given."""
    policy = [
        _rule(ADMINISTRATOR, project, {"*/*": ["*"]}),
        _rule(READER, project, {f"!['{SYSTEM}']/['pods', 'secrets']": ["get", "list", "watch"]}),
    ]
    account = {"name": _NAME, "namespace": SYSTEM}
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]},
    ]
    subject = {"kind": "ServiceAccount", **account}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _NAME}
    rbac = "rbac.authorization.k8s.io/v1"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        {
            "apiVersion": rbac,
            "kind": "ClusterRole",
            "metadata": {"name": _NAME},
            "rules": rules,
        },
        {
            "apiVersion": rbac,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": _NAME},
            "roleRef": role,
            "subjects": [subject],
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": _POLICY, "namespace": SYSTEM},
            "data": {"policies": json.dumps(policy)},
        },
        _workload(url),
    ]


def _rule(role: str, project: str, permissions: dict[str, list[str]]) -> Object:
    users = {"roles": [role], "projects": [project]}
    return {"users": users, "resource_permissions": permissions}


def _workload(url: str) -> Object:
    arguments = {
        "tls-cert-file": f"{_KEYS}/apiserver.crt",
        "tls-private-key-file": f"{_KEYS}/apiserver.key",
        "policy-configmap-name": _POLICY,
        "keystone-url": url,
        "listen": f"127.0.0.1:{_PORT}",
    }
    container: dict[str, Any] = {
        "name": _NAME,
        "image": _NAME,
        "args": [
            f"./bin/{_NAME}",
            *(part for key, value in arguments.items() for part in (f"--{key}", value)),
        ],
        "volumeMounts": [{"name": "keys", "mountPath": _KEYS, "readOnly": True}],
    }
    pod = {
        "serviceAccountName": _NAME,
        "containers": [container],
        "volumes": [{"name": "keys", "hostPath": {"path": _KEYS}}],
    }
    labels = {"app": _NAME}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": _NAME, "namespace": SYSTEM},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
