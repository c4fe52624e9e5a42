# SPDX-License-Identifier: Apache-2.0
"""Whether the required addons exist and are deployed with the current spec.

Their status has no observed generation: the phase stays Deployed right after an edit. So their spec
is compared with the one that was handled last.

An error that the addon provider does not expect, such as a template that cannot be rendered, never
gets as far as the status: kopf tries again for ever and keeps since when, how often and why in
an annotation (https://kopf.readthedocs.io, "Handling progress").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
import datetime
import re
from typing import Any

from magnum.drivers.k8s_capi_helm.errors import Cause
from magnum.drivers.k8s_capi_helm.model import addons as addon_objects
from magnum.drivers.k8s_capi_helm.model import conditions, Json, Missing, names, Observed, present
from magnum.drivers.k8s_capi_helm.status.objects import timestamps
from magnum.drivers.k8s_capi_helm.status.texts.issue import Issue
from magnum.drivers.k8s_capi_helm.status.texts.public_text import public

#: No node is ready without one of these.
NETWORK = frozenset({"cni-calico", "cni-cilium"})
#: It gives nodes their ``providerID``, by which Cluster API finds them
#: (https://kubernetes.io/docs/concepts/architecture/cloud-controller/#node-controller).
CLOUD_CONTROLLER = frozenset({"ccm-openstack"})
#: Without one of each a cluster has no usable nodes or no volumes: they are part of COMPLETE.
CORE: tuple[frozenset[str], ...] = (
    NETWORK,
    frozenset({"cloud-config"}),
    CLOUD_CONTROLLER,
    frozenset({"csi-cinder"}),
)

_IN_PROGRESS = f"{names.ADDONS_GROUP}/handle_addon_updated"

#: How long the addon provider may retry, or not start, until that is reported.
PATIENCE = datetime.timedelta(minutes=10)
#: It waits for its gate, and what keeps the cluster from being ready has reasons of its own.
_GATE = re.compile(r"cluster '[^']*' is not ready")
_NO_START = "the addon provider has not begun to install"
#: Phases before anything is done for an addon.
_NOT_BEGUN = ("", "Unknown", "Pending")


def component(addon: Json) -> str:
    """The chart's name for the addon, else the object's own."""
    return conditions.object_label(addon, names.LABEL_CHART_COMPONENT) or conditions.name(addon)


def is_core(addon: Json) -> bool:
    """The cluster cannot be called COMPLETE without it."""
    return any(component(addon) in alternatives for alternatives in CORE)


def is_addon_deployed(addon: Json) -> bool:
    """Deployed, from the spec that the object has now, and nothing about it is in progress."""
    if conditions.is_terminating(addon):
        return False
    if any(key.startswith(_IN_PROGRESS) for key in conditions.object_annotations(addon)):
        return False
    is_deployed = conditions.at_path(addon, "status", "phase") == "Deployed"
    return is_deployed and addon_objects.is_spec_handled(addon)


def switched_off(values: Mapping[str, Any]) -> frozenset[str]:
    """Core addons that a release's values switch off; the charts have all of them on by default."""
    addon_values = values.get("addons", {})
    openstack = addon_values.get("openstack", {})
    switches = {
        "csi-cinder": openstack.get("csiCinder", {}),
        "ccm-openstack": openstack.get("ccm", {}),
        "cloud-config": openstack,
    }
    disabled = {name for name, switch in switches.items() if switch.get("enabled") is False}
    if openstack.get("enabled") is False:
        disabled |= set(switches)
    if (
        addon_values.get("cni", {}).get("enabled") is False
        or addon_values.get("cni", {}).get("type") == "none"
    ):
        disabled |= NETWORK
    return frozenset(disabled)


def core_missing(
    observed: Observed, switched_off: Iterable[str] = (), previous_reasons: str = ""
) -> Issue | None:
    """The first core addon that is not there or not done, None when all are.

    :param switched_off: core addons that the release switches off.
    :param previous_reasons: what Magnum's objects say now.
    """
    addons = observed.addons
    if isinstance(addons, Missing):
        return Issue("the addons cannot be read")
    disabled = frozenset(switched_off)
    for alternatives in CORE:
        installed = [addon for addon in addons if component(addon) in alternatives]
        if not installed and not alternatives & disabled:
            return Issue(f"addon {' or '.join(sorted(alternatives))} does not exist")
    waiting = [addon for addon in addons if is_core(addon) and not is_addon_deployed(addon)]
    for addon in waiting:
        issue = issue_of(addon, observed, previous_reasons)
        if issue is not None:
            return issue
    if waiting:
        total = sum(1 for addon in addons if is_core(addon))
        names = ", ".join(sorted(component(addon) for addon in waiting))
        return Issue(
            f"{total - len(waiting)} of {total} core addons are deployed, waiting for {names}"
        )
    return None


