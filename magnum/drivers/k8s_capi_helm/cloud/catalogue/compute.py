# SPDX-License-Identifier: Apache-2.0
"""Nova's flavors and keypairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from openstack import exceptions as sdk_exceptions

from magnum.drivers.k8s_capi_helm.cloud.access.services import Services, translate_errors
from magnum.drivers.k8s_capi_helm.cloud.catalogue import visibility
from magnum.drivers.k8s_capi_helm.model import Flavor


def flavors(services: Services, references: Iterable[str], project_id: str) -> Mapping[str, Flavor]:
    """Flavors by the texts, ids or names, that they are asked for with; missing ones are left out.

    All are listed at once: that is one request however many are wanted. Tenants see those that
    they can use, whatever is asked for; an administrator sees private ones only when asking so.

    :param project_id: whose request it is; what it cannot use is missing, whoever asks.
    :raises errors.CloudRefused: Nova says no.
    :raises errors.CloudUnreachable: Nova does not answer.
    """
    resolved = {}
    with translate_errors("Nova", "the flavors"):
        visible = list(services.nova().flavors(is_public="None"))
        by_id, by_name = (
            {str(flavor.id): flavor for flavor in visible},
            {flavor.name: flavor for flavor in visible},
        )
        for text in sorted(set(references)):
            matches = [index[text] for index in (by_id, by_name) if text in index]
            for flavor in matches:
                if visibility.allows_flavor(services, flavor, project_id):
                    resolved[text] = Flavor(
                        str(flavor.id), flavor.name, flavor.vcpus, flavor.ram, flavor.disk
                    )
                    break
    return resolved


def has_keypair(services: Services, name: str) -> bool:
    """Whether the requesting user has a keypair of that name.

    :raises errors.CloudRefused: Nova says no.
    :raises errors.CloudUnreachable: Nova does not answer.
    """
    with translate_errors("Nova", f"keypair '{name}'"):
        try:
            services.nova().get_keypair(name)
        except sdk_exceptions.NotFoundException:
            return False
    return True
