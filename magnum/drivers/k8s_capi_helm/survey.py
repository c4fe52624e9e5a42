# SPDX-License-Identifier: Apache-2.0
"""Look at one cluster and judge it: record, live release, objects, Nova's faults -> Verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
import dataclasses
import datetime
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import (
    change,
    errors,
    intake,
    leftovers,
    names,
    observer,
    ownership,
    reconcile,
    secrets,
    status,
    transition,
)
from magnum.drivers.k8s_capi_helm.assembly import Ports
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.model import (
    Json,
    LiveRelease,
    MagnumState,
    Missing,
    Observed,
    Record,
    Verdict,
)

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """A verdict and the record that it was judged by.

    :ivar unfinished: ids of operations that go on, whatever the verdict.
    """

    verdict: Verdict
    record: Record | None
    unreachable: bool
    unfinished: frozenset[str] = frozenset()


def judge(
    ports: Ports,
    cluster: Any,
    rows: Iterable[Any],
    conf: Any,
    now: datetime.datetime,
    *,
    cloud: Callable[[], Cloud],
    refusal: str = "",
    waiting: errors.DriverError | None = None,
) -> Finding:
    """Look once and judge.

    :param refusal: why what was asked for can not be carried out, "" if it can.
    :param waiting: why it is not applied yet, None if it is.
    """
    namespace, release = intake.namespace(cluster, conf), cluster.stack_id
    rows = list(rows)
    record, live, applied = _read(ports, cluster, rows, conf)
    observed = observer.look(ports.kube, namespace, release, now)
    if not observed.unreachable:
        observed = _with_faults(observed, cloud)
        if live is not None:
            observed = _with_operators(ports, observed, cluster, live, conf, cloud)
    state = intake.magnum_state(
        cluster, rows, record, live, applied=applied, refusal=refusal, waiting=waiting
    )
    values = live.values if live else {}
    verdict = status.judge(observed, state, now)
    verdict = _with(verdict, "labels", _labels(live, state))
    own = intake.own_images(cluster, rows)
    told = (
        *intake.notices(cluster, conf, values, rows),
        transition.behind(record, values, own),
        leftovers.notice(observed),
    )
    verdict = _with(verdict, "notice", " ".join(one for one in told if one))
    unfinished = transition.unfinished(record, values, own)
    return Finding(verdict, record, bool(observed.unreachable), unfinished)


def _read(
    ports: Ports, cluster: Any, rows: list[Any], conf: Any
) -> tuple[Record | None, LiveRelease | None, bool]:
    namespace, release = intake.namespace(cluster, conf), cluster.stack_id
    try:
        record = ports.operations.read(namespace, release)
        live = ports.helm.live(namespace, release)
        request = intake.cluster_request(cluster, rows, conf)
        return record, live, reconcile.is_applied(live, request, record)
    except errors.DriverError as error:
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
        return None, None, False


def _labels(live: LiveRelease | None, state: MagnumState) -> str:
    """The labels that the cluster was made with, site defaults included; as before if unknown."""
    if live is None:
        return state.health_reason.get("labels", "")
    annotations = live.values.get("clusterAnnotations") or {}
    prefix = f"{names.EFFECTIVE_LABEL}/"
    found = {
        key.removeprefix(prefix): annotations[key] for key in annotations if key.startswith(prefix)
    }
    return "; ".join(f"{name}={found[name]}" for name in sorted(found))


def _with(verdict: Verdict, key: str, text: str) -> Verdict:
    """What the tenant should know stays visible while it is true, whatever the health is."""
    if not text:
        return verdict
    return dataclasses.replace(verdict, health_reason={**verdict.health_reason, key: text})


def _with_operators(
    ports: Ports,
    observed: Observed,
    cluster: Any,
    live: LiveRelease,
    conf: Any,
    cloud: Callable[[], Cloud],
) -> Observed:
    """The look with what no Cluster API object tells: the credential, and the autoscaler."""
    owner, resting = ownership.owner(cluster, conf), cluster.status.endswith("_COMPLETE")
    problem = ports.logins.problem(ports.kube, owner, cloud, observed.at, soon=not resting)
    return dataclasses.replace(
        observed, credential=problem, autoscaler=_autoscaler(ports, owner, live)
    )


def _autoscaler(
    ports: Ports, owner: secrets.Owner, live: LiveRelease
) -> tuple[Json, ...] | Missing | None:
    groups = change.node_groups(live.values).values()
    if not any(change.is_autoscaled(one) for one in groups):
        return None
    marks = {
        names.LABEL_CHART_CLUSTER: owner.release,
        names.LABEL_CHART_COMPONENT: names.AUTOSCALER,
    }
    try:
        return tuple(ports.kube.list(names.DEPLOYMENT, owner.namespace, marks))
    except errors.DriverError as error:
        LOG.warning("The autoscaler of %s is not known: %s", owner.release, error.detail)
        return Missing.UNREADABLE


def _with_faults(observed: Observed, cloud: Callable[[], Cloud]) -> Observed:
    failed = status.servers_in_error(observed)
    if not failed:
        return observed
    try:
        return dataclasses.replace(observed, server_faults=cloud().server_faults(failed))
    except errors.DriverError as error:
        LOG.warning("Faults of servers %s are not known: %s", ", ".join(failed), error.detail)
        return observed
