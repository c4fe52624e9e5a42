# SPDX-License-Identifier: Apache-2.0
"""Version skew: which Kubernetes versions control plane and nodegroups may have together.

Source: https://kubernetes.io/releases/version-skew-policy/.
"""

from __future__ import annotations

from collections.abc import Mapping

from packaging.version import Version

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.labels.value_types.versions import parse, plain

#: Minor releases that a kubelet may be behind its API server.
_KUBELET_LAG = 3


def check_control_plane(current: str, target: str, nodegroup_versions: Mapping[str, str]) -> None:
    """Refuse a version that the control plane cannot go to.

    :param current: version that the control plane has.
    :param nodegroup_versions: version by name of the nodegroups that stay as they are.
    :raises errors.InvalidRequest: a downgrade, a skipped minor release, or a nodegroup that would
        be too old for the new control plane.
    """
    current_version, target_version = parse_version(current), parse_version(target)
    if target_version < current_version:
        raise errors.InvalidRequest(
            "The new template's image has an older Kubernetes version than the cluster. The image "
            f"has v{plain(target)}, and the cluster runs v{plain(current)}: a cluster cannot be "
            "downgraded. Choose a newer template."
        )
    if (
        target_version.major != current_version.major
        or target_version.minor > current_version.minor + 1
    ):
        raise errors.InvalidRequest(
            "The new template's image skips a minor release of Kubernetes. The image has "
            f"v{plain(target)}, and the cluster runs v{plain(current)}. Upgrade to "
            f"v{current_version.major}.{current_version.minor + 1} first."
        )
    for name, version in sorted(nodegroup_versions.items()):
        if parse_version(version).minor + _KUBELET_LAG < target_version.minor:
            raise errors.InvalidRequest(
                f"The Kubernetes version of nodegroup '{name}' is too old for this upgrade. It "
                f"runs v{plain(version)}, more than {_KUBELET_LAG} minor releases before "
                f"v{plain(target)}. Upgrade the nodegroup first."
            )


def check_nodegroup_version(name: str, current: str, target: str, control_plane: str) -> None:
    """Refuse a version that a single nodegroup cannot go to.

    :raises errors.InvalidRequest: a downgrade, or newer than the control plane.
    """
    if parse_version(target) < parse_version(current):
        raise errors.InvalidRequest(
            f"The image has an older Kubernetes version than nodegroup '{name}'. The image has "
            f"v{plain(target)}, and the nodegroup runs v{plain(current)}: a nodegroup cannot be "
            "downgraded."
        )
    if parse_version(target) > parse_version(control_plane):
        raise errors.InvalidRequest(
            "The image has a newer Kubernetes version than the control plane. The image has "
            f"v{plain(target)}, and the control plane v{plain(control_plane)}. Upgrade the cluster "
            "first."
        )


def check_new_nodegroup(name: str, version: str, control_plane: str) -> None:
    """Refuse an image of its own with which a new nodegroup could not live in its cluster.

    :raises errors.InvalidRequest: newer than the control plane, or too old for it.
    """
    current_version, image_version = parse_version(control_plane), parse_version(version)
    if image_version > current_version:
        raise errors.InvalidRequest(
            f"The image of nodegroup '{name}' has a newer Kubernetes version than the control "
            f"plane. The image has v{plain(version)}, and the control plane "
            f"v{plain(control_plane)}. Choose an older image, or upgrade the cluster first."
        )
    if (
        image_version.major != current_version.major
        or image_version.minor + _KUBELET_LAG < current_version.minor
    ):
        raise errors.InvalidRequest(
            f"The Kubernetes version of nodegroup '{name}' is too old for the control plane. Its "
            f"image has v{plain(version)}, more than {_KUBELET_LAG} minor releases before "
            f"v{plain(control_plane)}. Choose a newer image."
        )


def parse_version(version: str) -> Version:
    """A version of Kubernetes, to be compared with others.

    :raises errors.InvalidRequest: it is none.
    """
    result = parse(version)
    if result is None:
        raise errors.InvalidRequest(
            "The Kubernetes version of the image is not valid, so the upgrade cannot be checked. "
            f"The version is '{version}': expected one like v1.36.3."
        )
    return result
