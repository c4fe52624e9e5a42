# SPDX-License-Identifier: Apache-2.0
"""What cluster-api-addon-provider makes of an addon's templates.

Its templates are Jinja with five filters of its own, and four variables.
Source: https://github.com/azimuth-cloud/cluster-api-addon-provider
"""

from __future__ import annotations

import base64
import json
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
    "data": {
        "clouds.yaml": base64.b64encode(b"clouds: {}").decode(),
        "addon-clouds.yaml": base64.b64encode(b"clouds: {}").decode(),
        "cacert": "Q0E=",
    }
}


def credential(cloud: Object, **more: str) -> Object:
    """A Secret with the credential of one cloud, for machines and addons, and further keys."""
    clouds = yaml.safe_dump({"clouds": {"openstack": cloud}}, allow_unicode=True)
    texts = {"clouds.yaml": clouds, "addon-clouds.yaml": clouds, **more}
    return {"data": {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}}


def merge(below: Any, above: Any) -> Any:
    """Maps key by key, lists one after the other, null as nothing, anything else replaced."""
    if above is None:
        return below
    if isinstance(below, dict) and isinstance(above, dict):
        return {
            **below,
            **{key: merge(below.get(key), value) for key, value in above.items()},
        }
    if isinstance(below, list) and isinstance(above, list):
        return below + above
    return above


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(autoescape=False)  # YAML, as the operator has it
    environment.filters.update(
        mergeconcat=merge,
        fromyaml=yaml.safe_load,
        toyaml=lambda value: yaml.safe_dump(json.loads(json.dumps(value))),
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


def values(
    objects: list[Object],
    component: str,
    *,
    cluster: Object = CLUSTER,
    identity: Object = IDENTITY,
) -> Any:
    """Values with which the operator installs the chart of a component.

    :raises ValueError: there is a character beyond 16 bits. The operator writes JSON with two
        escapes for it, and helm reads that as YAML, which knows no such pairs.
    """
    release = addon(objects, component, "HelmRelease")
    secrets = _secrets(objects)
    merged: Any = {}
    for source in release["spec"]["valuesSources"]:
        text = secrets[source["secret"]["name"]][source["secret"]["key"]]
        rendered = _render(text, release, cluster, INFRA_CLUSTER, identity)
        merged = merge(merged, yaml.safe_load(rendered))
    for character in json.dumps(merged, ensure_ascii=False).encode().decode():
        if ord(character) > 0xFFFF:
            raise ValueError(f"helm does not take {character!r} from it: {release['metadata']}")
    return merged


def manifests(
    objects: list[Object],
    component: str,
    *,
    infra: Object = INFRA_CLUSTER,
    identity: Object = IDENTITY,
) -> list[Object]:
    """Objects that the operator installs for a component.

    :raises TypeError: there is an empty document, which it does not survive.
    :raises UnicodeEncodeError: there is half a character, which Helm does not read.
    """
    found = addon(objects, component, "Manifests")
    secrets = _secrets(objects)
    texts = [
        text
        for source in found["spec"]["manifestSources"]
        for text in (
            [source["template"]]
            if "template" in source
            else secrets[source["secret"]["name"]].values()
        )
    ]
    documents = [
        document
        for text in texts
        for document in yaml.safe_load_all(_render(text, found, CLUSTER, infra, identity))
    ]
    for document in documents:
        # Each becomes a file of a chart, which is called after the object.
        _ = document["apiVersion"], document["kind"], document["metadata"]["name"]
        json.dumps(document, ensure_ascii=False).encode()
    return documents


def installed(objects: list[Object], component: str, *, identity: Object = IDENTITY) -> Any:
    """What the operator installs for a component: values of a chart, or objects.

    :raises Exception: whatever the operator fails with.
    """
    make = values if addon(objects, component)["kind"] == "HelmRelease" else manifests
    return make(objects, component, identity=identity)


def addon(objects: list[Object], component: str, kind: str | None = None) -> Object:
    """The HelmRelease or Manifests of a component.

    :raises ValueError: there is none.
    """
    (found,) = (
        found
        for found in addons(objects)
        if kind in (None, found["kind"])
        and found["metadata"]["labels"]["capi.stackhpc.com/component"] == component
    )
    return found


def addons(objects: list[Object]) -> list[Object]:
    """All HelmReleases and Manifests."""
    return [found for found in objects if found["kind"] in ("HelmRelease", "Manifests")]


def component(found: Object) -> str:
    """What the chart calls an addon."""
    name: str = found["metadata"]["labels"]["capi.stackhpc.com/component"]
    return name


def _secrets(objects: list[Object]) -> dict[str, dict[str, str]]:
    return {
        found["metadata"]["name"]: found["stringData"]
        for found in objects
        if found["kind"] == "Secret" and "stringData" in found
    }
