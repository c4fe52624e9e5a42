# SPDX-License-Identifier: Apache-2.0
"""Nova's flavors and keypairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from openstack import exceptions as sdk_exceptions

from magnum.drivers.k8s_capi_helm.cloud.services import asking, Services
from magnum.drivers.k8s_capi_helm.model import Flavor


def flavors(services: Services, wanted: Iterable[str]) -> Mapping[str, Flavor]:
    """Flavors by the texts, ids or names, that they are asked for with; missing ones are left out.

    All are listed at once: that is one request however many are wanted. Tenants see those that
    they can use, whatever is asked for; an administrator sees private ones only when asking so.

    :raises errors.CloudRefused: Nova says no.
    :raises errors.CloudUnreachable: Nova does not answer.
    """
    with asking("Nova", "the flavors"):
        known = [
            Flavor(str(one.id), one.name, one.vcpus, one.ram, one.disk)
            for one in services.nova().flavors(is_public="None")
        ]
    by_text = {flavor.name: flavor for flavor in known} | {flavor.id: flavor for flavor in known}
    return {text: by_text[text] for text in wanted if text in by_text}


def has_keypair(services: Services, name: str) -> bool:
    """Whether the person who asks has a keypair of that name.

    :raises errors.CloudRefused: Nova says no.
    :raises errors.CloudUnreachable: Nova does not answer.
    """
    with asking("Nova", f"keypair '{name}'"):
        try:
            services.nova().get_keypair(name)
        except sdk_exceptions.NotFoundException:
            return False
    return True
