# SPDX-License-Identifier: Apache-2.0
"""Kubernetes conditions as True / False / Unknown, both API versions; absent or stale is Unknown.

Cluster API keeps one and the same set of conditions and counters in two places: directly in
``status`` of a v1beta2 object, and in ``status.v1beta2`` of a v1beta1 object, whose own
``status.conditions`` mean something older and are never read here. Source: the Cluster API book,
"v1.10 to v1.11" for providers and clients, and the proposal "Improving status in CAPI resources".
"""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import datetime
import enum
import re
from typing import Any

from magnum.drivers.k8s_capi_helm.model import Json, names

#: For every condition that this driver judges: the status that is good news.
#: The "False" ones say that something is happening, and happening is not done.
GOOD: Mapping[str, str] = {
    # Cluster
    "InfrastructureReady": "True",
    "ControlPlaneInitialized": "True",
    "RemoteConnectionProbe": "True",
    # Cluster, KubeadmControlPlane, MachineDeployment, Machine
    "Available": "True",
    "Ready": "True",
    "UpToDate": "True",
    # KubeadmControlPlane
    "Initialized": "True",
    "CertificatesAvailable": "True",
    "EtcdClusterHealthy": "True",
    "ControlPlaneComponentsHealthy": "True",
    "MachinesUpToDate": "True",
    # MachineSet and above
    "RollingOut": "False",
    "ScalingUp": "False",
    "ScalingDown": "False",
    "Remediating": "False",
    "Deleting": "False",
    "Paused": "False",
    # Machine
    "BootstrapConfigReady": "True",
    "NodeHealthy": "True",
    "NodeReady": "True",
    "HealthCheckSucceeded": "True",
    "Updating": "False",
    # OpenStackCluster and OpenStackServer
    "InstanceReady": "True",
    "NetworkReady": "True",
    "RouterReady": "True",
    "SecurityGroupsReady": "True",
    "APIEndpointReady": "True",
    "OpenStackAuthenticationSucceeded": "True",
}

#: Characters of a message that are read. Cluster API's own definitions let a condition say no more
#: (``maxLength: 10240`` of ``message``); failures of addons and events have no such limit.
LONGEST = 10240

#: Once true, true for good; Cluster API does not touch them again, so they cannot be stale.
MILESTONES = frozenset({"ControlPlaneInitialized", "Initialized"})

_FRACTION = re.compile(r"\.\d+")
_CORE_GROUPS = (names.CORE_GROUP, names.CONTROL_PLANE_GROUP)


class ConditionStatus(enum.Enum):
    """What a condition says; UNKNOWN is also what an absent or stale one says."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclasses.dataclass(frozen=True, slots=True)
class Condition:
    """One condition of one object.

    :ivar present: False when the object does not carry it (yet).
    :ivar stale: it was set for an older generation of the object; ``status`` is UNKNOWN then.
    :ivar was: what it said when it was set, stale or not.
    :ivar since: when the status last changed (aware), None when unsaid.
    """

    name: str
    status: ConditionStatus = ConditionStatus.UNKNOWN
    reason: str = ""
    message: str = ""
    present: bool = False
    stale: bool = False
    was: ConditionStatus = ConditionStatus.UNKNOWN
    since: datetime.datetime | None = None

    @property
    def good(self) -> bool:
        """It says, now, what is good news for a condition of this name."""
        return self.status.value == GOOD[self.name]

    @property
    def bad(self) -> bool:
        """It says, now, the opposite of good news; Unknown is neither good nor bad."""
        return self.status is not ConditionStatus.UNKNOWN and not self.good


def name(obj: Json) -> str:
    """The object's name, "" when it has none."""
    return str(metadata(obj).get("name", ""))


def metadata(obj: Json) -> Json:
    """``metadata`` as a mapping, empty when absent."""
    return mapping(obj.get("metadata"))


def object_label(obj: Json, key: str) -> str | None:
    """The object's label, None without."""
    value = mapping(metadata(obj).get("labels")).get(key)
    return None if value is None else str(value)


def object_annotations(obj: Json) -> Json:
    """The object's annotations, empty without any."""
    return mapping(metadata(obj).get("annotations"))


