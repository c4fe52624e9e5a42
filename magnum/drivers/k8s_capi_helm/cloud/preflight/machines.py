# SPDX-License-Identifier: Apache-2.0
"""Image, flavors and keypair: there, usable, and large enough for one another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import dataclasses

from magnum.drivers.k8s_capi_helm.cloud.preflight.message import quoted
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
    request: ClusterRequest, facts: CloudFacts, terms: MachineRequirements
) -> Iterator[str]:
    """What is wrong with the image of the cluster."""
    name = quoted(request.image)
    if not facts.image_id:
        yield (
            f"Image {name} does not exist or is not visible to this project. Choose one that "
            "'openstack image list' shows."
        )
        return
    image = facts.images.get(request.image)
    if image and image.status != "active":
        yield _inactive(request.image, image)
    if facts.os_distro not in terms.distros:
        yield (
            f"Image {name} has os_distro {quoted(facts.os_distro)}; this version of the driver "
            f"supports {' and '.join(terms.distros)}."
        )
    elif request.distro and facts.os_distro != request.distro:
        yield (
            f"Image {name} has os_distro {quoted(facts.os_distro)}, and the cluster template was "
            f"made for {quoted(request.distro)}. Make a template of that image."
        )
    if facts.os_distro == "flatcar" and request.labels.etcd_blockdevice_size:
        yield (
            f"Label 'etcd_blockdevice_size' has the value "
            f"'{request.labels.etcd_blockdevice_size}', and etcd cannot have a disk of its own on "
            "Flatcar. Leave the label out, or choose an image of another distribution."
        )
    if not (facts.kubernetes_version or request.labels.kube_tag):
        yield (
            f"Image {name} has no property 'kube_version', so it is not known which Kubernetes it "
            "holds. Set it on the image, for example kube_version=v1.34.4, choose another image, "
            "or set the label kube_tag (for an upgrade, in the new template)."
        )


def _inactive(name: str, image: Image) -> str:
    return (
        f"Image {quoted(name)} has the status '{image.status}': only an active image can be used. "
        "Choose another one, or wait until it is active."
    )


def own_image_problems(groups: Iterable[NodeGroupRequest], facts: CloudFacts) -> Iterator[str]:
    """Images of single nodegroups that are not there or not usable."""
    for group in groups:
        image = facts.images.get(group.image or "")
        if group.image and image is None:
            yield (
                f"Image {quoted(group.image)} does not exist or is not visible to this project, "
                f"and nodegroup '{group.name}' asks for it. Choose one that 'openstack image list' "
                "shows."
            )
        elif group.image and image and image.status != "active":
            yield _inactive(group.image, image)


def flavor_problems(
    groups: Iterable[NodeGroupRequest],
    request: ClusterRequest,
    facts: CloudFacts,
    terms: MachineRequirements,
) -> Iterator[str]:
    """Flavors that are not there, or too small for a node or for its image, and boot volumes."""
    found: list[str] = []
    for group in groups:
        flavor = facts.flavors.get(group.flavor)
        if flavor is None:
            found.append(
                f"Flavor {quoted(group.flavor)} does not exist or is not visible to this project. "
                "Choose one that 'openstack flavor list' shows."
            )
            continue
        found += size_problems([flavor], terms)
        text = group.image or request.image
        size = (group.labels or request.labels).boot_volume_size
        found += _fit(text, facts.images.get(text), flavor, size)
    yield from dict.fromkeys(found)  # groups have the same flavor, mostly


def size_problems(flavors: Iterable[Flavor], terms: MachineRequirements) -> Iterator[str]:
    """Flavors that are below the operator's minimum."""
    for flavor in flavors:
        if flavor.ram < terms.ram or flavor.vcpus < terms.vcpus:
            yield (
                f"Flavor {quoted(flavor.name)} has {flavor.ram} MiB of memory and {flavor.vcpus} "
                f"vCPUs; a Kubernetes node needs at least {terms.ram} MiB and {terms.vcpus} vCPUs "
                "here."
            )


def _fit(name: str, image: Image | None, flavor: Flavor, volume: int) -> Iterator[str]:
    """Whether nodes of a flavor can boot an image, as Nova and Cinder would ask.

    :param volume: GiB of the volume that they boot from, 0 for the flavor's own disk.
    """
    disk = image.disk if image else 0
    if image and image.ram > flavor.ram:
        yield (
            f"Flavor {quoted(flavor.name)} has {flavor.ram} MiB of memory, and image "
            f"{quoted(name)} needs {image.ram} MiB. Choose a larger flavor."
        )
    if volume:
        if disk > volume:
            yield (
                f"Label 'boot_volume_size' has the value '{volume}', and image {quoted(name)} "
                f"needs {disk} GiB. Give a larger one."
            )
    elif not flavor.disk:
        yield (
            f"Flavor {quoted(flavor.name)} has no disk of its own, so its nodes have to boot from "
            "a volume. Set the label boot_volume_size, or choose another flavor."
        )
    elif disk > flavor.disk:
        yield (
            f"Flavor {quoted(flavor.name)} has a disk of {flavor.disk} GiB, and image "
            f"{quoted(name)} needs {disk} GiB. Choose a larger flavor, or set the label "
            "boot_volume_size."
        )


def keypair_problems(request: ClusterRequest, facts: CloudFacts) -> Iterator[str]:
    """A keypair that the person who asks does not have."""
    if request.keypair and facts.has_keypair is False:
        yield (
            f"Keypair {quoted(request.keypair)} does not exist, or belongs to another user. Choose "
            "one that 'openstack keypair list' shows."
        )
