# SPDX-License-Identifier: Apache-2.0
"""Which resources a project can see and use, if the requesting user sees all projects.

Magnum's service user and an administrator are shown images, networks, flavors and volume types of
everybody. A name means what it means to a member of the project, so the rules by which the services
answer a member are applied to what they answer an administrator. A member is answered by the
services themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from magnum.drivers.k8s_capi_helm.cloud.access.services import Services


def shows_image(services: Services, image: Any, project_id: str) -> bool:
    """Whether Glance shows a member of the project this image when asked for by its id.

    An image that is shared is shown before its membership is accepted, one of the community always
    (https://docs.openstack.org/api-ref/image/v2/#image-visibility).
    """
    if not services.is_admin or image.owner in (None, project_id):
        return True
    if image.visibility in ("public", "community"):
        return True
    return image.visibility == "shared" and bool(_membership(services, image, project_id))


def lists_image(services: Services, image: Any, project_id: str) -> bool:
    """Whether Glance has this image in the list of a member of the project.

    Others' images of the community are not in it, and shared ones once they are accepted
    (https://docs.openstack.org/api-ref/image/v2/#list-images).
    """
    if not services.is_admin or image.owner == project_id or image.visibility == "public":
        return True
    accepted = {"accepted"}
    return image.visibility == "shared" and _membership(services, image, project_id) == accepted


def allows_flavor(services: Services, flavor: Any, project_id: str) -> bool:
    """Whether Nova lets a project use this flavor: it is public, or the project has access.

    (https://docs.openstack.org/api-ref/compute/#list-flavor-access-information-for-given-flavor)
    """
    if not services.is_admin:
        return True
    if flavor.is_disabled:
        return False
    if flavor.is_public is not False:
        return True
    return _has(services.nova().get_flavor_access(flavor), "tenant_id", project_id)


def allows_volume_type(services: Services, kind: Any, project_id: str) -> bool:
    """Whether Cinder lets a project use this volume type: it is public, or the project has access.

    (https://docs.openstack.org/api-ref/block-storage/v3/#list-private-volume-type-access-details)
    """
    if not services.is_admin or kind.is_public is not False:
        return True
    return _has(services.cinder().get_type_access(kind), "project_id", project_id)


def reached_networks(
    services: Services, owners: Mapping[str, str], project_id: str
) -> frozenset[str]:
    """Those of some networks that Neutron shows a member of the project.

    They are the project's own, or an RBAC policy of theirs (shared, or external) names the project
    or everybody (https://docs.openstack.org/neutron/latest/admin/config-rbac.html). Whether a
    network *is shared* is told of the project of whoever asks, and so says nothing here.

    :param owners: projects of the networks by their ids, "" where nobody knows.
    """
    if not services.is_admin:
        return frozenset(owners)
    own = {network for network, owner in owners.items() if owner == project_id}
    others = sorted(owners.keys() - own)
    if not others:
        return frozenset(own)
    policies = services.neutron().rbac_policies(object_type="network", object_id=others)
    targets = ("*", project_id)
    reached = {str(policy.object_id) for policy in policies if policy.target_project_id in targets}
    return frozenset(own | (reached & owners.keys()))


def _membership(services: Services, image: Any, project_id: str) -> set[str]:
    """State of the project's membership in a shared image; nothing where it is no member."""
    members = services.glance().members(image.id)
    return {str(member.status) for member in members if member.member_id == project_id}


def _has(items: Any, key: str, project_id: str) -> bool:
    return any(item.get(key) == project_id for item in items)
