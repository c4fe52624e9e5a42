# SPDX-License-Identifier: Apache-2.0
"""Health: HEALTHY, UNHEALTHY or UNKNOWN, with a text for each part.

The keys ``cluster``, ``infrastructure``, ``controlplane`` and ``nodegroup`` and the word ``Ready``
are those of magnum-capi-helm, which dashboards know; ``api`` is the key of the older Kubernetes
monitor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import datetime

from magnum.drivers.k8s_capi_helm.model import (
    conditions,
    GroupState,
    Json,
    MagnumState,
    Missing,
    Observed,
)
from magnum.drivers.k8s_capi_helm.status.causes import root_cause
from magnum.drivers.k8s_capi_helm.status.objects import (
    addons,
    autoscaler,
    certificate_expiry,
    controller_leases,
    infrastructure,
    machine_deployment,
    machine_stage,
    machines,
    workload_addons,
)
from magnum.drivers.k8s_capi_helm.status.texts.issue import shorten_reason
from magnum.drivers.k8s_capi_helm.status.texts.public_text import first_sentence, public

HEALTHY = "HEALTHY"
UNHEALTHY = "UNHEALTHY"
UNKNOWN = "UNKNOWN"
READY = "Ready"
#: Texts of a healthy part, and keys that are no parts: they are there whatever the health is.
_HEALTHY_TEXTS = frozenset({READY, "ok"})
_NO_PARTS = frozenset({"labels", "notice", "request"})

_UNREADABLE = "cannot be read"
_UNPROCESSED = "its last change is not processed yet"
_SINCE = "unreachable since "
#: A part's health and its text.
Part = tuple[str, str]


def evaluate(observed: Observed, state: MagnumState) -> tuple[str, Mapping[str, str]]:
    """The cluster's health and the text of each part.

    UNHEALTHY where something is known to be bad, else UNKNOWN where something is not known.
    """
    if observed.unreachable:
        return UNKNOWN, {"management": _unreachable(observed, state)}
    stale_controllers = controller_leases.describe(observed.stale_controllers)
    if stale_controllers is not None:
        # What they have said of the cluster is old, the bad as well as the good.
        words, since = stale_controllers
        old_parts: dict[str, Part] = {"management": (UNKNOWN, f"{words} {_exact_time(since)}")}
        return _with_texts(old_parts | _operator_parts(observed))
    parts = {
        "cluster": _cluster(observed.cluster),
        "infrastructure": _infrastructure(observed.infrastructure),
        "controlplane": _control_plane(observed, state.health_reason.get("controlplane", "")),
        "nodegroup": _nodegroups(observed, state),
        "api": _api(observed.cluster),
    }
    not_deployed = addons.not_deployed(
        observed, state.without_addons, state.health_reason.get("addons", "")
    )
    if not_deployed:
        # Where the Cluster is not found it may be another management cluster that answers.
        is_found = not isinstance(observed.addons, Missing) and not isinstance(
            observed.cluster, Missing
        )
        parts["addons"] = (UNHEALTHY if is_found else UNKNOWN, "; ".join(not_deployed))
    if observed.inside is not None:
        text = workload_addons.describe(observed.inside)
        # What is not known of it is no word on the cluster.
        is_bad = bool(observed.inside.missing)
        parts["inside"] = (UNHEALTHY if is_bad else HEALTHY), text or READY
    return _with_texts(parts | _operator_parts(observed))


def _with_texts(parts: Mapping[str, Part]) -> tuple[str, Mapping[str, str]]:
    verdicts = {verdict for verdict, _ in parts.values()}
    worst = next((level for level in (UNHEALTHY, UNKNOWN) if level in verdicts), HEALTHY)
    return worst, {key: shorten_reason(text) for key, (_, text) in parts.items()}


def _operator_parts(observed: Observed) -> dict[str, Part]:
    """What no Cluster API object tells: credential, certificates, autoscaler; only what is so."""
    parts: dict[str, Part] = {}
    if observed.credential:
        parts["credential"] = UNHEALTHY, observed.credential
    if observed.autoscaler is not None:
        problem = autoscaler.issue_of(observed.autoscaler)
        if problem is None:
            # What is not known of it is no word on the machines.
            parts["autoscaler"] = HEALTHY, "not reported"
        else:
            parts["autoscaler"] = (UNHEALTHY, problem) if problem else (HEALTHY, READY)
    expiry = certificate_expiry.control_plane_expiry(observed)
    if expiry is not None:
        parts["certificates"] = _certificates(*expiry, observed.at)
    return parts


def parts_not_ready(texts: Mapping[str, str]) -> dict[str, str]:
    """The parts that are not healthy, or not known to be, of what is recorded of a health."""
    return {
        part: text
        for part, text in texts.items()
        if text not in _HEALTHY_TEXTS and part not in _NO_PARTS
    }


def _certificates(end: datetime.datetime, node: str, now: datetime.datetime) -> Part:
    if end <= now:
        return UNHEALTHY, f"the certificates of {node} expired on {end:%Y-%m-%d}"
    if end - now < certificate_expiry.NEAR:
        return UNHEALTHY, (
            f"the certificates of {node} expire on {end:%Y-%m-%d}, and nothing renews them"
        )
    return HEALTHY, READY


def _unreachable(observed: Observed, state: MagnumState) -> str:
    """When it began: the first look that failed keeps its time until one succeeds."""
    before = state.health_reason.get("management", "")
    if before.startswith(_SINCE):
        return before
    return f"{_SINCE}{_exact_time(observed.at)}"


def _exact_time(at: datetime.datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _from_conditions(obj: Json, types: Iterable[str]) -> Part:
    """Bad beats unknown beats ready; the text is the controller's own."""
    unknown = ""
    for condition_type in types:
        condition = conditions.condition(obj, condition_type)
        if condition.bad:
            sentence = first_sentence(condition.message or condition.reason)
            return UNHEALTHY, f"{condition_type}: {sentence or 'no'}"
        if not condition.good and not unknown:
            cause = _UNPROCESSED if condition.stale else "not reported"
            unknown = f"{condition_type}: {first_sentence(condition.message) or cause}"
    return (UNKNOWN, unknown) if unknown else (HEALTHY, READY)


