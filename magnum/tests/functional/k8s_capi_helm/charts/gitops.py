# SPDX-License-Identifier: Apache-2.0
"""The kinds of Flux and Argo CD that the documents show: their shape, and what they hand to Helm.

The shapes are closed: a field that is not here is a fault, so that an example cannot have a
misspelt one that its controller would ignore. They hold what the examples use and not more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
import re
from typing import Any

from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Values

#: Anything; its content is somebody else's.
OPEN = object()
INTERVAL = re.compile(r"([0-9]+h)?([0-9]+m)?([0-9]+s)?")
VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
URL = re.compile(r"(https|oci)://\S+")
CHART_LAYER = re.compile(r"application/vnd\.cncf\.helm\.chart\.content\.v1\.tar\+gzip")

_METADATA = {"name": NAME, "namespace?": NAME, "annotations?": OPEN}
_RETRY = {"disableWait?": bool, "strategy?": {"name": re.compile("RetryOnFailure")}}
_REFERENCE = {"kind": re.compile("HelmRepository|OCIRepository"), "name": NAME}

#: (apiVersion, kind) -> field -> what it holds; "?" marks one that may be missing.
SHAPES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("source.toolkit.fluxcd.io/v1", "OCIRepository"): {
        "metadata": _METADATA,
        "spec": {
            "interval": INTERVAL,
            "url": re.compile(r"oci://\S+"),
            "ref": {"tag": VERSION},
            "layerSelector": {
                "mediaType": CHART_LAYER,
                "operation": re.compile("copy"),
            },
        },
    },
    ("source.toolkit.fluxcd.io/v1", "HelmRepository"): {
        "metadata": _METADATA,
        "spec": {"interval": INTERVAL, "url": URL},
    },
    ("helm.toolkit.fluxcd.io/v2", "HelmRelease"): {
        "metadata": _METADATA,
        "spec": {
            "interval": INTERVAL,
            "releaseName": NAME,
            "targetNamespace": NAME,
            "storageNamespace": NAME,
            "chart?": {
                "spec": {"chart": NAME, "version": VERSION, "sourceRef": _REFERENCE},
            },
            "chartRef?": _REFERENCE,
            "install": _RETRY,
            "upgrade": {**_RETRY, "chartNameChangeStrategy?": re.compile("InPlaceUpdate")},
            "uninstall?": {"disableWait": bool},
            "driftDetection?": {"mode": re.compile("enabled|warn|disabled")},
            "values?": OPEN,
            "valuesFrom?": [{"kind": re.compile("ConfigMap|Secret"), "name": NAME}],
        },
    },
    ("argoproj.io/v1alpha1", "Application"): {
        "metadata": _METADATA,
        "spec": {
            "project": NAME,
            "source": {
                "repoURL": re.compile(r"(https://)?\S+"),
                "chart": NAME,
                "targetRevision": VERSION,
                "helm": {"releaseName": NAME, "valuesObject": OPEN},
            },
            "destination": {"server": URL, "namespace": NAME},
            "syncPolicy": {
                "automated": {"prune": bool, "selfHeal": bool},
                "syncOptions": [
                    re.compile(
                        "(ServerSideApply|RespectIgnoreDifferences|FailOnSharedResource)=true"
                    )
                ],
            },
            "ignoreDifferences?": [
                {
                    "group": NAME,
                    "kind": re.compile("[A-Za-z]+"),
                    "name": NAME,
                    "jsonPointers": [re.compile("(/[A-Za-z]+)+")],
                }
            ],
        },
    },
}


def faults(found: Object) -> list[str]:
    """What is wrong with the shape of an object."""
    identity = (found.get("apiVersion", ""), found.get("kind", ""))
    if identity not in SHAPES:
        return [f"nothing is known of {' '.join(identity)}"]
    rest = {key: value for key, value in found.items() if key not in ("apiVersion", "kind")}
    return list(_faults(rest, SHAPES[identity], identity[1]))


def _faults(found: Any, shape: Any, path: str) -> Iterator[str]:
    if shape is OPEN:
        return
    if isinstance(shape, Mapping):
        if not isinstance(found, dict):
            yield f"{path} is no map"
            return
        optional = {name.removesuffix("?"): name for name in shape}
        yield from (f"{path} has no field {name}" for name in found if name not in optional)
        for name, wanted in optional.items():
            if name in found:
                yield from _faults(found[name], shape[wanted], f"{path}.{name}")
            elif not wanted.endswith("?"):
                yield f"{path}.{name} is missing"
    elif isinstance(shape, list):
        if not isinstance(found, list) or not found:
            yield f"{path} is no list of something"
            return
        for number, item in enumerate(found):
            yield from _faults(item, shape[0], f"{path}[{number}]")
    elif isinstance(shape, re.Pattern):
        if not isinstance(found, str) or not shape.fullmatch(found):
            yield f"{path} is {found!r}"
    elif not isinstance(found, shape):
        yield f"{path} is {found!r}"


@dataclass(frozen=True)
class Release:
    """What an object makes of a chart.

    :ivar values: None where they stand in another object.
    """

    name: str
    namespace: str
    chart: str
    version: str
    values: Values | None


def release(found: Object, others: list[Object]) -> Release:
    """The release that a HelmRelease or an Application asks for.

    :param others: what stands in the same file; the sources among it.
    """
    spec = found["spec"]
    if found["kind"] == "Application":
        source = spec["source"]
        return Release(
            source["helm"]["releaseName"],
            spec["destination"]["namespace"],
            source["chart"],
            source["targetRevision"],
            source["helm"]["valuesObject"],
        )
    reference = spec.get("chartRef") or spec["chart"]["spec"]["sourceRef"]
    (place,) = [
        one
        for one in others
        if one["kind"] == reference["kind"]
        and one["metadata"]["name"] == reference["name"]
        and one["metadata"]["namespace"] == found["metadata"]["namespace"]
    ]
    if "chart" in spec:
        chart, version = spec["chart"]["spec"]["chart"], spec["chart"]["spec"]["version"]
    else:
        chart = place["spec"]["url"].rpartition("/")[2]
        version = place["spec"]["ref"]["tag"]
    return Release(spec["releaseName"], spec["targetNamespace"], chart, version, spec.get("values"))
