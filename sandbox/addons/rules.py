# SPDX-License-Identifier: Apache-2.0
"""Rules of the addon provider as tables; the first match applies.

Everything here is pure: :class:`Seen` holds what was read, an :class:`Answer` says what follows.
"""

from collections.abc import Callable, Mapping
import dataclasses
import enum
from typing import Any

from sandbox.addons import model, templates

Document = Mapping[str, Any]

GROUP = "addons.stackhpc.com"
VERSION = "v1alpha1"
#: Kind and plural of both kinds of addon.
KINDS = {"HelmRelease": "helmreleases", "Manifests": "manifests"}
FINALIZER = f"{GROUP}/finalizer"
#: kopf keeps here what it handled last, as JSON.
LAST_HANDLED = "last-handled-configuration"
WATCH_LABEL = f"{GROUP}/watch"
#: Characters of the part of a label's name that stands before the slash.
LONGEST_PREFIX = 253
FAULTS = "addons-faults"


class Phase(enum.StrEnum):
    """status.phase of an addon."""

    UNKNOWN = "Unknown"  # of an addon whose status nobody has written yet
    PENDING = "Pending"  # seen; it waits for its Cluster, an identity or a gate
    PREPARING = "Preparing"  # a run of Helm was interrupted: its release is repaired first
    INSTALLING = "Installing"  # Helm runs for the first time
    UPGRADING = "Upgrading"  # Helm runs, and there was a revision before
    DEPLOYED = "Deployed"  # Helm has ended well; revision counts its runs
    FAILED = "Failed"  # refused, with failureMessage, until spec or annotations change
    UNINSTALLING = "Uninstalling"  # deleted while its Cluster lives: Helm runs once more


class Act(enum.Enum):
    """What to do next."""

    SKIP = "leave the addon alone"
    RETRY = "say why in the kopf annotation and look again after the retry delay"
    CRASH = "as an unexpected error: kopf tries again on its own after a minute"
    FAIL = "phase Failed with a message, until spec or annotations change"
    INSTALL = "run Helm"
    UNINSTALL = "phase Uninstalling, run Helm, then let go of the finalizer"
    RELEASE = "let go of the finalizer at once"


@dataclasses.dataclass(frozen=True)
class Answer:
    """An act, and the sentence that goes with it."""

    act: Act
    message: str = ""


@dataclasses.dataclass(frozen=True)
class Seen:
    """What was read for one addon; None where an object does not exist.

    :ivar sources: the ConfigMaps and Secrets that the addon takes values or manifests from, by
        kind and name.
    :ivar unknown_kind: why the infrastructure cluster or the identity cannot be looked for; empty
        where they can.
    :ivar faults: the data of the ConfigMap default/addons-faults.
    :ivar has_kubeconfig: whether the Secret with the workload cluster's kubeconfig is there.
    """

    addon: Document
    cluster: Document | None = None
    infra_cluster: Document | None = None
    identity: Document | None = None
    sources: Mapping[tuple[str, str], Document | None] = dataclasses.field(default_factory=dict)
    unknown_kind: str = ""
    faults: Mapping[str, str] = dataclasses.field(default_factory=dict)
    has_kubeconfig: bool = True

    @property
    def spec(self) -> Document:
        """spec of the addon."""
        spec: Document = self.addon["spec"]
        return spec

    def context(self) -> dict[str, Any]:
        """Variables of a template."""
        return {
            "addon": model.of(self.addon),
            "cluster": self.cluster,
            "infra_cluster": self.infra_cluster,
            "cloud_identity": self.identity,
        }


@dataclasses.dataclass(frozen=True)
class Rule:
    """One line of a table: what it is about, and the question."""

    name: str
    ask: Callable[[Seen], Answer | None]


def source_names(addon: Document) -> list[tuple[str, str]]:
    """Kind and name of every ConfigMap and Secret that an addon names."""
    spec = addon["spec"]
    found = []
    for source in spec.get("valuesSources") or spec.get("manifestSources") or []:
        for key, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
            if key in source:
                found.append((kind, source[key]["name"]))
    return found


def used_sources(seen: Seen) -> list[tuple[str, str]]:
    """The same, and the identity of the infrastructure cluster: templates may use it."""
    named = source_names(seen.addon)
    identity = watched_identity(seen)
    if identity is not None:
        named.append((identity["kind"], identity["metadata"]["name"]))
    return named


def watched_identity(seen: Seen) -> Document | None:
    """The identity if its changes are seen: a ConfigMap or Secret beside the addon."""
    found = seen.identity
    if (
        found is not None
        and found["apiVersion"] == "v1"
        and found["kind"] in ("ConfigMap", "Secret")
        and found["metadata"]["namespace"] == seen.addon["metadata"]["namespace"]
    ):
        return found
    return None


def checksum_annotation(kind: str, name: str) -> str:
    """Annotation with the checksum of a source: a new value makes Helm run again."""
    return f"{kind.lower()}.{GROUP}/{name}"


def labels(seen: Seen) -> dict[str, str]:
    """Labels that the addon provider sets, but only once the cluster and its identity are found."""
    spec, name = seen.spec, seen.addon["metadata"]["name"]
    uses = {f"{source}.{kind.lower()}.{GROUP}/uses": "" for kind, source in used_sources(seen)}
    return {
        f"{GROUP}/cluster": spec["clusterName"],
        f"{GROUP}/release-namespace": spec["targetNamespace"],
        f"{GROUP}/release-name": spec.get("releaseName") or name,
        **uses,
    }


