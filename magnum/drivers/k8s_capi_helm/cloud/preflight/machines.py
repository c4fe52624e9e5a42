# SPDX-License-Identifier: Apache-2.0
"""Check image, flavors and keypair: they exist, are usable and compatible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import dataclasses

from magnum.drivers.k8s_capi_helm.cloud.preflight.message import in_quotes
from magnum.drivers.k8s_capi_helm.labels.value_types import versions
from magnum.drivers.k8s_capi_helm.model import (
    CloudFacts,
    ClusterRequest,
    Flavor,
    Image,
    NodeGroupRequest,
)


@dataclasses.dataclass(frozen=True, slots=True)
class MachineRequirements:
    """What the operator, and this version of the driver, ask of machines.

    :ivar distros: values of ``os_distro`` that can be used.
    :ivar ram: MiB that a flavor has to have.
    :ivar vcpus: number that a flavor has to have.
    """

    distros: tuple[str, ...]
    ram: int = 0
    vcpus: int = 0


def image_problems(
    request: ClusterRequest, facts: CloudFacts, requirements: MachineRequirements
) -> Iterator[str]:
    """What is wrong with the image of the cluster."""
    name = in_quotes(request.image)
    if not facts.image_id:
        yield (
            "The image does not exist or is not visible to this project. The image is "
            f"{name}: choose one that 'openstack image list' shows."
        )
        return
    image = facts.images.get(request.image)
    if image and image.status != "active":
        yield _inactive(request.image, image)
    yield from _distro_problems(name, facts.os_distro, requirements.distros)
    if facts.os_distro in requirements.distros and request.distro not in ("", facts.os_distro):
        yield (
            "The image has another os_distro than the cluster template. Image "
            f"{name} has {in_quotes(facts.os_distro)}, and the template has "
            f"{in_quotes(request.distro)}. Create a template from this image."
        )
    if facts.os_distro == "flatcar" and request.labels.etcd_blockdevice_size:
        yield (
            "Label 'etcd_blockdevice_size' is not supported with Flatcar. The value is "
            f"'{request.labels.etcd_blockdevice_size}', and etcd cannot have its own disk there. "
            "Leave the label out, or choose an image of another distribution."
        )
    yield from _version_problems(name, facts.kubernetes_version, request.labels.kube_tag or "")


def listed_image_problems(
    name: str, image: Image, distros: tuple[str, ...], kube_tag: str = ""
) -> Iterator[str]:
    """What is wrong with an image for every cluster.

    :param name: under which it is known.
    :param distros: values of ``os_distro`` that can be used.
    :param kube_tag: the label of a template that uses it, "" without.
    """
    if image.status != "active":
        yield _inactive(name, image)
    yield from _distro_problems(in_quotes(name), image.os_distro, distros)
    yield from _version_problems(in_quotes(name), image.kubernetes_version, kube_tag)


def _distro_problems(name: str, os_distro: str, distros: tuple[str, ...]) -> Iterator[str]:
    if os_distro not in distros:
        yield (
            f"The image has an unsupported os_distro. Image {name} has "
            f"{in_quotes(os_distro)}, and this version of the driver supports "
            f"{' and '.join(distros)}."
        )


def _version_problems(name: str, version: str, kube_tag: str) -> Iterator[str]:
    if not (version or kube_tag):
        yield (
            "The image has no property 'kube_version', so its Kubernetes version is not known. "
            f"Set it on image {name}, for example kube_version=v1.36.3, choose another image, "
            "or set the label kube_tag (for an upgrade, in the new template)."
        )
    elif version and not versions.is_full_version(version):
        yield (
            "Property 'kube_version' of the image is not a full Kubernetes version. Image "
            f"{name} has {in_quotes(version)}: set it to one like v1.36.3, or "
            "choose another image."
        )


def _inactive(name: str, image: Image) -> str:
    return (
        f"The image is not active. Image {in_quotes(name)} has the status '{image.status}': choose "
        "another one, or wait until it is active."
    )


def own_image_problems(nodegroups: Iterable[NodeGroupRequest], facts: CloudFacts) -> Iterator[str]:
    """Images of single nodegroups that are not there or not usable."""
    for nodegroup in nodegroups:
        image = facts.images.get(nodegroup.image or "")
        if nodegroup.image and image is None:
            yield (
                f"The image of nodegroup '{nodegroup.name}' does not exist or is not visible to "
                f"this project. The image is {in_quotes(nodegroup.image)}: choose one that "
                "'openstack image list' shows."
            )
        elif nodegroup.image and image and image.status != "active":
            yield _inactive(nodegroup.image, image)


def flavor_problems(
    nodegroups: Iterable[NodeGroupRequest],
    request: ClusterRequest,
    facts: CloudFacts,
    requirements: MachineRequirements,
) -> Iterator[str]:
    """Flavors that are not there, or too small for a node or for its image, and boot volumes."""
    problems: list[str] = []
    for nodegroup in nodegroups:
        flavor = facts.flavors.get(nodegroup.flavor)
        if flavor is None:
            problems.append(
                "The flavor does not exist or is not visible to this project. The flavor is "
                f"{in_quotes(nodegroup.flavor)}: choose one that 'openstack flavor list' shows."
            )
            continue
        problems += size_problems([flavor], requirements)
        text = nodegroup.image or request.image
        size = (nodegroup.labels or request.labels).boot_volume_size
        problems += _fit(text, facts.images.get(text), flavor, size)
    yield from dict.fromkeys(problems)  # groups have the same flavor, mostly


def size_problems(flavors: Iterable[Flavor], requirements: MachineRequirements) -> Iterator[str]:
    """Flavors that are below the operator's minimum."""
    for flavor in flavors:
        if flavor.ram < requirements.ram or flavor.vcpus < requirements.vcpus:
            yield (
                f"The flavor is too small for a Kubernetes node. Flavor {in_quotes(flavor.name)} "
                f"has {flavor.ram} MiB of memory and {flavor.vcpus} vCPUs, and this cloud requires "
                f"at least {requirements.ram} MiB and {requirements.vcpus} vCPUs."
            )


