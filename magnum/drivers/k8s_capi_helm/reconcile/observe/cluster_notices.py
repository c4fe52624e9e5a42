# SPDX-License-Identifier: Apache-2.0
"""The notices of a cluster: what its tenant should know, whatever its health is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.magnum_objects import cluster_labels, notices
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader as magnum_reader
from magnum.drivers.k8s_capi_helm.model import LiveRelease, MagnumState, names, Observed
from magnum.drivers.k8s_capi_helm.reconcile.deletion import orphans
from magnum.drivers.k8s_capi_helm.reconcile.observe.read_release import ReadRelease
from magnum.drivers.k8s_capi_helm.reconcile.ownership import adoption
from magnum.drivers.k8s_capi_helm.reconcile.release import autoscaler_deployment, revisions
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import planned_upgrade
from magnum.drivers.k8s_capi_helm.status import nodegroups as status_nodegroups
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade_nodegroups


def cluster_notices(
    settings: Settings,
    cluster: Any,
    nodegroups: list[Any],
    read: ReadRelease,
    state: MagnumState,
    observed: Observed,
) -> Iterator[str]:
    """A sentence for each notice.

    :param nodegroups: the records of the cluster's nodegroups.
    """
    record, values = read.record, read.live.values if read.live else {}
    own_images = magnum_reader.own_images(cluster, nodegroups)
    sentences = (
        *notices.field_notices(cluster, settings, values, nodegroups),
        upgrade_nodegroups.version_skew(record, values, own_images),
        upgrade_nodegroups.missing_template_changes(record, values),
        planned_upgrade.notice(cluster, cluster_labels.parsed_labels(cluster, settings), observed),
        orphans.notice(observed, state.health_reason.get("notice", "")),
        status_nodegroups.replica_drift(observed, state),
        autoscaler_deployment.notice(read.live, settings),
        adoption.notice(record, observed) if read.is_lost else revisions.notice(read.outdated),
    )
    yield from (sentence for sentence in sentences if sentence)


def label_text(live: LiveRelease | None, state: MagnumState) -> str:
    """The labels that the cluster was created with, with site defaults; as before if unknown."""
    if live is None:
        return state.health_reason.get("labels", "")
    annotations = live.values.get("clusterAnnotations") or {}
    prefix = f"{names.EFFECTIVE_LABEL}/"
    effective_labels = {
        key.removeprefix(prefix): annotations[key] for key in annotations if key.startswith(prefix)
    }
    return "; ".join(f"{name}={effective_labels[name]}" for name in sorted(effective_labels))
