# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm images``: which image gives which Kubernetes version, and what is wrong of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
import dataclasses

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.preflight import machines
from magnum.drivers.k8s_capi_helm.commands.lookup.templates import (
    member_project,
    shown_templates,
    Template,
)
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus, OperatorLister, Rows
from magnum.drivers.k8s_capi_helm.labels.value_types import versions
from magnum.drivers.k8s_capi_helm.model import cloud, Image, ListedImage, names
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

COLUMNS = (
    "Image",
    "ID",
    "Kubernetes",
    "Distro",
    "Architecture",
    "Visibility",
    "Templates",
    "Status",
    "Finding",
)
#: Properties by which Nova chooses a host, the one that it reads first at the front
#: (https://docs.openstack.org/glance/latest/admin/useful-image-properties.html).
_ARCHITECTURES = ("hw_architecture", "architecture")
#: Of Kubernetes' own programs and images, in Nova's words (https://kubernetes.io/releases/download).
_KNOWN = ("x86_64", "aarch64", "ppc64le", "s390x")
_DRIVER = "magnum_driver"
_UNUSED = "No template that users see has this image."


@dataclasses.dataclass(slots=True)
class ImageUse:
    """An image, and the templates that have it.

    :ivar listed_image: None where Glance shows the templates' users none.
    :ivar templates: that users see.
    :ivar problems: sentences about the image, and about it in a template.
    """

    listed_image: ListedImage | None
    templates: list[Template] = dataclasses.field(default_factory=list)
    problems: list[str] = dataclasses.field(default_factory=list)

    @property
    def status(self) -> ExitStatus:
        """A fault of what users are offered is critical, any other one a warning."""
        if not self.templates:
            return ExitStatus.WARNING
        return ExitStatus.CRITICAL if self.problems else ExitStatus.OK


class Images(OperatorLister):
    """List the images that clusters can be created from, by Kubernetes version, with their faults.

    An image is listed if it has the property kube_version, names this driver, or is the image of a
    template. Exit status 0: all are well, 1: one that no template has is left over or has a fault,
    2: an image that users are offered has a fault, or there is none for the version, 3: it could
    not be found out.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which images, and what they have to be."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--kubernetes", metavar="VERSION", help="Only those of this version, or its beginning."
        )
        parser.add_argument(
            "--architecture",
            choices=_KNOWN,
            help="Of the cloud's hosts: an image of another one is a fault.",
        )
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each image, the newest version first."""
        uses = image_uses(run, arguments.architecture)
        if arguments.kubernetes:
            begin = versions.plain(arguments.kubernetes)
            uses = [use for use in uses if _is_version(use.listed_image, begin)]
            if not any(use.status is ExitStatus.OK for use in uses):
                text = f"No image without a fault gives users Kubernetes {begin}."
                row = ("", "", begin, "", "", "", "", ExitStatus.CRITICAL.name, text)
                return COLUMNS, [*map(_row, uses), row], ExitStatus.CRITICAL
        return COLUMNS, map(_row, uses), max((use.status for use in uses), default=ExitStatus.OK)


def image_uses(run: Reconciliation, architecture: str | None) -> list[ImageUse]:
    """The images for clusters, the newest Kubernetes version first.

    :param architecture: of the cloud's hosts, None where they have several.
    :raises errors.DriverError: Glance or the database cannot be read.
    """
    all_images = run.cloud().image_catalogue.list_all()
    templates = shown_templates()
    uses = {listed.image.id: ImageUse(listed) for listed in all_images if _is_for_clusters(listed)}
    listed_by_id = {listed.image.id: listed for listed in all_images}
    for template in templates:
        found, problem = _image_of(run, template)
        if found is None:
            uses.setdefault(
                f"{member_project(template)} {template.image_id}", ImageUse(None)
            ).templates += [template]
            uses[f"{member_project(template)} {template.image_id}"].problems.append(problem)
        elif found.id in listed_by_id:
            use = uses.setdefault(found.id, ImageUse(listed_by_id[found.id]))
            use.templates.append(template)
    for use in uses.values():
        if use.listed_image is not None:
            use.problems += dict.fromkeys(_problems(use.listed_image, use.templates, architecture))
    return sorted(uses.values(), key=_order)