def _fit(name: str, image: Image | None, flavor: Flavor, volume: int) -> Iterator[str]:
    """Whether nodes of a flavor can boot an image, as Nova and Cinder would ask.

    :param volume: GiB of the volume that they boot from, 0 for the flavor's own disk.
    """
    disk = image.disk if image else 0
    if image and image.ram > flavor.ram:
        yield (
            f"The flavor has too little memory for the image. Flavor {in_quotes(flavor.name)} has "
            f"{flavor.ram} MiB, and image {in_quotes(name)} needs {image.ram} MiB. Choose a larger "
            "flavor."
        )
    if volume:
        if disk > volume:
            yield (
                f"Label 'boot_volume_size' is too small for the image. The value is '{volume}', "
                f"and image {in_quotes(name)} needs {disk} GiB. Set a larger value."
            )
    elif not flavor.disk:
        yield (
            "The flavor has no disk, so its nodes have to boot from a volume. Flavor "
            f"{in_quotes(flavor.name)} needs the label boot_volume_size, or choose another flavor."
        )
    elif disk > flavor.disk:
        yield (
            "The disk of the flavor is too small for the image. Flavor "
            f"{in_quotes(flavor.name)} has {flavor.disk} GiB, and image {in_quotes(name)} needs "
            f"{disk} GiB. Choose a larger flavor, or set the label boot_volume_size."
        )


def keypair_problems(request: ClusterRequest, facts: CloudFacts) -> Iterator[str]:
    """A keypair that the requesting user does not have."""
    if request.keypair and facts.has_keypair is False:
        yield (
            "The keypair does not exist or belongs to another user. The keypair is "
            f"{in_quotes(request.keypair)}: choose one that 'openstack keypair list' shows."
        )