def issue_of(addon: Json, observed: Observed, previous_reasons: str = "") -> Issue | None:
    """Why an addon cannot be deployed, None while it may just take its time.

    :param previous_reasons: what Magnum's objects say now.
    """
    if is_addon_deployed(addon):
        return None
    return _failed(addon) or _retried(addon) or _not_begun(addon, observed, previous_reasons)


def component_issue(
    observed: Observed, components: frozenset[str], previous_reasons: str = ""
) -> Issue | None:
    """Why one of some addons cannot be deployed, None while they may just take their time.

    :param components: such as :data:`NETWORK`.
    :param previous_reasons: what Magnum's objects say now.
    """
    for addon in present(observed.addons):
        if component(addon) in components:
            issue = issue_of(addon, observed, previous_reasons)
            if issue is not None:
                return issue
    return None


def _failed(addon: Json) -> Issue | None:
    """The addon provider has given it up until it changes."""
    if conditions.at_path(addon, "status", "phase") != "Failed":
        return None
    message = conditions.at_path(addon, "status", "failureMessage")
    text = public(str(message)) if message else "its installation failed"
    return Issue(f"{component(addon)}: {text}", Cause.ADDON)


def _retried(addon: Json) -> Issue | None:
    """The addon provider tries for longer than it should, by its own times, and has said why.

    Only the first line of what it says: a broken document is quoted in those that follow, with
    whatever credential stands in it.
    """
    for attempt in _attempts(addon):
        since = conditions.instant(attempt.get("started"))
        until = conditions.instant(attempt.get("delayed"))
        line = conditions.words(attempt.get("message")).strip().partition("\n")[0]
        if since is None or until is None or until - since <= PATIENCE or _GATE.fullmatch(line):
            continue
        text = f"{component(addon)}: every attempt to install it fails"
        return Issue(f"{text}: {public(line)}" if line else text, Cause.ADDON, since=since)
    return None


def _not_begun(addon: Json, observed: Observed, previous_reasons: str) -> Issue | None:
    """The addon provider has not begun with it, by the clock of the API server.

    A conductor that has just started may know less of that clock than the one before it, so what
    is reported of any addon, whose text may be cut, stays.
    """
    phase = conditions.words(conditions.at_path(addon, "status", "phase"))
    if phase not in _NOT_BEGUN or _is_paused(addon) or next(_attempts(addon), None) is not None:
        return None
    created = conditions.instant(conditions.metadata(addon).get("creationTimestamp"))
    is_reported = _NO_START in previous_reasons
    if not is_reported and not timestamps.is_older(created, observed, PATIENCE):
        return None
    return Issue(f"{component(addon)}: {_NO_START} it", Cause.MANAGEMENT, since=created)


def _attempts(addon: Json) -> Iterator[Json]:
    """What kopf keeps of each handler that has not come to its end."""
    for key, text in sorted(conditions.object_annotations(addon).items()):
        if key.startswith(_IN_PROGRESS):
            yield addon_objects.json_object(text)


def _is_paused(addon: Json) -> bool:
    return conditions.at_path(addon, "spec", "paused") is True


def not_deployed(
    observed: Observed, switched_off: Iterable[str] = (), previous_reasons: str = ""
) -> tuple[str, ...]:
    """Addons that are not deployed, core and optional, each with its phase or message.

    :param switched_off: core addons that the release switches off.
    :param previous_reasons: what Magnum's objects say now.
    """
    if isinstance(observed.addons, Missing):
        return ("the addons cannot be read",)
    texts = []
    missing = core_missing(observed, switched_off, previous_reasons)
    if missing is not None:
        texts.append(missing.text)
    for addon in observed.addons:
        if is_core(addon) or is_addon_deployed(addon):
            continue
        issue = issue_of(addon, observed, previous_reasons)
        texts.append(issue.text if issue else f"{component(addon)}: {_phase(addon)}")
    return tuple(sorted(texts))


def _phase(addon: Json) -> str:
    """How far an addon is, in the words of the addon provider; Deployed is of an older spec."""
    if _is_paused(addon):
        return "paused"
    phase = conditions.words(conditions.at_path(addon, "status", "phase"))
    return "its last change is not deployed yet" if phase == "Deployed" else phase or "not started"
