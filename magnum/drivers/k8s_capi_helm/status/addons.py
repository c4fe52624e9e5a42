# SPDX-License-Identifier: Apache-2.0
"""Addons: which must be there, and whether they are deployed as they are asked for now.

Their status has no observed generation: the phase stays Deployed right after an edit. What the
addon provider has worked through stands in an annotation that its framework, kopf, keeps
(https://kopf.readthedocs.io, "Diff-base configuration").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import json
from typing import Any

from magnum.drivers.k8s_capi_helm.errors import Cause
from magnum.drivers.k8s_capi_helm.model import conditions, Json, Missing, names
from magnum.drivers.k8s_capi_helm.status.issue import Issue
from magnum.drivers.k8s_capi_helm.status.public_text import public

#: Without one of each a cluster has no usable nodes or no volumes: they are part of COMPLETE.
CORE: tuple[frozenset[str], ...] = (
    frozenset({"cni-calico", "cni-cilium"}),
    frozenset({"cloud-config"}),
    frozenset({"ccm-openstack"}),
    frozenset({"csi-cinder"}),
)

_HANDLED = f"{names.ADDONS_GROUP}/last-handled-configuration"
_IN_PROGRESS = f"{names.ADDONS_GROUP}/handle_addon_updated"


def component(addon: Json) -> str:
    """The chart's name for the addon, else the object's own."""
    return conditions.label(addon, names.LABEL_CHART_COMPONENT) or conditions.name(addon)


def is_core(addon: Json) -> bool:
    """The cluster cannot be called COMPLETE without it."""
    return any(component(addon) in alternatives for alternatives in CORE)


def done(addon: Json) -> bool:
    """Deployed, from the spec that the object has now, and nothing about it is in progress."""
    annotations = conditions.mapping(conditions.metadata(addon).get("annotations"))
    if conditions.deleting(addon) or any(key.startswith(_IN_PROGRESS) for key in annotations):
        return False
    try:
        handled = json.loads(annotations.get(_HANDLED) or "{}")
    except (TypeError, ValueError, RecursionError):
        return False
    same = isinstance(handled, dict) and handled.get("spec") == addon.get("spec")
    return same and conditions.at_path(addon, "status", "phase") == "Deployed"


def switched_off(values: Mapping[str, Any]) -> frozenset[str]:
    """Core addons that a release's values switch off; the charts have all of them on by default."""
    own = values.get("addons", {})
    openstack = own.get("openstack", {})
    switches = {
        "csi-cinder": openstack.get("csiCinder", {}),
        "ccm-openstack": openstack.get("ccm", {}),
        "cloud-config": openstack,
    }
    off = {name for name, part in switches.items() if part.get("enabled") is False}
    if openstack.get("enabled") is False:
        off |= set(switches)
    if own.get("cni", {}).get("enabled") is False or own.get("cni", {}).get("type") == "none":
        off |= {"cni-calico", "cni-cilium"}
    return frozenset(off)


def core_missing(addons: tuple[Json, ...] | Missing, without: Iterable[str] = ()) -> Issue | None:
    """The first core addon that is not there or not done, None when all are.

    :param without: core addons that the release switches off.
    """
    if isinstance(addons, Missing):
        return Issue("the addons cannot be read")
    off = frozenset(without)
    for alternatives in CORE:
        there = [one for one in addons if component(one) in alternatives]
        if not there and not alternatives & off:
            return Issue(f"addon {' or '.join(sorted(alternatives))} does not exist")
    waiting = [one for one in addons if is_core(one) and not done(one)]
    failed = [one for one in waiting if issue_of(one)]
    if failed:
        return issue_of(failed[0])
    if waiting:
        total = sum(1 for one in addons if is_core(one))
        listed = ", ".join(sorted(component(one) for one in waiting))
        return Issue(
            f"{total - len(waiting)} of {total} core addons are deployed, waiting for {listed}"
        )
    return None


def issue_of(addon: Json) -> Issue | None:
    """Why an addon cannot be deployed, None while it may just take its time."""
    phase = conditions.at_path(addon, "status", "phase")
    message = conditions.at_path(addon, "status", "failureMessage")
    if phase != "Failed" or done(addon):
        return None
    text = public(str(message)) if message else "its installation failed"
    return Issue(f"{component(addon)}: {text}", Cause.ADDON)


def not_deployed(
    addons: tuple[Json, ...] | Missing, without: Iterable[str] = ()
) -> tuple[str, ...]:
    """Addons that are not deployed, core and optional, each with its phase or message.

    :param without: core addons that the release switches off.
    """
    if isinstance(addons, Missing):
        return ("the addons cannot be read",)
    texts = []
    missing = core_missing(addons, without)
    if missing is not None:
        texts.append(missing.text)
    for one in addons:
        if is_core(one) or done(one):
            continue
        found = issue_of(one)
        texts.append(found.text if found else f"{component(one)}: {_phase(one)}")
    return tuple(sorted(texts))


def _phase(addon: Json) -> str:
    """How far an addon is, in the words of the addon provider; Deployed is of an older spec."""
    phase = conditions.words(conditions.at_path(addon, "status", "phase"))
    return "its last change is not deployed yet" if phase == "Deployed" else phase or "not started"