def mapping(value: object) -> Json:
    """*value* if it is a mapping, else an empty one: an absent branch reads as absent leaves."""
    return value if isinstance(value, dict) else {}


def at_path(obj: Json, *path: str) -> Any:
    """The value at *path*, None where any step of it is absent."""
    value: Any = obj
    for step in path:
        value = mapping(value).get(step)
    return value


def is_terminating(obj: Json) -> bool:
    """Whether the object's deletion is requested; finalizers may still hold it."""
    return bool(metadata(obj).get("deletionTimestamp"))


def paused(cluster: Json) -> bool:
    """Whether a Cluster is paused: Cluster API does not reconcile it."""
    return at_path(cluster, "spec", "paused") is True


def _is_old_view(obj: Json) -> bool:
    """The object is a core Cluster API one, read at v1beta1."""
    api_group, _, version = str(obj.get("apiVersion", "")).partition("/")
    return api_group in _CORE_GROUPS and version == "v1beta1"


def items(obj: Json) -> list[Json]:
    """An object's conditions as they stand in it, of the set that is judged."""
    status = mapping(obj.get("status"))
    if _is_old_view(obj):
        conditions = mapping(status.get("v1beta2")).get("conditions")
    else:
        # Providers: the set of their newest contract first, then whatever they have.
        conditions = mapping(status.get("v1beta2")).get("conditions") or status.get("conditions")
    return (
        [condition for condition in conditions if isinstance(condition, dict)]
        if isinstance(conditions, list)
        else []
    )


def condition(obj: Json, condition_type: str) -> Condition:
    """A condition of an object, UNKNOWN when absent or older than the object's spec."""
    item = next((item for item in items(obj) if item.get("type") == condition_type), None)
    if item is None:
        return Condition(condition_type)
    try:
        status = ConditionStatus(item.get("status"))
    except ValueError:
        status = ConditionStatus.UNKNOWN
    stale = condition_type not in MILESTONES and _older(item.get("observedGeneration"), obj)
    return Condition(
        condition_type,
        ConditionStatus.UNKNOWN if stale else status,
        words(item.get("reason")),
        words(item.get("message")),
        present=True,
        stale=stale,
        was=status,
        since=instant(item.get("lastTransitionTime")),
    )


def words(value: object) -> str:
    """The part of another program's message that is read; "" if it is not a text."""
    return value[:LONGEST] if isinstance(value, str) else ""


def _older(observed: object, obj: Json) -> bool:
    generation = metadata(obj).get("generation")
    return isinstance(observed, int) and isinstance(generation, int) and observed < generation


def generation_seen(obj: Json) -> bool:
    """The controller has worked through the object's newest spec; False when it does not say so."""
    generation = metadata(obj).get("generation")
    observed = at_path(obj, "status", "observedGeneration")
    return isinstance(generation, int) and observed == generation


def counter(obj: Json, key: str) -> int | None:
    """A replica counter, e.g. ``replicas`` or ``upToDateReplicas``.

    None when the object does not say: that is not zero.
    """
    status = mapping(obj.get("status"))
    if key != "replicas" and _is_old_view(obj):
        status = mapping(status.get("v1beta2"))
    value = status.get(key)
    return value if isinstance(value, int) else None


def is_initialized(obj: Json, key: str, old: str) -> bool:
    """A one-way milestone: ``status.initialization.<key>``, before that ``status.<old>``."""
    return (
        at_path(obj, "status", "initialization", key) is True or at_path(obj, "status", old) is True
    )


def instant(text: object) -> datetime.datetime | None:
    """A timestamp of the Kubernetes API as an aware datetime, None when it is none."""
    if not isinstance(text, str):
        return None
    try:
        # Python 3.10 takes neither a Z nor nanoseconds.
        zone = "+00:00" if text.endswith("Z") else ""
        whole = _FRACTION.sub(lambda found: f"{found[0]:0<7.7}", text.removesuffix("Z"))
        parsed = datetime.datetime.fromisoformat(whole + zone)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=datetime.timezone.utc)


def tells_of_failure(event: Json) -> bool:
    """Whether an event counts here; few do.

    CAPO sends some of them as Normal, so the type says nothing; their reasons begin with "Failed".
    """
    return str(event.get("reason") or "").lower().startswith("failed")
