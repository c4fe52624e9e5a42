# SPDX-License-Identifier: Apache-2.0
"""The provider's policy: rules of the cloud's operator about what tenants may request.

A rule is about what a request changes. A cluster that is older than the rule can be resized to
fewer nodes, and upgraded, whatever else of it the rule does not allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
import dataclasses
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.model import ClusterRequest
from magnum.drivers.k8s_capi_helm.values.sections import nodegroups


@dataclasses.dataclass(frozen=True, slots=True)
class LabelRule:
    """What a label may be.

    :ivar is_refused: it may not be given at all.
    :ivar allowed_texts: the texts that it may have, () for any.
    :ivar minimum: of a number, *maximum* the same; None without.
    """

    is_refused: bool = False
    allowed_texts: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule.

    :ivar name: by which a refusal names it.
    :ivar message: what a refusal says besides, "" for nothing.
    :ivar projects: ids of the projects that it is for, () for all but *excluded_projects*.
    :ivar public_api: False where the Kubernetes API may not have a floating IP.
    :ivar kubernetes: the versions that may be requested, None for all.
    :ivar limits: by name of one of :data:`LIMITS`.
    :ivar labels: by name of the label.
    """

    name: str
    message: str = ""
    projects: tuple[str, ...] = ()
    excluded_projects: tuple[str, ...] = ()
    public_api: bool = True
    kubernetes: SpecifierSet | None = None
    limits: Mapping[str, int] = dataclasses.field(default_factory=dict)
    labels: Mapping[str, LabelRule] = dataclasses.field(default_factory=dict)

    def is_for(self, project_id: str) -> bool:
        """Whether it is for the clusters of a project."""
        if self.projects:
            return project_id in self.projects
        return project_id not in self.excluded_projects


def _sizes(request: ClusterRequest) -> dict[str, int]:
    """The machines that each nodegroup may come to have: its number, or the autoscaler's bound."""
    counts = {
        nodegroup.name: nodegroups.nodegroup_counts(nodegroup, request.labels)
        for nodegroup in request.node_groups
    }
    return {
        name: int(count.get("machineCountMax") or count["machineCount"])
        for name, count in counts.items()
    }


#: The limits of a rule: what each counts of a request, by nodegroup; "" stands for the cluster.
LIMITS: Mapping[str, Callable[[ClusterRequest], dict[str, int]]] = {
    "max_control_plane_nodes": lambda request: {"": request.control_plane.count},
    "max_nodegroups": lambda request: {"": len(request.node_groups)},
    "max_nodes": lambda request: {"": sum(_sizes(request).values())},
    "max_nodes_per_nodegroup": _sizes,
}


def check_request(
    rules: tuple[PolicyRule, ...],
    request: ClusterRequest,
    previous: ClusterRequest | None,
    version: str = "",
    previous_version: str = "",
) -> None:
    """Refuse a request that a rule does not allow.

    :param previous: the cluster until now, None for a new one.
    :param version: of Kubernetes that is requested, "" if the request is about none.
    :param previous_version: that the cluster has.
    :raises errors.InvalidRequest: with the name of the first rule, the value and the limit.
    """
    for rule in rules:
        if not rule.is_for(request.project_id):
            continue
        violations = (
            *_of_sizes(rule, request, previous),
            *_of_version(rule, version, previous_version),
            *_of_public_api(rule, request, previous),
            *_of_labels(rule, request, previous),
        )
        if violations:
            raise _refusal(rule, violations[0])


def _of_sizes(
    rule: PolicyRule, request: ClusterRequest, previous: ClusterRequest | None
) -> Iterator[str]:
    for name, limit in rule.limits.items():
        before = LIMITS[name](previous) if previous else {}
        for nodegroup, count in LIMITS[name](request).items():
            if count > max(limit, before.get(nodegroup, 0)):
                what = name.removeprefix("max_").replace("_", " ")
                yield f"the request comes to {count} {what}, and {limit} are allowed"


def _of_version(rule: PolicyRule, version: str, previous_version: str) -> Iterator[str]:
    if rule.kubernetes is None or not version or version == previous_version:
        return
    if not _is_allowed(rule.kubernetes, version, previous_version):
        yield f"Kubernetes {version} is requested, and {rule.kubernetes} is allowed"


def _is_allowed(specifiers: SpecifierSet, version: str, previous_version: str) -> bool:
    """Whether a version may be requested, or is a step of an older cluster on its way there."""
    try:
        new = Version(version.removeprefix("v"))
        old = Version(previous_version.removeprefix("v")) if previous_version else new
    except ValueError:  # it is no version
        return False
    if specifiers.contains(new):
        return True
    upper = ",".join(str(one) for one in specifiers if one.operator not in (">", ">="))
    return old < new and not specifiers.contains(old) and SpecifierSet(upper).contains(new)


def _of_public_api(
    rule: PolicyRule, request: ClusterRequest, previous: ClusterRequest | None
) -> Iterator[str]:
    if not rule.public_api and request.floating_ip and previous is None:
        yield (
            "the Kubernetes API would have a floating IP; set floating_ip_enabled or "
            "master_lb_floating_ip_enabled to false"
        )


def _of_labels(
    rule: PolicyRule, request: ClusterRequest, previous: ClusterRequest | None
) -> Iterator[str]:
    """What labels of the cluster, and those of its nodegroups, violate."""
    old = previous.labels if previous else None
    old_given = previous.given_labels if previous else frozenset()
    old_groups = previous.node_groups if previous else ()
    old_labels = {nodegroup.name: nodegroup.labels for nodegroup in old_groups}
    for name, label_rule in rule.labels.items():
        if label_rule.is_refused and name in request.given_labels:
            is_unchanged = getattr(request.labels, name) == getattr(old, name, None)
            if not (name in old_given and is_unchanged):
                yield f"label '{name}' may not be set"
        yield from _of_label(name, label_rule, request.labels, old, "")
        for nodegroup in request.node_groups:
            if nodegroup.labels is not None:
                # What it has of the cluster is the cluster's.
                own_old = old_labels.get(nodegroup.name) or request.labels
                owner = f" of nodegroup '{nodegroup.name}'"
                yield from _of_label(name, label_rule, nodegroup.labels, own_old, owner)


def _of_label(
    name: str, rule: LabelRule, values: labels.Labels, old: labels.Labels | None, owner: str
) -> Iterator[str]:
    value: Any = getattr(values, name)
    if old is not None and getattr(old, name) == value:
        return
    if rule.is_refused and owner:
        yield f"label '{name}'{owner} may not be set"
    text = labels.value_text(labels.BY_NAME[name], value)
    if rule.allowed_texts and text not in rule.allowed_texts:
        allowed = ", ".join(rule.allowed_texts)
        yield f"label '{name}'{owner} is '{text}', and one of {allowed} is allowed"
    if rule.minimum is not None and isinstance(value, int) and value < rule.minimum:
        yield f"label '{name}'{owner} is {text}, and at least {rule.minimum} is allowed"
    if rule.maximum is not None and isinstance(value, int) and value > rule.maximum:
        yield f"label '{name}'{owner} is {text}, and at most {rule.maximum} is allowed"


def _refusal(rule: PolicyRule, violation: str) -> errors.InvalidRequest:
    sentence = (
        f"This cloud's policy does not allow the request. Rule '{rule.name}' was not kept: "
        f"{violation}."
    )
    return errors.InvalidRequest(f"{sentence} {rule.message}".rstrip())
