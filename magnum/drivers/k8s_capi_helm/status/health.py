# SPDX-License-Identifier: Apache-2.0
"""Health: HEALTHY, UNHEALTHY or UNKNOWN, with a text for each part, "Ready" where it is fine.

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
from magnum.drivers.k8s_capi_helm.status import (
    addons,
    autoscaler,
    certificate_expiry,
    controller_leases,
    infrastructure,
    machine_deployment,
    machine_stage,
    machines,
    root_cause,
    workload_addons,
)
from magnum.drivers.k8s_capi_helm.status.issue import bounded
from magnum.drivers.k8s_capi_helm.status.public_text import first_bullet, public

HEALTHY = "HEALTHY"
UNHEALTHY = "UNHEALTHY"
UNKNOWN = "UNKNOWN"
READY = "Ready"

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
    silent = controller_leases.describe(observed.silent)
    if silent is not None:
        # What they have said of the cluster is old, the bad as well as the good.
        words, since = silent
        old: dict[str, Part] = {"management": (UNKNOWN, f"{words} {_exact(since)}")}
        return _of(old | _of_operators(observed))
    parts = {
        "cluster": _cluster(observed.cluster),
        "infrastructure": _infrastructure(observed.infrastructure),
        "controlplane": _control_plane(observed, state.health_reason.get("controlplane", "")),
        "nodegroup": _node_groups(observed, state),
        "api": _api(observed.cluster),
    }
    extra = addons.not_deployed(observed, state.without_addons)
    if extra:
        # Where the Cluster is not found it may be another management cluster that answers.
        seen = not isinstance(observed.addons, Missing) and not isinstance(
            observed.cluster, Missing
        )
        parts["addons"] = (UNHEALTHY if seen else UNKNOWN, "; ".join(extra))
    if observed.inside is not None:
        text = workload_addons.describe(observed.inside)
        # What is not known of it is no word on the cluster.
        bad = bool(observed.inside.missing)
        parts["inside"] = (UNHEALTHY if bad else HEALTHY), text or READY
    return _of(parts | _of_operators(observed))


def _of(parts: Mapping[str, Part]) -> tuple[str, Mapping[str, str]]:
    verdicts = {verdict for verdict, _ in parts.values()}
    worst = next((one for one in (UNHEALTHY, UNKNOWN) if one in verdicts), HEALTHY)
    return worst, {key: bounded(text) for key, (_, text) in parts.items()}


def _of_operators(observed: Observed) -> dict[str, Part]:
    """What no Cluster API object tells: credential, certificates, autoscaler; only what is so."""
    parts: dict[str, Part] = {}
    if observed.credential:
        parts["credential"] = UNHEALTHY, observed.credential
    if observed.autoscaler is not None:
        wrong = autoscaler.issue_of(observed.autoscaler)
        if wrong is None:
            # What is not known of it is no word on the machines.
            parts["autoscaler"] = HEALTHY, "not reported"
        else:
            parts["autoscaler"] = (UNHEALTHY, wrong) if wrong else (HEALTHY, READY)
    if not isinstance(observed.machines, Missing):
        ends = certificate_expiry.first_end(machines.of_control_plane(observed.machines))
        if ends is not None:
            parts["certificates"] = _certificates(*ends, observed.at)
    return parts


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
    return f"{_SINCE}{_exact(observed.at)}"


def _exact(at: datetime.datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _from_conditions(thing: Json, kinds: Iterable[str]) -> Part:
    """Bad beats unknown beats ready; the text is the controller's own."""
    unknown = ""
    for kind in kinds:
        said = conditions.condition(thing, kind)
        if said.bad:
            return UNHEALTHY, f"{kind}: {first_bullet(said.message or said.reason) or 'no'}"
        if not said.good and not unknown:
            why = _UNPROCESSED if said.stale else "not reported"
            unknown = f"{kind}: {first_bullet(said.message) or why}"
    return (UNKNOWN, unknown) if unknown else (HEALTHY, READY)


def _absent(thing: Json | Missing) -> Part | None:
    if thing is Missing.UNREADABLE:
        return UNKNOWN, _UNREADABLE
    # Not found is not proof of a fault: it may be another management cluster that answers.
    return (UNKNOWN, "not found on the management cluster") if isinstance(thing, Missing) else None


def _cluster(owner: Json | Missing) -> Part:
    absent = _absent(owner)
    if absent or isinstance(owner, Missing):
        return absent or (UNKNOWN, _UNREADABLE)
    if conditions.deleting(owner):
        return UNHEALTHY, "is being deleted"
    if conditions.condition(owner, "RemoteConnectionProbe").bad:
        # Nobody can see the nodes: what Cluster API still says of them is old.
        said = conditions.condition(owner, "RemoteConnectionProbe")
        return UNKNOWN, public(said.message) or "the cluster's API does not answer"
    if not conditions.generation_seen(owner):
        return UNKNOWN, _UNPROCESSED
    if not conditions.condition(owner, "ControlPlaneInitialized").good:
        return UNKNOWN, "the control plane is not initialized yet"
    return _from_conditions(owner, ("Available",))


def _api(owner: Json | Missing) -> Part:
    if isinstance(owner, Missing):
        return UNKNOWN, "unknown"
    said = conditions.condition(owner, "RemoteConnectionProbe")
    if said.good:
        return HEALTHY, "ok"
    return UNKNOWN, public(said.message) or "not probed yet"


