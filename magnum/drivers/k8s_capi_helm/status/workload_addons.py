# SPDX-License-Identifier: Apache-2.0
"""What the core addons consist of in the tenant's cluster, and what of it is not there any more.

The addon provider looks at an addon again only when its object on the management cluster changes:
it stays Deployed when the cluster's administrator deletes what it was made of. What that was stands
in ``status.resources`` of the object.
"""

from __future__ import annotations

from collections.abc import Iterable
import re
from typing import Any

from magnum.drivers.k8s_capi_helm.model import (
    AddonInventory,
    conditions,
    Json,
    Missing,
    names,
    observed,
    WorkloadObject,
)
from magnum.drivers.k8s_capi_helm.status import addons

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


def expected(found: tuple[Json, ...] | Missing) -> tuple[WorkloadObject, ...]:
    """What of the core addons that are deployed has to be in the cluster; what runs first.

    :param found: HelmRelease and Manifests objects.
    """
    if isinstance(found, Missing):
        return ()
    core = [one for one in found if addons.is_core(one) and addons.done(one)]
    things = {thing for one in core for thing in _things(one)}
    return tuple(sorted(things, key=lambda one: (one.kind.group == "", one.addon, one.title)))


def _things(addon: Json) -> Iterable[WorkloadObject]:
    listed = conditions.at_path(addon, "status", "resources")
    target = conditions.at_path(addon, "spec", "targetNamespace")
    for entry in listed[: observed.LONGEST_LIST] if isinstance(listed, list) else ():
        made: dict[str, Any] = entry if isinstance(entry, dict) else {}
        kind = KINDS.get((str(made.get("apiVersion")), str(made.get("kind"))))
        namespace, name = str(made.get("namespace") or target), str(made.get("name"))
        if kind is not None and _NAME.match(namespace) and _NAME.match(name):
            yield WorkloadObject(addons.component(addon), kind, namespace, name)


def describe(inside: AddonInventory) -> str:
    """What is missing, or why that is not known; "" if everything is there."""
    if not inside.missing:
        return inside.unknown
    by_addon: dict[str, list[str]] = {}
    for one in inside.missing:
        by_addon.setdefault(one.addon, []).append(one.title)
    return "; ".join(
        f"{addon}: {', '.join(titles)} not there" for addon, titles in sorted(by_addon.items())
    )
