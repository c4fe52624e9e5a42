# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm charts bundle``: every chart and image of a template, with digests."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
import dataclasses
import hashlib
import json
import pathlib
import shutil
import tempfile
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.charts.bundle_contents import (
    BundleContents,
    find_contents,
    kubeadm_images,
)
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import find_template
from magnum.drivers.k8s_capi_helm.commands.output.lister import (
    ExitStatus,
    operator_text,
    OperatorLister,
    Rows,
)
from magnum.drivers.k8s_capi_helm.commands.registry import image_copy
from magnum.drivers.k8s_capi_helm.commands.registry.client import (
    Manifest,
    read_logins,
    RegistryClient,
)
from magnum.drivers.k8s_capi_helm.commands.registry.image_layout import ImageLayout
from magnum.drivers.k8s_capi_helm.commands.registry.image_reference import (
    ImageReference,
    parse_reference,
)
from magnum.drivers.k8s_capi_helm.commands.templates.template_check import first_cluster
from magnum.drivers.k8s_capi_helm.helm import ChartPackages
from magnum.drivers.k8s_capi_helm.labels.value_types.versions import is_full_version, plain
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

COLUMNS = ("Kind", "Name", "Digest", "Needed by", "Finding")
_CHARTS, _LIST, _IMAGES = "charts", "bundle.json", "images"


@dataclasses.dataclass(frozen=True, slots=True)
class BundledImage:
    """An image of a bundle.

    :ivar manifest: None where the registry did not give it.
    :ivar text: why, else "".
    """

    reference: ImageReference
    users: tuple[str, ...]
    manifest: Manifest | None
    text: str = ""