def owner(cluster: Document) -> dict[str, Any]:
    """Owner reference that lets an addon go with its Cluster."""
    return {
        "apiVersion": cluster["apiVersion"],
        "kind": "Cluster",
        "name": cluster["metadata"]["name"],
        "uid": cluster["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }


def _paused(seen: Seen) -> Answer | None:
    return Answer(Act.SKIP, "the addon is paused") if seen.spec.get("paused") else None


def _cluster_missing(seen: Seen) -> Answer | None:
    if seen.cluster is None:
        return Answer(Act.RETRY, f"cluster '{seen.spec['clusterName']}' not found")
    return None


def _unknown_kind(seen: Seen) -> Answer | None:
    return Answer(Act.CRASH, f"ValueError: {seen.unknown_kind}") if seen.unknown_kind else None


def _infra_cluster_missing(seen: Seen) -> Answer | None:
    if seen.infra_cluster is None:
        return Answer(Act.RETRY, "the cluster's infrastructure cluster is not found")
    return None


def _no_identity_named(seen: Seen) -> Answer | None:
    named = ((seen.infra_cluster or {}).get("spec") or {}).get("identityRef")
    if not named:
        return Answer(Act.CRASH, "TypeError: the infrastructure cluster has no identityRef")
    return None


def _identity_missing(seen: Seen) -> Answer | None:
    if seen.identity is None:
        return Answer(Act.RETRY, "what identityRef names is not found")
    return None


def _source_name_too_long(seen: Seen) -> Answer | None:
    for key in labels(seen):
        if len(key.partition("/")[0]) > LONGEST_PREFIX:
            return Answer(
                Act.FAIL,
                f"metadata.labels: Invalid value: {key!r}: "
                f"prefix part must be no more than {LONGEST_PREFIX} characters",
            )
    return None


def _not_ready(seen: Seen) -> Answer | None:
    wanted = gate(seen.spec)
    cluster = seen.cluster or {}
    met = {
        condition["type"]
        for condition in (cluster.get("status") or {}).get("conditions") or []
        if condition["status"] == "True"
    }
    if met.isdisjoint(wanted):
        return Answer(Act.RETRY, f"cluster '{seen.spec['clusterName']}' is not ready")
    return None


def _source_missing(seen: Seen) -> Answer | None:
    for kind, name in source_names(seen.addon):
        if seen.sources.get((kind, name)) is None:
            return Answer(Act.RETRY, f"{kind} '{name}' not found")
    return None


def _kubeconfig_missing(seen: Seen) -> Answer | None:
    if not seen.has_kubeconfig:
        return Answer(Act.RETRY, f"Secret '{seen.spec['clusterName']}-kubeconfig' not found")
    return None


def _fault(seen: Seen) -> Answer | None:
    if templates.matches(seen.faults.get("fail"), seen.addon["metadata"]["name"]):
        return Answer(Act.FAIL, "this failure was asked for with the fault `fail`")
    return None


def gate(spec: Document) -> tuple[str, ...]:
    """Conditions of the Cluster of which one must be True before Helm runs."""
    return ("ControlPlaneInitialized",) if spec.get("bootstrap") else ("Ready", "Available")


#: Before the addon is labelled and owned by its Cluster.
IDENTIFY = (
    Rule("cluster missing", _cluster_missing),
    Rule("kind of a reference unknown", _unknown_kind),
    Rule("infrastructure cluster missing", _infra_cluster_missing),
    Rule("infrastructure cluster without identityRef", _no_identity_named),
    Rule("identity missing", _identity_missing),
    Rule("source name too long for a label", _source_name_too_long),
)
#: The addon is labelled and owned now; what it takes values from is about to be watched.
WATCH = (Rule("source missing", _source_missing),)
#: What it takes values from is watched now; a template that is broken comes after these.
ADMIT = (
    Rule("cluster not ready", _not_ready),
    Rule("paused", _paused),
    Rule("no kubeconfig", _kubeconfig_missing),
    Rule("fault fail", _fault),
)


def _cluster_gone(seen: Seen) -> Answer | None:
    return Answer(Act.RELEASE, "the cluster is gone") if seen.cluster is None else None


def _cluster_without_phase(seen: Seen) -> Answer | None:
    if "phase" not in ((seen.cluster or {}).get("status") or {}):
        return Answer(Act.CRASH, "AttributeError: the cluster has no status.phase")
    return None


def _cluster_deleting(seen: Seen) -> Answer | None:
    # A deletionTimestamp alone does not count.
    if ((seen.cluster or {}).get("status") or {}).get("phase") == "Deleting":
        return Answer(Act.RELEASE, "the cluster is being deleted")
    return None


def _no_kubeconfig(seen: Seen) -> Answer | None:
    if not seen.has_kubeconfig:
        return Answer(Act.RELEASE, "the cluster has no kubeconfig")
    return None


def _paused_delete(seen: Seen) -> Answer | None:
    return Answer(Act.RELEASE, "a paused addon is not uninstalled") if _paused(seen) else None


#: An addon that is being deleted.
DELETE = (
    Rule("cluster gone", _cluster_gone),
    Rule("cluster without phase", _cluster_without_phase),
    Rule("cluster deleting", _cluster_deleting),
    Rule("no kubeconfig", _no_kubeconfig),
    Rule("paused", _paused_delete),
)


def decide(table: tuple[Rule, ...], seen: Seen, otherwise: Act) -> Answer:
    """The answer of the first rule that has one."""
    for rule in table:
        answer = rule.ask(seen)
        if answer is not None:
            return answer
    return Answer(otherwise)


def helm_phase(is_there: bool) -> Phase:
    """Phase while Helm runs: a release that is there is upgraded."""
    return Phase.UPGRADING if is_there else Phase.INSTALLING
