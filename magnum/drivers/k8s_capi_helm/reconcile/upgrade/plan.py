# SPDX-License-Identifier: Apache-2.0
"""An upgrade before its first step: its checks, what the cloud has for it, its initial values."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.preflight import checks, message
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import (
    validate_labels,
    validate_nodegroup,
)
from magnum.drivers.k8s_capi_helm.model import (
    Chart,
    CloudFacts,
    ClusterRequest,
    DeferredChange,
    Json,
    names,
    NodeGroupRequest,
    Operation,
    UpgradeTarget,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import (
    Reconciliation,
    ReleaseSnapshot,
)
from magnum.drivers.k8s_capi_helm.reconcile.policy import requirements
from magnum.drivers.k8s_capi_helm.reconcile.release import render
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import upgrade as reconcile_upgrade
from magnum.drivers.k8s_capi_helm.values.tree import chart_family
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live
from magnum.drivers.k8s_capi_helm.values.upgrade import (
    deferred,
    upgrade,
    upgrade_nodegroups,
    version_skew,
)


@dataclasses.dataclass(frozen=True, slots=True)
class UpgradePlan:
    """An upgrade that is requested, and what the cloud has for it.

    :ivar request: what Magnum's objects ask for now.
    :ivar facts: as :meth:`cloud.Cloud.software` gives them for the target.
    """

    request: ClusterRequest
    target: UpgradeTarget
    operation: Operation
    facts: CloudFacts


@dataclasses.dataclass(frozen=True, slots=True)
class UpgradeResult:
    """An upgrade, computed to its end; nothing is touched.

    :ivar operation: with what the names of the template stand for.
    :ivar chart: that it leads to; None if it keeps the live one.
    :ivar values: with which it ends, once its nodegroups have followed the control plane.
    :ivar version: of Kubernetes that it leads to.
    """

    operation: Operation
    chart: Chart | None
    values: Json
    version: str


def plan_upgrade(
    run: Reconciliation, request: ClusterRequest, target: UpgradeTarget, operation: Operation
) -> UpgradePlan:
    """Ask the cloud what an upgrade needs, by what its names stood for when it was requested.

    :raises errors.DriverError: the cloud cannot be asked, or does not have it.
    """
    interface = run.settings.capi_helm.app_cred_interface_type
    facts = run.cloud().software(
        target.request, interface=interface, lookup=operation.resolved_names
    )
    return UpgradePlan(request, target, operation, facts)


def begin_upgrade(
    live: Json, plan: UpgradePlan, conf: Settings, changes: tuple[DeferredChange, ...] = ()
) -> tuple[Json, tuple[DeferredChange, ...]]:
    """The values with which an upgrade begins, and the deferred changes; nothing is touched.

    :param changes: deferred until now.
    :raises errors.InvalidRequest: the cluster cannot be upgraded to the target.
    """
    request, facts, operation = plan.target.request, plan.facts, plan.operation
    required = requirements.requirements(conf)
    message.refuse(checks.software_problems(request, facts, required, operation.groups))
    target_values = render.render_values(_without_fixed(request, live), facts, conf)
    _check_distro(live, request.image, target_values["osDistro"])
    if values_live.CONTROL_PLANE not in operation.groups:
        return _begin_nodegroups(live, plan, target_values, changes), changes
    return _begin_control_plane(live, plan, target_values, conf, changes)


def upgrade_result(
    run: Reconciliation,
    current: ReleaseSnapshot,
    request: ClusterRequest,
    target: UpgradeTarget,
    operation: Operation,
) -> UpgradeResult:
    """What an upgrade comes to, refused where it would fail now or when the nodegroups follow.

    :param current: record and release; there is a release.
    :raises errors.DriverError: it is refused, or the cloud cannot be asked.
    """
    record, live = current.record, current.live
    assert live is not None
    plan = plan_upgrade(run, request, target, operation)
    operation = dataclasses.replace(operation, resolved_names=plan.facts.resolved_names)
    first, remaining = begin_upgrade(
        live.values, plan, run.settings, record.deferred if record else ()
    )
    chart = reconcile_upgrade.chart(run.clients, operation, target, live, run.settings)
    following = operation.groups if chart else ()
    whole = upgrade_nodegroups.is_complete(first, operation, target.request)
    values = upgrade.unpin_nodegroups(
        first, following, operation.max_batch_size, remaining, include_shared=whole
    )
    made_by = (chart.family, chart.version) if chart else (live.chart_family, live.chart_version)
    family = names.family_of_keys(*made_by)
    chart_family.check_family(values, family, live.values)
    validate_nodegroup.validate_new_labels(request.node_groups, target.request.node_groups, family)
    validate_labels.check_chart(target.request.labels, family, request.labels)
    version = target.request.labels.kube_tag or plan.facts.kubernetes_version
    return UpgradeResult(operation, chart, values, version)


def _begin_nodegroups(
    live: Json, plan: UpgradePlan, target_values: Json, changes: tuple[DeferredChange, ...]
) -> Json:
    """The values with which single nodegroups are upgraded, each by its name."""
    old, new, operation = upgrade.versions(live), target_values["kubernetesVersion"], plan.operation
    for name in operation.groups:
        _check_exists(name, old)
        version_skew.check_nodegroup_version(name, old[name], new, old[values_live.CONTROL_PLANE])
        live = upgrade.upgrade_nodegroup(
            live, name, new, plan.facts.image_id, operation.max_batch_size, changes
        )
    return live


def _begin_control_plane(
    live: Json,
    plan: UpgradePlan,
    target_values: Json,
    conf: Settings,
    changes: tuple[DeferredChange, ...],
) -> tuple[Json, tuple[DeferredChange, ...]]:
    """The values with which the control plane is upgraded and its nodegroups wait for it."""
    old, new, operation = upgrade.versions(live), target_values["kubernetesVersion"], plan.operation
    running = old[values_live.CONTROL_PLANE]
    kept_versions = {name: old[name] for name in old if name not in operation.groups}
    version_skew.check_control_plane(running, new, kept_versions)
    # The old label need not agree with the new image, nor the new image know its version.
    version = plan.request.labels.kube_tag or new
    facts = dataclasses.replace(plan.facts, kubernetes_version=version)
    base = render.render_values(
        _without_fixed(plan.request, live), facts, conf, kubernetes_version=running
    )
    values = upgrade.initial_values(live, base, target_values)
    if not any(change.id == operation.id for change in changes) and values_live.node_groups(live):
        # A second time the rows may follow already, and do not tell any more what is deferred.
        changes = (*changes, deferred.of_upgrade(operation.id, live, base, target_values))
    deferred.check_size(changes)
    return values, changes


def waiting_nodegroups(
    changes: tuple[DeferredChange, ...], operation: Operation, values: Json
) -> tuple[DeferredChange, ...]:
    """What is still deferred once the control plane is upgraded and the release has *values*."""
    is_single = values_live.CONTROL_PLANE not in operation.groups
    return deferred.left_over(
        changes, operation.groups if is_single else (), values, include_shared=False
    )


def _check_exists(name: str, versions: Mapping[str, str]) -> None:
    if name not in versions:
        raise errors.InvalidRequest(
            f"Nodegroup '{name}' was never created, so there is nothing to upgrade. Delete it, and "
            "create it again."
        )


def _check_distro(live: Json, image: str, requested: str) -> None:
    """Nodegroups would be set up for the new one while they are pinned to the old image."""
    current = live.get("osDistro") or "ubuntu"
    if requested != current:
        raise errors.InvalidRequest(
            "The image has another distribution than the cluster. Image "
            f"'{image}' has {requested}: choose a template for {current}, or create a new cluster."
        )


def _without_fixed(request: ClusterRequest, live: Json) -> ClusterRequest:
    """The request without what an upgrade can neither give nor take.

    The images of single nodegroups stay, because no template has them. Machines that were created
    without a disk for images and containers (by a driver that gives none) get none now.
    """
    entries = values_live.node_groups(live)
    nodegroups = (
        _with_disk(dataclasses.replace(nodegroup, image=None), entries.get(nodegroup.name, {}))
        for nodegroup in request.node_groups
    )
    return dataclasses.replace(
        request,
        control_plane=_with_disk(request.control_plane, live.get("controlPlane") or {}),
        node_groups=tuple(nodegroups),
    )


def _with_disk(nodegroup: NodeGroupRequest, entry: Json) -> NodeGroupRequest:
    has_disk = bool(entry.get("containerdBlockDevice"))
    return nodegroup if has_disk else dataclasses.replace(nodegroup, docker_volume=0)
