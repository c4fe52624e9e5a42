# SPDX-License-Identifier: Apache-2.0
"""What cluster-api-addon-provider makes of an addon's templates, as the sandbox plays it.

``test_addon_providers`` holds that to the real one.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import yaml

from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object
from sandbox.addons import rules, templates

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
    merged = _rendered(release, objects, cluster, INFRA_CLUSTER, identity)
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
    documents: list[Object] = _rendered(found, objects, CLUSTER, infra, identity)
    templates.files(documents)
    for document in documents:
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


def _rendered(
    found: Object, objects: list[Object], cluster: Object, infra: Object, identity: Object
) -> Any:
    sources = {
        ("Secret", one["metadata"]["name"]): {
            "data": {
                key: base64.b64encode(text.encode()).decode()
                for key, text in one["stringData"].items()
            }
        }
        for one in objects
        if one["kind"] == "Secret" and "stringData" in one
    }
    seen = rules.Seen(found, cluster=cluster, infra_cluster=infra, identity=identity)
    return templates.render(found, sources, seen.context())
