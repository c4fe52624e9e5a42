# SPDX-License-Identifier: Apache-2.0
"""Resolved names of a request, in the form of the Lease's annotation.

Lists and not objects: an annotation is bounded, and each pending operation has this in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from magnum.drivers.k8s_capi_helm.model import Flavor, Image, NOTHING, ResolvedNames

_KEY = "resolved"


def entry(lookup: ResolvedNames) -> dict[str, Any]:
    """The key of an operation, and what it says."""
    images = {
        text: [image.id, image.kubernetes_version, image.os_distro]
        for text, image in lookup.images.items()
    }
    flavors = {
        text: [flavor.id, flavor.name, flavor.vcpus, flavor.ram, flavor.disk]
        for text, flavor in lookup.flavors.items()
    }
    networks: list[Any] = [
        lookup.external_network_id,
        lookup.fixed_network_id,
        lookup.fixed_subnet_id,
    ]
    if lookup.extra_networks:
        networks.append(dict(lookup.extra_networks))
    parts = {"images": images, "flavors": flavors, "networks": networks if any(networks) else []}
    return {_KEY: {name: part for name, part in parts.items() if part}}


def lookup_of(operation: Mapping[str, Any]) -> ResolvedNames:
    """What an operation says of it; nothing where an older version has written it down.

    A newer version may have added something at the end of each list.
    """
    stored = operation.get(_KEY)
    if not stored:
        return NOTHING
    # The version before this one has written three.
    external, fixed, subnet, extra = [*(stored.get("networks") or ("", "", "")), {}][:4]
    return ResolvedNames(
        images={text: Image(*facts[:3]) for text, facts in (stored.get("images") or {}).items()},
        flavors={text: Flavor(*facts[:5]) for text, facts in (stored.get("flavors") or {}).items()},
        external_network_id=external,
        fixed_network_id=fixed,
        fixed_subnet_id=subnet,
        extra_networks=extra,
    )
