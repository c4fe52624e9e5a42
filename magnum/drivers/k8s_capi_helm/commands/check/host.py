# SPDX-License-Identifier: Apache-2.0
"""Checks of this host: its packages and options, Magnum's database, the charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from oslo_db import exception as db_exception

from magnum import objects
from magnum.common import context as magnum_context
from magnum.drivers.k8s_capi_helm import conf, errors, labels
from magnum.drivers.k8s_capi_helm.commands.check.result import (
    CheckResult,
    error_result,
    fault_result,
    good_result,
    warning_result,
)
from magnum.drivers.k8s_capi_helm.commands.output.installation import InstallationCheck
from magnum.drivers.k8s_capi_helm.commands.output.lister import exception_text
from magnum.drivers.k8s_capi_helm.conf import management_clusters, policy_file
from magnum.drivers.k8s_capi_helm.model import Chart, names
from magnum.drivers.k8s_capi_helm.model.management_cluster import (
    DEFAULT_MANAGEMENT,
    is_own_stack_id,
    management_of,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import upgrade

_CHART_LABELS = ("capi_helm_chart_name", "capi_helm_chart_repo", "capi_helm_chart_version")


def check_installation(
    run: Reconciliation, installation_checks: Iterable[InstallationCheck]
) -> Iterator[CheckResult]:
    """What ``magnum-k8s-capi-helm-status upgrade check`` finds on this host."""
    titles = []
    for title, find_faults in installation_checks:
        found = list(find_faults(run.settings))
        if not found:
            titles.append(title)
        for is_fault, text in found:
            yield (fault_result if is_fault else warning_result)(f"{title}: {text}")
    if titles:
        yield good_result(f"{', '.join(titles)}.")


def check_database(run: Reconciliation) -> Iterator[CheckResult]:
    """Magnum's database answers, and has Magnum's tables."""
    try:
        count = objects.Cluster.get_count_all(_admin())
    except db_exception.DBError as error:
        yield fault_result(
            f"Magnum's database cannot be read: {exception_text(error)}. Check [database] "
            "connection, the network to the database and its user."
        )
    else:
        yield good_result(f"Magnum's database has {count} clusters.")


def check_policy(run: Reconciliation) -> Iterator[CheckResult]:
    """The provider's policy can be read."""
    path = run.settings.capi_helm.policy_file
    rules = policy_file.read_policy(path)
    names_text = ", ".join(rule.name for rule in rules)
    yield good_result(f"Rules of {path}: {names_text}." if path else "There is no policy file.")


def check_charts(run: Reconciliation) -> Iterator[CheckResult]:
    """The charts of new clusters can be had: the operator's own, and those that templates name."""
    chart_labels: dict[tuple[tuple[str, str], ...], list[str]] = {(): []}
    for template in _templates():
        texts = template.labels or {}
        key = tuple((name, texts[name]) for name in _CHART_LABELS if texts.get(name))
        chart_labels.setdefault(key, []).append(template.name or template.uuid)
    for key, templates in chart_labels.items():
        users = f" (templates: {', '.join(sorted(templates))})" if key else ""
        try:
            chart = _chart(run, dict(key))
        except errors.DriverError as error:
            yield error_result(error, f"No cluster can be created with that chart{users}.")
        else:
            yield good_result(f"Chart {chart.name} {chart.version} of {chart.source}{users}.")


def _chart(run: Reconciliation, texts: Mapping[str, str]) -> Chart:
    """The chart of a new cluster whose template has these labels."""
    return upgrade.new_chart(run.clients, labels.parse(texts, conf.label_defaults(run.settings)))


def _templates() -> list[objects.ClusterTemplate]:
    """The templates of this driver."""
    templates = objects.ClusterTemplate.list(_admin())
    return [template for template in templates if template.driver == names.DRIVER]


def check_management_clusters(run: Reconciliation) -> Iterator[CheckResult]:
    """Each management cluster that clusters are on is configured, and one takes new clusters."""
    listed = management_clusters.read_management_clusters(run.settings)
    try:
        clusters = objects.Cluster.list(_admin())
    except db_exception.DBError:
        return  # the check of the database says so
    counts = Counter(
        management_of(cluster.stack_id)
        for cluster in clusters
        if cluster.stack_id and is_own_stack_id(cluster.stack_id)
    )
    known = {one.name for one in listed} | {DEFAULT_MANAGEMENT}
    for name in sorted(counts.keys() - known):
        yield fault_result(
            f"{counts[name]} clusters are on management cluster {name}, which is not configured. "
            "Add it to [capi_helm] management_clusters."
        )
    for one in listed:
        state = "takes no new ones (draining)" if one.is_draining else "takes new ones"
        yield good_result(
            f"Management cluster {one.name} has {counts[one.name]} clusters, {state}."
        )
    if listed and all(one.is_draining for one in listed):
        yield fault_result(
            "No cluster can be created, because all management clusters are draining. Set draining "
            "to false for one of them, or add one."
        )


def _admin() -> magnum_context.RequestContext:
    return magnum_context.make_admin_context(all_tenants=True)
