# SPDX-License-Identifier: Apache-2.0
"""The charts and container images that a cluster of a template needs, found by rendering."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import pathlib
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.chart_store import archive
from magnum.drivers.k8s_capi_helm.commands.charts.addon_values import (
    addon_objects,
    addon_values,
    is_addon,
)
from magnum.drivers.k8s_capi_helm.commands.registry.image_reference import (
    ImageReference,
    parse_reference,
)
from magnum.drivers.k8s_capi_helm.helm import ChartPackages
from magnum.drivers.k8s_capi_helm.labels.value_types.versions import plain
from magnum.drivers.k8s_capi_helm.model import Chart, conditions, Json

_REGISTRY = "registry.k8s.io"
_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
#: What kubeadm pulls besides, in the newest patch release of each minor: CoreDNS, etcd, pause.
#: https://github.com/kubernetes/kubernetes/blob/v1.36.3/cmd/kubeadm/app/constants/constants.go
KUBEADM_IMAGES: Mapping[str, tuple[str, str, str]] = {
    "1.32": ("v1.11.3", "3.5.24-0", "3.10"),
    "1.33": ("v1.12.0", "3.5.24-0", "3.10"),
    "1.34": ("v1.12.1", "3.6.5-0", "3.10.1"),
    "1.35": ("v1.13.1", "3.6.6-0", "3.10.1"),
    "1.36": ("v1.14.2", "3.6.8-0", "3.10.2"),
}
#: Objects whose operators choose images that stand in no manifest: group and kind.
_OPERATORS = frozenset(
    {
        ("operator.tigera.io", "Installation"),
        ("operator.tigera.io", "APIServer"),
        ("mellanox.com", "NicClusterPolicy"),
        ("deviceplugin.intel.com", "GpuDevicePlugin"),
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class BundledChart:
    """A chart of a bundle.

    :ivar source: its repository, "" for the cluster's own chart.
    :ivar package: where its package is.
    """

    name: str
    version: str
    source: str
    package: pathlib.Path


@dataclasses.dataclass(slots=True)
class BundleContents:
    """What a cluster needs.

    :ivar images: what needs each image.
    :ivar notes: sentences about images that could not be found so.
    """

    kubernetes_version: str
    charts: list[BundledChart] = dataclasses.field(default_factory=list)
    images: dict[ImageReference, list[str]] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)

    def add_images(self, objects: Iterable[Json], user: str) -> None:
        """Add the images of rendered objects."""
        for obj in objects:
            group = str(obj.get("apiVersion")).partition("/")[0]
            if (group, obj.get("kind")) in _OPERATORS:
                self.notes.append(
                    f"{obj['kind']} of {user}: its operator chooses images that no manifest names. "
                    "Ask it for their list, and add them with --image."
                )
            for text in _image_texts(obj):
                self.add_image(text, user)

    def add_image(self, text: str, user: str) -> None:
        """Add an image; a text that is none becomes a note."""
        try:
            reference = parse_reference(text)
        except errors.InvalidRequest as error:
            self.notes.append(f"{user}: {error}")
            return
        users = self.images.setdefault(reference, [])
        if user not in users:
            users.append(user)


def kubeadm_images(version: str) -> tuple[str, ...]:
    """The images that kubeadm pulls for a version of Kubernetes.

    :raises errors.InvalidRequest: its minor version is not known.
    """
    minor = ".".join(plain(version).split(".")[:2])
    if minor not in KUBEADM_IMAGES:
        raise errors.InvalidRequest(
            f"The images of this version of Kubernetes are not known. It is {version}; known are "
            f"{', '.join(KUBEADM_IMAGES)}. Give the list of 'kubeadm config images list' with "
            "--kubeadm-images."
        )
    dns, etcd, pause = KUBEADM_IMAGES[minor]
    programs = (f"{_REGISTRY}/{program}:v{plain(version)}" for program in _PROGRAMS)
    others = (f"coredns/coredns:{dns}", f"etcd:{etcd}", f"pause:{pause}")
    return (*programs, *(f"{_REGISTRY}/{other}" for other in others))


def find_contents(
    packages: ChartPackages, chart: Chart, values: Json, directory: pathlib.Path
) -> BundleContents:
    """Everything that the first cluster of a template needs, besides kubeadm's images.

    :param values: of the cluster.
    :param directory: an empty one, for the packages.
    :raises errors.DriverError: a chart cannot be fetched or rendered.
    """
    version = plain(values["kubernetesVersion"])
    contents = BundleContents(version)
    package = _place(directory, "cluster") / f"{chart.name}-{chart.version}.tgz"
    package.write_bytes(archive.pack_chart(pathlib.Path(chart.path), chart.name))
    contents.charts.append(BundledChart(chart.name, chart.version, "", package))
    objects = packages.render("bundle", package, values, "bundle", version)
    title = f"{chart.name} {chart.version}"
    contents.add_images((obj for obj in objects if not is_addon(obj)), title)
    for addon in filter(is_addon, objects):
        _add_addon(packages, contents, addon, objects, directory)
    return contents


def _add_addon(
    packages: ChartPackages,
    contents: BundleContents,
    addon: Json,
    objects: list[Json],
    directory: pathlib.Path,
) -> None:
    """Add the chart and the images of an addon.

    :raises errors.DriverError: its chart cannot be fetched or rendered.
    """
    name = conditions.name(addon).removeprefix("bundle-")
    if addon["kind"] == "Manifests":
        contents.add_images(addon_objects(addon, objects), f"addon {name}")
        return
    chart = addon["spec"]["chart"]
    key = (str(chart["name"]), str(chart["version"]), str(chart["repo"]))
    for bundled in contents.charts:
        if (bundled.name, bundled.version, bundled.source) == key:
            package = bundled.package
            break
    else:
        place = _place(directory, f"addon-{len(contents.charts)}")
        package = packages.fetch(key[2], key[0], key[1], place)
        contents.charts.append(BundledChart(*key, package))
    namespace = str(addon["spec"].get("targetNamespace") or "default")
    values = addon_values(addon, objects)
    rendered = packages.render(name, package, values, namespace, contents.kubernetes_version)
    contents.add_images(rendered, f"addon {name}")


def _place(directory: pathlib.Path, name: str) -> pathlib.Path:
    place = directory / name
    place.mkdir()
    return place


def _image_texts(value: Any) -> Iterator[str]:
    """The names of images in an object, wherever in it."""
    if isinstance(value, list):
        for item in value:
            yield from _image_texts(item)
    elif isinstance(value, dict):
        parts = tuple(value.get(key) for key in ("repository", "image", "version"))
        if all(isinstance(part, str) and part for part in parts):
            # As custom resources of operators have it.
            separator = "@" if str(parts[2]).startswith("sha256:") else ":"
            yield f"{parts[0]}/{parts[1]}{separator}{parts[2]}"
        elif isinstance(value.get("image"), str) and value["image"]:
            yield value["image"]
        for key, item in value.items():
            if key in ("args", "command", "env"):
                yield from _arguments(item)
            elif key not in ("image", "openAPIV3Schema"):
                yield from _image_texts(item)


def _arguments(items: Any) -> Iterator[str]:
    """Images that a program is given: by a flag, or by a variable."""
    for item in items if isinstance(items, list) else ():
        text = item.get("value") if isinstance(item, dict) else item
        if isinstance(text, str):
            name = text.partition("=")[2] if text.startswith("-") else text
            if _is_whole_name(name):
                yield name


def _is_whole_name(text: str) -> bool:
    """Whether a text is an image with its registry and its version, and nothing else."""
    host, _, rest = text.partition("/")
    if "." not in host or ":" not in rest:
        return False
    try:
        return parse_reference(text).host == host
    except errors.InvalidRequest:
        return False