def _absent(obj: Json | Missing) -> Part | None:
    if obj is Missing.UNREADABLE:
        return UNKNOWN, _UNREADABLE
    # Not found is not proof of a fault: it may be another management cluster that answers.
    return (UNKNOWN, "not found on the management cluster") if isinstance(obj, Missing) else None


def _cluster(owner: Json | Missing) -> Part:
    absent = _absent(owner)
    if absent or isinstance(owner, Missing):
        return absent or (UNKNOWN, _UNREADABLE)
    if conditions.is_terminating(owner):
        return UNHEALTHY, "is being deleted"
    if conditions.paused(owner):
        # Cluster API looks at nothing of it: what its objects say is as old as the pause.
        return UNKNOWN, "is paused on the management cluster"
    if conditions.condition(owner, "RemoteConnectionProbe").bad:
        # Nobody can see the nodes: what Cluster API still says of them is old.
        probe = conditions.condition(owner, "RemoteConnectionProbe")
        return UNKNOWN, public(probe.message) or "the cluster's API does not answer"
    if not conditions.generation_seen(owner):
        return UNKNOWN, _UNPROCESSED
    if not conditions.condition(owner, "ControlPlaneInitialized").good:
        return UNKNOWN, "the control plane is not initialized yet"
    return _from_conditions(owner, ("Available",))


def _api(owner: Json | Missing) -> Part:
    if isinstance(owner, Missing):
        return UNKNOWN, "unknown"
    probe = conditions.condition(owner, "RemoteConnectionProbe")
    if probe.good:
        return HEALTHY, "ok"
    return UNKNOWN, public(probe.message) or "not probed yet"


def _infrastructure(owner: Json | Missing) -> Part:
    absent = _absent(owner)
    if absent or isinstance(owner, Missing):
        return absent or (UNKNOWN, _UNREADABLE)
    for condition_type in infrastructure.PARTS:
        condition = conditions.condition(owner, condition_type)
        if condition.bad:
            return UNHEALTHY, f"{condition_type}: {public(condition.message or condition.reason)}"
    issue = infrastructure.openstack_missing(owner)
    if issue is not None:
        failure = conditions.at_path(owner, "status", "failureMessage")
        was_ready = conditions.is_initialized(owner, "provisioned", "ready")
        # What was never there is no fault yet: the lifecycle tells how far it is.
        is_bad = bool(failure) or was_ready or conditions.is_terminating(owner)
        return (UNHEALTHY if is_bad else UNKNOWN), public(str(failure or issue.text))
    return HEALTHY, READY


def _control_plane(observed: Observed, previous_text: str) -> Part:
    owner = observed.control_plane
    absent = _absent(owner)
    if absent or isinstance(owner, Missing):
        return absent or (UNKNOWN, _UNREADABLE)
    if isinstance(observed.machines, Missing):
        return UNKNOWN, f"Machines {_UNREADABLE}"
    replicas = conditions.at_path(owner, "spec", "replicas")
    count = replicas if isinstance(replicas, int) else 0
    part = _machines(machines.of_control_plane(observed.machines), count, observed, previous_text)
    if part[0] == HEALTHY and not conditions.generation_seen(owner):
        return UNKNOWN, _UNPROCESSED
    if part[0] != HEALTHY:
        return part
    available = conditions.condition(owner, "Available")
    if available.good and available.message:
        return UNHEALTHY, first_sentence(available.message)
    return _from_conditions(owner, ("Available",))


