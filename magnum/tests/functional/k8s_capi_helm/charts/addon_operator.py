# SPDX-License-Identifier: Apache-2.0
"""What cluster-api-addon-provider makes of an addon's templates.

Its templates are Jinja with five filters of its own, and four variables.
Source: https://github.com/azimuth-cloud/cluster-api-addon-provider
"""

from __future__ import annotations

import base64
from typing import Any

import jinja2
import yaml

from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object

CLUSTER: Object = {
    "metadata": {"name": "demo"},
    "spec": {
        "clusterNetwork": {"pods": {"cidrBlocks": ["172.16.0.0/13", "fd00:100::/64"]}},
        "controlPlaneEndpoint": {"host": "192.0.2.10", "port": 6443},
    },
}
INFRA_CLUSTER: Object = {
    "status": {"network": {"name": 'k8s "demo" \\ net'}, "externalNetwork": {"id": "ext-id"}},
}
IDENTITY: Object = {
    "data": {"clouds.yaml": base64.b64encode(b"clouds: {}").decode(), "cacert": "Q0E="}
}


def _merge(below: Any, above: Any) -> Any:
    """Maps key by key, lists one after the other, null as nothing, anything else replaced."""
    if above is None:
        return below
    if isinstance(below, dict) and isinstance(above, dict):
        return {
            **below,
            **{key: _merge(below.get(key), value) for key, value in above.items()},
        }
    if isinstance(below, list) and isinstance(above, list):
        return below + above
    return above


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(autoescape=False)  # YAML, as the operator has it
    environment.filters.update(
        mergeconcat=_merge,
        fromyaml=yaml.safe_load,
        toyaml=yaml.safe_dump,
        b64encode=lambda data: base64.b64encode(data).decode(),
        b64decode=lambda data: base64.b64decode(data).decode(),
    )
    return environment


def _render(text: str, addon: Object, cluster: Object, infra: Object, identity: Object) -> str:
    return (
        _environment()
        .from_string(text)
        .render(addon=addon, cluster=cluster, infra_cluster=infra, cloud_identity=identity)
    )


def values(objects: list[Object], component: str) -> Any:
    """Values with which the operator installs the chart of a component."""
    release = _addon(objects, "HelmRelease", component)
    secrets = {
        found["metadata"]["name"]: found["stringData"]
        for found in objects
        if found["kind"] == "Secret"
    }
    merged: Any = {}
    for source in release["spec"]["valuesSources"]:
        text = secrets[source["secret"]["name"]][source["secret"]["key"]]
        rendered = _render(text, release, CLUSTER, INFRA_CLUSTER, IDENTITY)
        merged = _merge(merged, yaml.safe_load(rendered))
    return merged


def manifests(
    objects: list[Object],
    component: str,
    *,
    infra: Object = INFRA_CLUSTER,
    identity: Object = IDENTITY,
) -> list[Object]:
    """Objects that the operator installs for a component."""
    addon = _addon(objects, "Manifests", component)
    return [
        document
        for source in addon["spec"]["manifestSources"]
        for document in yaml.safe_load_all(
            _render(source["template"], addon, CLUSTER, infra, identity)
        )
        if document
    ]


def _addon(objects: list[Object], kind: str, component: str) -> Object:
    (found,) = (
        found
        for found in objects
        if found["kind"] == kind
        and found["metadata"]["labels"]["capi.stackhpc.com/component"] == component
    )
    return found
