# SPDX-License-Identifier: Apache-2.0
"""Check images, disks and annotations of nodegroups against their cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses
import re

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.preflight import message
from magnum.drivers.k8s_capi_helm.model import Image, Json, NodeGroupRequest, request
from magnum.drivers.k8s_capi_helm.values.upgrade import version_skew

#: Annotations that Cluster API always keeps on its Nodes
#: (https://cluster-api.sigs.k8s.io/reference/api/metadata-propagation).
_KEPT = r"^([^/]+\.)?node\.cluster\.x-k8s\.io/"


def with_own_images(
    nodegroups: Iterable[NodeGroupRequest], images: Mapping[str, Image], common: str
) -> tuple[NodeGroupRequest, ...]:
    """Nodegroups, where one that names the cluster's own image in other words has none of its own.

    :param images: by the text that a nodegroup uses, as far as they are there.
    :param common: id of the cluster's image.
    """
    return tuple(
        dataclasses.replace(nodegroup, image=None)
        if nodegroup.image and nodegroup.image in images and images[nodegroup.image].id == common
        else nodegroup
        for nodegroup in nodegroups
    )


def check_images(
    nodegroups: Iterable[NodeGroupRequest],
    images: Mapping[str, Image],
    control_plane: str,
    os_distro: str,
) -> None:
    """Refuse images of single nodegroups that do not go with the cluster.

    :raises errors.DoesNotFit: with all of :func:`image_problems`.
    """
    message.refuse(image_problems(nodegroups, images, control_plane, os_distro))


def image_problems(
    nodegroups: Iterable[NodeGroupRequest],
    images: Mapping[str, Image],
    control_plane: str,
    os_distro: str,
) -> list[str]:
    """Problems of the separate images of nodegroups.

    That is an unknown version, one that is newer than the control plane or too old for it, or
    another distribution.

    :param control_plane: Kubernetes version of the control plane.
    :param os_distro: of the cluster's image.
    """
    problems = []
    for nodegroup in nodegroups:
        if nodegroup.image and nodegroup.image in images:
            try:
                _check_image(nodegroup, images[nodegroup.image], control_plane, os_distro)
            except errors.InvalidRequest as error:
                problems.append(str(error))
    return problems


def _check_image(
    nodegroup: NodeGroupRequest, image: Image, control_plane: str, os_distro: str
) -> None:
    if not image.kubernetes_version:
        raise errors.InvalidRequest(
            f"The image of nodegroup '{nodegroup.name}' has no property 'kube_version', so its "
            f"Kubernetes version is not known. Set it on image '{nodegroup.image}', for example "
            "kube_version=v1.36.3, or choose another image."
        )
    if image.os_distro != os_distro:
        raise errors.InvalidRequest(
            f"The image of nodegroup '{nodegroup.name}' has another os_distro than the cluster. "
            f"Image '{nodegroup.image}' has '{image.os_distro}', and the cluster has "
            f"'{os_distro}'. Choose another image."
        )
    version_skew.check_new_nodegroup(nodegroup.name, image.kubernetes_version, control_plane)


def check_disks(nodegroups: Iterable[NodeGroupRequest], os_distro: str) -> None:
    """Refuse disks for images and containers where the distribution cannot have them.

    :param nodegroups: the control plane may be among them.
    :param os_distro: of the cluster's image.
    :raises errors.InvalidRequest: naming group and size.
    """
    for nodegroup in nodegroups:
        if nodegroup.docker_volume and os_distro == "flatcar":
            raise errors.InvalidRequest(
                f"Nodegroup '{nodegroup.name}' asks for docker_volume_size "
                f"{nodegroup.docker_volume}, which is not supported with Flatcar. Leave it out, or "
                "choose an image of another distribution."
            )


def check_annotations(nodegroups: Iterable[NodeGroupRequest], values: Json) -> None:
    """Refuse annotations that Cluster API would put on no Node.

    :param values: those of the cluster; an operator's ``clusterApi`` in them allows more.
    :raises errors.InvalidLabel: with the first such key.
    """
    additional = (values.get("clusterApi") or {}).get("additionalSyncMachineAnnotations") or ()
    allowed = re.compile("|".join((_KEPT, *(f"({pattern})" for pattern in additional))))
    for nodegroup in nodegroups:
        for key, _ in request.node_annotations(nodegroup):
            if not allowed.search(key):
                raise errors.InvalidLabel(
                    "node_annotations",
                    key,
                    "keys below node.cluster.x-k8s.io, as Cluster API sets no others on Nodes "
                    "unless the cloud's operator allows it",
                )