def _machines(
    machine_objects: tuple[Json, ...], count: int, observed: Observed, previous_text: str
) -> Part:
    servers = observed.servers
    unready = [
        _machine(machine, observed, previous_text)
        for machine in machine_objects
        if not machines.is_ready(machine)
    ]
    faults = [text for verdict, text in unready if verdict == UNHEALTHY]
    if faults:
        return UNHEALTHY, "; ".join(faults)
    if len(machine_objects) != count:
        return UNHEALTHY, f"{len(machine_objects)} of {count} machines"
    if unready:
        return UNKNOWN, "; ".join(text for _, text in unready)
    issue = machines.server_issue(machine_objects, servers)
    if issue is not None:
        return (UNKNOWN if isinstance(servers, Missing) else UNHEALTHY), issue.text
    return HEALTHY, READY


def _machine(machine: Json, observed: Observed, previous_text: str) -> Part:
    """A machine that is not ready.

    By its node's name, as ``kubectl get nodes`` shows it, where it has one. A node that never was
    is no fault as long as nothing keeps it from coming: the lifecycle tells how far it is.
    """
    name = conditions.at_path(machine, "status", "nodeRef", "name") or conditions.name(machine)
    if conditions.is_terminating(machine):
        return UNHEALTHY, f"{name}: being deleted"
    if not machine_stage.has_node(machine):
        fault = root_cause.machine_fault(machine, observed, previous_text)
        text = (fault or machine_stage.stage(machine)).text
        return (UNHEALTHY if fault else UNKNOWN), shorten_reason(text)
    ready = conditions.condition(machine, "Ready")
    text = shorten_reason(f"{name}: {first_sentence(ready.message) or 'not ready'}")
    is_bad = ready.bad or machine_stage.is_node_unreachable(machine)
    return (UNHEALTHY if is_bad else UNKNOWN), text


def _nodegroups(observed: Observed, state: MagnumState) -> Part:
    if any(
        isinstance(objects, Missing)
        for objects in (observed.machine_deployments, observed.machine_sets, observed.machines)
    ):
        return UNKNOWN, _UNREADABLE
    previous_text = state.health_reason.get("nodegroup", "")
    expected = [nodegroup for nodegroup in state.groups if _is_expected(nodegroup, observed)]
    parts = [_nodegroup(nodegroup, observed, previous_text) for nodegroup in expected]
    for verdict in (UNHEALTHY, UNKNOWN):
        texts = [text for part_verdict, text in parts if part_verdict == verdict]
        if texts:
            return verdict, "; ".join(texts)
    return HEALTHY, READY


def _is_expected(nodegroup: GroupState, observed: Observed) -> bool:
    """A group that leaves is not missed, nor is one that was refused and never made."""
    assert not isinstance(observed.machine_deployments, Missing)
    if nodegroup.is_control_plane or nodegroup.is_deleting:
        return False
    deployments = machines.deployments_of(nodegroup.name, observed.machine_deployments)
    return bool(deployments) or nodegroup.status != "CREATE_FAILED"


def _nodegroup(nodegroup: GroupState, observed: Observed, previous_text: str) -> Part:
    assert not isinstance(observed.machine_deployments, Missing)
    assert not isinstance(observed.machine_sets, Missing)
    assert not isinstance(observed.machines, Missing)
    owners = machines.deployments_of(nodegroup.name, observed.machine_deployments)
    if not owners and nodegroup.status == "CREATE_IN_PROGRESS":
        return UNKNOWN, f"{nodegroup.name}: being created"
    if len(owners) != 1:
        verdict = UNHEALTHY if observed.machine_deployments else UNKNOWN
        return verdict, f"{nodegroup.name}: not found on the management cluster"
    own_machines = machines.of_nodegroup(observed.machines, nodegroup.name, owners)
    count = machine_deployment.replicas(owners[0]) or 0
    verdict, text = _machines(own_machines, count, observed, previous_text)
    sets = machines.of_nodegroup(observed.machine_sets, nodegroup.name, owners)
    if verdict == HEALTHY and not (
        sets and all(conditions.generation_seen(obj) for obj in (*owners, *sets))
    ):
        return UNKNOWN, f"{nodegroup.name}: {_UNPROCESSED}"
    return verdict, f"{nodegroup.name}: {text}"