def _is_for_clusters(listed: ListedImage) -> bool:
    if listed.hidden:
        return False
    return bool(listed.image.kubernetes_version) or listed.properties.get(_DRIVER) == names.DRIVER


def _is_version(listed: ListedImage | None, begin: str) -> bool:
    version = listed.image.kubernetes_version if listed else ""
    return version == begin or version.startswith(f"{begin}.")


def _image_of(run: Reconciliation, template: Template) -> tuple[Image | None, str]:
    """The image that users of a template get, or why they get none.

    :raises errors.CloudUnreachable: Glance does not answer.
    """
    try:
        found = run.cloud().named_images(member_project(template), [template.image_id])
    except errors.CloudRefused as error:
        return None, f"Template '{template.name}': {error}"
    return found[template.image_id], ""


def _problems(
    listed: ListedImage, templates: Iterable[Template], architecture: str | None
) -> Iterator[str]:
    """What is wrong with an image that is there."""
    tags = [versions.plain((template.labels or {}).get("kube_tag")) for template in templates]
    without_tag = not tags or "" in tags
    yield from machines.listed_image_problems(
        listed.name, listed.image, cloud.DISTROS, "" if without_tag else tags[0]
    )
    driver = listed.properties.get(_DRIVER, names.DRIVER)
    if driver != names.DRIVER:
        yield (
            "The image belongs to another driver. Its property 'magnum_driver' is "
            f"'{driver}': set it to '{names.DRIVER}', or unset it."
        )
    yield from architecture_problems(listed.properties, architecture)
    version = listed.image.kubernetes_version
    for template, tag in zip(templates, tags, strict=True):
        if version and tag not in ("", version):
            yield (
                f"Template '{template.name}' and the image have different Kubernetes versions. The "
                f"label kube_tag is 'v{tag}', and the image has 'v{version}'."
            )
        if template.cluster_distro not in ("", None, listed.image.os_distro):
            yield (
                f"Template '{template.name}' was created from an image of another distribution. "
                f"It has '{template.cluster_distro}', and the image '{listed.image.os_distro}'."
            )


def architecture_problems(properties: Mapping[str, str], architecture: str | None) -> Iterator[str]:
    """What is wrong of the architecture that an image says; Nova takes any host where it says none.

    :param architecture: of the cloud's hosts, None where they have several.
    """
    for name in _ARCHITECTURES:
        text = properties.get(name, "")
        if text and text not in _KNOWN:
            yield (
                f"Property '{name}' of the image is '{text}'. Kubernetes runs on "
                f"{', '.join(_KNOWN)}; set it to one of these."
            )
        elif text and architecture not in (None, text):
            yield f"Property '{name}' of the image is '{text}', and the hosts are {architecture}."
    texts = {properties[name] for name in _ARCHITECTURES if properties.get(name)}
    if len(texts) > 1:
        differing = ", ".join(sorted(texts))
        yield f"Properties {' and '.join(_ARCHITECTURES)} of the image differ: {differing}."


def _order(use: ImageUse) -> tuple[bool, tuple[int, ...], str]:
    """The newest version first; what is missing at the end."""
    parsed = versions.parse(use.listed_image.image.kubernetes_version) if use.listed_image else None
    release = tuple(-number for number in parsed.release) if parsed else ()
    return parsed is None, release, use.listed_image.name if use.listed_image else ""


def _row(use: ImageUse) -> tuple[str, ...]:
    listed, template_names = use.listed_image, [template.name or "" for template in use.templates]
    findings = use.problems or ([] if template_names else [_UNUSED])
    if listed is None:
        fields: tuple[str, ...] = (use.templates[0].image_id, "", "", "", "", "")
    else:
        architectures = [listed.properties.get(name) for name in _ARCHITECTURES]
        fields = (
            listed.name,
            listed.image.id,
            listed.image.kubernetes_version,
            listed.image.os_distro,
            next(filter(None, architectures), ""),
            "hidden" if listed.hidden else listed.visibility,
        )
    return (*fields, ", ".join(sorted(template_names)), use.status.name, " ".join(findings))
