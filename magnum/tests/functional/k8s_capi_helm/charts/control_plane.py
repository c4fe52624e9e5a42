# SPDX-License-Identifier: Apache-2.0
"""The control plane of a rendered cluster: what kubeadm is told, and the files of its machines."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object

#: Where the operator's own word on kubeadm's ClusterConfiguration stands in the values.
OWN = "controlPlane.kubeadmConfigSpec.clusterConfiguration"


def rendered(change: Mapping[str, Any] | None = None, scenario: str = "minimal") -> list[Object]:
    """A scenario with other values at dotted paths, without addons."""
    values = rendering.scenarios(rendering.CLUSTER)[scenario].values
    values = rendering.changed(values, {"addons.enabled": False, **(change or {})})
    return rendering.render(rendering.CLUSTER, values)


def kubeadm(objects: list[Object]) -> Any:
    """kubeadmConfigSpec of the control plane."""
    return rendering.only(objects, "KubeadmControlPlane")["spec"]["kubeadmConfigSpec"]


def flags(found: Any) -> dict[str, str]:
    """Flags of a part of kubeadm's configuration, in the shape of either version."""
    given = found.get("extraArgs", found.get("kubeletExtraArgs", {}))
    if isinstance(given, list):
        names = [one["name"] for one in given]
        assert len(set(names)) == len(names), f"a flag twice: {names}"
        return {one["name"]: one["value"] for one in given}
    return dict(given)


def api_server_flags(change: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Flags of the API server."""
    return flags(kubeadm(rendered(change))["clusterConfiguration"]["apiServer"])


def bodies(objects: list[Object]) -> dict[str, str]:
    """Path -> text of the control plane's files, read as Cluster API and cloud-init read them."""
    secrets = {one["metadata"]["name"]: one for one in rendering.by_kind(objects, "Secret")}
    result = {}
    for one in kubeadm(objects).get("files", []):
        text = one.get("content")
        if text is None:
            source = one["contentFrom"]["secret"]
            if source["name"] not in secrets:
                continue  # the operator's own
            text = secrets[source["name"]]["stringData"][source["key"]]
        if one.get("encoding") == "base64":
            text = base64.b64decode(text).decode()
        else:
            assert not any(mark in text for mark in ("{{", "{%", "{#")), one["path"]
        result[one["path"]] = text
    return result