class ChartBundle(OperatorLister):
    """List every chart and container image of a template's clusters, with digests; copy them.

    Charts are rendered with the values of the template's first cluster, and their addons with
    theirs. With --output everything is written into a directory, with --to copied into a registry.
    Exit status 0: everything is listed, and copied, 1: an operator chooses further images itself,
    2: an image cannot be had, 3: a chart cannot be fetched or rendered, or the template is refused.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Of which template, and where it is copied to."""
        parser = super().get_parser(prog_name)
        parser.add_argument("template", metavar="TEMPLATE", help="UUID or name.")
        parser.add_argument(
            "--kubernetes", metavar="VERSION", help="Another version than that of the template."
        )
        parser.add_argument("--output", metavar="DIRECTORY", help="Write everything there.")
        parser.add_argument(
            "--to",
            metavar="REGISTRY[/PATH]",
            help="Copy everything there, by way of --output or of a temporary directory.",
        )
        parser.add_argument(
            "--platform", default="", metavar="OS/ARCH", help="Such as linux/amd64; else all."
        )
        parser.add_argument(
            "--image", action="append", default=[], help="A further image; may be repeated."
        )
        parser.add_argument(
            "--kubeadm-images",
            metavar="FILE",
            help="Output of 'kubeadm config images list' of this version.",
        )
        parser.add_argument("--authfile", help="Logins of registries, as container tools keep it.")
        parser.add_argument(
            "--plain-http",
            action="append",
            default=[],
            metavar="REGISTRY",
            help="A registry that is asked without TLS; may be repeated.",
        )
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each chart and image, and for each note."""
        authfile = pathlib.Path(arguments.authfile) if arguments.authfile else None
        client = RegistryClient(read_logins(authfile), tuple(arguments.plain_http))
        if arguments.to:
            _check_target(arguments.to)
        with tempfile.TemporaryDirectory(prefix="k8s-capi-helm-bundle-") as work:
            contents = _contents(run, arguments, pathlib.Path(work))
            images = [
                _resolved(client, reference, tuple(users), arguments.platform)
                for reference, users in sorted(contents.images.items(), key=lambda one: str(one[0]))
            ]
            if arguments.output or arguments.to:
                directory = pathlib.Path(arguments.output or f"{work}/output")
                _write(client, contents, images, directory)
                if arguments.to:
                    _push(client, contents, images, directory, arguments.to)
            rows = [*_chart_rows(contents), *map(_image_row, images)]
        rows += [("note", "", "", "", note) for note in dict.fromkeys(contents.notes)]
        status = ExitStatus.WARNING if contents.notes else ExitStatus.OK
        if any(image.manifest is None for image in images):
            status = ExitStatus.CRITICAL
        return COLUMNS, rows, status


def _check_target(text: str) -> None:
    """Refuse a place without a registry: it would be another one than the operator has in mind.

    :raises errors.InvalidRequest: it names none.
    """
    if parse_reference(f"{text}/name").host != text.partition("/")[0]:
        raise errors.InvalidRequest(
            f"--to takes a registry with its domain or port, and a path. It is '{text}'."
        )


def _contents(
    run: Reconciliation, arguments: argparse.Namespace, work: pathlib.Path
) -> BundleContents:
    """What a template's first cluster needs.

    :raises errors.DriverError: the template is refused, or a chart cannot be rendered.
    """
    chart, values = first_cluster(run, find_template(arguments.template), {})
    if arguments.kubernetes:
        if not is_full_version(arguments.kubernetes):
            raise errors.InvalidRequest(
                f"--kubernetes takes a full version. It is '{arguments.kubernetes}': write for "
                "example v1.36.3."
            )
        values = {**values, "kubernetesVersion": plain(arguments.kubernetes)}
    packages = ChartPackages(timeout=run.settings.capi_helm.helm_timeout)
    (work / "packages").mkdir()
    contents = find_contents(packages, chart, values, work / "packages")
    for text in _kubeadm_images(arguments.kubeadm_images, contents.kubernetes_version):
        contents.add_image(text, "kubeadm")
    for text in arguments.image:
        parse_reference(text)
        contents.add_image(text, "--image")
    return contents


def _kubeadm_images(path: str | None, version: str) -> tuple[str, ...]:
    """Those of a list that kubeadm has printed, or of the newest patch release.

    :raises errors.InvalidRequest: the list cannot be read, or is of another version.
    """
    if path is None:
        return kubeadm_images(version)
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InvalidRequest(
            f"The list of kubeadm's images cannot be read. {path}: {error}."
        ) from None
    if not any(line.endswith(f"/kube-apiserver:v{version}") for line in lines):
        raise errors.InvalidRequest(
            f"The list of kubeadm's images is of another version. {path} has no kube-apiserver of "
            f"v{version}."
        )
    return tuple(lines)


def _resolved(
    client: RegistryClient, reference: ImageReference, users: tuple[str, ...], platform: str
) -> BundledImage:
    try:
        _, manifest = image_copy.choose_platform(client, reference, platform)
    except errors.DriverError as error:
        return BundledImage(reference, users, None, operator_text(error))
    return BundledImage(reference, users, manifest)


def _write(
    client: RegistryClient,
    contents: BundleContents,
    images: list[BundledImage],
    directory: pathlib.Path,
) -> None:
    """Write everything into a directory; what is there already is not fetched again.

    :raises errors.DriverError: it cannot be written, or a registry does not answer.
    """
    layout = ImageLayout(directory / _IMAGES)
    try:
        (directory / _CHARTS).mkdir(exist_ok=True)
        for chart in contents.charts:
            shutil.copyfile(chart.package, directory / _CHARTS / chart.package.name)
        text = json.dumps(_list(contents, images), indent=2) + "\n"
        (directory / _LIST).write_text(text, encoding="utf-8")
    except OSError as error:
        raise errors.InvalidRequest(
            f"The directory cannot be written. {directory}: {error.strerror or error}."
        ) from None
    written = [(image, image.manifest) for image in images if image.manifest is not None]
    for image, manifest in written:
        image_copy.save_image(client, layout, image.reference, manifest)
    layout.write_index((str(image.reference), manifest) for image, manifest in written)


def _list(contents: BundleContents, images: list[BundledImage]) -> Json:
    """The list of everything, for who checks or copies it with other tools."""
    return {
        "kubernetesVersion": contents.kubernetes_version,
        "charts": [
            {
                "name": chart.name,
                "version": chart.version,
                "source": chart.source,
                "file": chart.package.name,
                "digest": _file_digest(chart.package),
            }
            for chart in contents.charts
        ],
        "images": [
            {
                "name": str(image.reference),
                "digest": image.manifest.digest if image.manifest else None,
                "neededBy": list(image.users),
            }
            for image in images
        ],
        "notes": list(dict.fromkeys(contents.notes)),
    }


def _push(
    client: RegistryClient,
    contents: BundleContents,
    images: list[BundledImage],
    directory: pathlib.Path,
    prefix: str,
) -> None:
    """Copy everything of a directory into one registry, images under their whole names.

    :raises errors.DriverError: the registry refuses, or does not answer.
    """
    layout = ImageLayout(directory / _IMAGES)
    for image in images:
        if image.manifest is not None:
            reference = image.reference
            tag = f":{reference.tag}" if reference.tag else f"@{reference.digest}"
            host = reference.host.replace(":", "-")
            target = parse_reference(f"{prefix}/{host}/{reference.repository}{tag}")
            image_copy.push_image(client, layout, target, image.manifest)
    for chart in contents.charts:
        with tempfile.TemporaryDirectory() as work:
            # Tags have no plus sign, and Helm writes this instead.
            tag = chart.version.replace("+", "_")
            target = parse_reference(f"{prefix}/charts/{chart.name}:{tag}")
            image_copy.push_chart(client, target, chart.package, pathlib.Path(work))


def _file_digest(path: pathlib.Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def _chart_rows(contents: BundleContents) -> Iterator[tuple[Any, ...]]:
    for chart in contents.charts:
        digest = _file_digest(chart.package)
        yield "chart", f"{chart.name} {chart.version}", digest, chart.source or "clusters", ""


def _image_row(image: BundledImage) -> tuple[Any, ...]:
    digest = image.manifest.digest if image.manifest else ""
    return "image", str(image.reference), digest, ", ".join(image.users), image.text