def _infrastructure(owner: Json | Missing) -> Part:
    absent = _absent(owner)
    if absent or isinstance(owner, Missing):
        return absent or (UNKNOWN, _UNREADABLE)
    for kind in infrastructure.PARTS:
        said = conditions.condition(owner, kind)
        if said.bad:
            return UNHEALTHY, f"{kind}: {public(said.message or said.reason)}"
    gap = infrastructure.openstack_missing(owner)
    if gap is not None:
        failure = conditions.at_path(owner, "status", "failureMessage")
        begun = conditions.initialized(owner, "provisioned", "ready")
        # What was never there is no fault yet: the lifecycle tells how far it is.
        bad = bool(failure) or begun or conditions.deleting(owner)
        return (UNHEALTHY if bad else UNKNOWN), public(str(failure or gap.text))
    return HEALTHY, READY


def _control_plane(observed: Observed, told: str) -> Part:
    owner = observed.control_plane
    absent = _absent(owner)
    if absent or isinstance(owner, Missing):
        return absent or (UNKNOWN, _UNREADABLE)
    if isinstance(observed.machines, Missing):
        return UNKNOWN, f"Machines {_UNREADABLE}"
    wanted = conditions.at_path(owner, "spec", "replicas")
    count = wanted if isinstance(wanted, int) else 0
    part = _machines(machines.of_control_plane(observed.machines), count, observed, told)
    if part[0] == HEALTHY and not conditions.generation_seen(owner):
        return UNKNOWN, _UNPROCESSED
    if part[0] != HEALTHY:
        return part
    said = conditions.condition(owner, "Available")
    if said.good and said.message:
        return UNHEALTHY, first_bullet(said.message)
    return _from_conditions(owner, ("Available",))


def _machines(mine: tuple[Json, ...], wanted: int, observed: Observed, told: str) -> Part:
    servers = observed.servers
    bad = [_machine(one, observed, told) for one in mine if not machines.is_ready(one)]
    known = [text for verdict, text in bad if verdict == UNHEALTHY]
    if known:
        return UNHEALTHY, "; ".join(known)
    if len(mine) != wanted:
        return UNHEALTHY, f"{len(mine)} of {wanted} machines"
    if bad:
        return UNKNOWN, "; ".join(text for _, text in bad)
    behind = machines.servers_missing(mine, servers)
    if behind is not None:
        return (UNKNOWN if isinstance(servers, Missing) else UNHEALTHY), behind.text
    return HEALTHY, READY


def _machine(machine: Json, observed: Observed, told: str) -> Part:
    """A machine that is not ready.

    By its node's name, as ``kubectl get nodes`` shows it, where it has one. A node that never was
    is no fault as long as nothing keeps it from coming: the lifecycle tells how far it is.
    """
    name = conditions.at_path(machine, "status", "nodeRef", "name") or conditions.name(machine)
    if conditions.deleting(machine):
        return UNHEALTHY, f"{name}: being deleted"
    if not machine_stage.has_node(machine):
        fault = root_cause.machine_fault(machine, observed, told)
        text = (fault or machine_stage.stage(machine)).text
        return (UNHEALTHY if fault else UNKNOWN), bounded(text)
    said = conditions.condition(machine, "Ready")
    text = bounded(f"{name}: {first_bullet(said.message) or 'not ready'}")
    return (UNHEALTHY if said.bad else UNKNOWN), text


def _node_groups(observed: Observed, state: MagnumState) -> Part:
    if any(
        isinstance(one, Missing)
        for one in (observed.machine_deployments, observed.machine_sets, observed.machines)
    ):
        return UNKNOWN, _UNREADABLE
    told = state.health_reason.get("nodegroup", "")
    wanted = [group for group in state.groups if _wanted(group, observed)]
    found = [_node_group(group, observed, told) for group in wanted]
    for verdict in (UNHEALTHY, UNKNOWN):
        texts = [text for one, text in found if one == verdict]
        if texts:
            return verdict, "; ".join(texts)
    return HEALTHY, READY


def _wanted(group: GroupState, observed: Observed) -> bool:
    """A group that leaves is not missed, nor is one that was refused and never made."""
    assert not isinstance(observed.machine_deployments, Missing)
    if group.is_control_plane or group.is_deleting:
        return False
    made = machines.deployments_of(group.name, observed.machine_deployments)
    return bool(made) or group.status != "CREATE_FAILED"


def _node_group(group: GroupState, observed: Observed, told: str) -> Part:
    assert not isinstance(observed.machine_deployments, Missing)
    assert not isinstance(observed.machine_sets, Missing)
    assert not isinstance(observed.machines, Missing)
    owners = machines.deployments_of(group.name, observed.machine_deployments)
    if len(owners) != 1:
        verdict = UNHEALTHY if observed.machine_deployments else UNKNOWN
        return verdict, f"{group.name}: not found on the management cluster"
    mine = machines.of_group(observed.machines, group.name, owners)
    count = machine_deployment.replicas(owners[0]) or 0
    verdict, text = _machines(mine, count, observed, told)
    sets = machines.of_group(observed.machine_sets, group.name, owners)
    if verdict == HEALTHY and not (
        sets and all(conditions.generation_seen(one) for one in (*owners, *sets))
    ):
        return UNKNOWN, f"{group.name}: {_UNPROCESSED}"
    return verdict, f"{group.name}: {text}"
