# SPDX-License-Identifier: Apache-2.0
"""Objects of the core addons in the tenant's cluster, and missing ones.

The addon provider looks at an addon again only when its object on the management cluster changes:
it stays Deployed when the cluster's administrator deletes what it was made of. What that was stands
in ``status.resources`` of the object.
"""

from __future__ import annotations

from collections.abc import Iterable
import re

from magnum.drivers.k8s_capi_helm.model import (
    AddonInventory,
    conditions,
    Json,
    Missing,
    names,
    observed,
    WorkloadObject,
)
from magnum.drivers.k8s_capi_helm.status.objects import addons

#: What runs, and what it reads. Of the rest each addon has dozens, which nobody deletes by mistake.
KINDS: dict[tuple[str, str], names.Kind] = {
    ("apps/v1", "DaemonSet"): names.Kind("apps", "DaemonSet", "daemonsets", ("v1",)),
    ("apps/v1", "Deployment"): names.DEPLOYMENT,
    ("apps/v1", "StatefulSet"): names.Kind("apps", "StatefulSet", "statefulsets", ("v1",)),
    ("v1", "Secret"): names.SECRET,
    ("v1", "ConfigMap"): names.CONFIG_MAP,
}
#: Objects that are looked for, of those that are read; the largest addon has some hundred. The list
#: comes from Helm's record in the tenant's cluster, so it may be as long as they like.
MOST = 50

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z")


def expected(addon_objects: tuple[Json, ...] | Missing) -> tuple[WorkloadObject, ...]:
    """What of the core addons that are deployed has to be in the cluster; what runs first.

    :param addon_objects: HelmRelease and Manifests objects.
    :returns: at most :data:`MOST`.
    """
    if isinstance(addon_objects, Missing):
        return ()
    objects: set[tuple[bool, str, str, str, str, str]] = set()
    for addon in addon_objects:
        if addons.is_core(addon) and addons.is_addon_deployed(addon):
            objects.update(_listed(addon))
    return tuple(
        WorkloadObject(component, KINDS[version, kind], namespace, name)
        for _, component, kind, version, namespace, name in sorted(objects)[:MOST]
    )


def _listed(addon: Json) -> Iterable[tuple[bool, str, str, str, str, str]]:
    """For each object: whether it is only read, addon, kind, API version, namespace and name."""
    resources = conditions.at_path(addon, "status", "resources")
    target = str(conditions.at_path(addon, "spec", "targetNamespace"))
    component = addons.component(addon)
    for entry in resources[: observed.LONGEST_LIST] if isinstance(resources, list) else ():
        if not isinstance(entry, dict):
            continue
        version, kind = str(entry.get("apiVersion")), str(entry.get("kind"))
        if (version, kind) not in KINDS:
            continue
        namespace, name = str(entry.get("namespace") or target), str(entry.get("name"))
        if _NAME.match(name) and _NAME.match(namespace):
            yield version == "v1", component, kind, version, namespace, name


def describe(inventory: AddonInventory) -> str:
    """What is missing, or why that is not known; "" if everything is there."""
    if not inventory.missing:
        return inventory.unknown
    by_addon: dict[str, list[str]] = {}
    for obj in inventory.missing:
        by_addon.setdefault(obj.addon, []).append(obj.title)
    return "; ".join(
        f"{addon}: {', '.join(titles)} not found in the cluster"
        for addon, titles in sorted(by_addon.items())
    )
