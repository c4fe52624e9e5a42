# SPDX-License-Identifier: Apache-2.0
"""Checks of the management cluster: what it serves, who works there, what time it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import datetime

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.check.result import (
    CheckResult,
    error_result,
    fault_result,
    good_result,
    warning_result,
)
from magnum.drivers.k8s_capi_helm.model import conditions, Json, names
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.status.objects import controller_leases

_CLUSTER_API = (
    names.CLUSTER,
    names.CONTROL_PLANE,
    names.MACHINE_DEPLOYMENT,
    names.MACHINE_SET,
    names.MACHINE,
    names.MACHINE_HEALTH_CHECK,
    names.BOOTSTRAP_TEMPLATE,
    names.OPENSTACK_CLUSTER,
    names.MACHINE_TEMPLATE,
    names.OPENSTACK_SERVER,
)
_ADDONS = (names.HELM_RELEASE, names.MANIFESTS)
#: An addon provider that runs has said something of a new object by then.
_ADDON_PATIENCE = datetime.timedelta(minutes=10)
#: Seconds that clocks may differ by; beyond the second number, tokens are refused as well.
_CLOCK_WARNING, _CLOCK_FAULT = 60, 300


def check_management_cluster(run: Reconciliation) -> Iterator[CheckResult]:
    """The API server answers, and knows the driver's user.

    :raises errors.DriverError: it does not; nothing else can be asked there then.
    """
    review: Json = {"metadata": {}}
    reply = run.clients.kube.create(names.SELF_REVIEW, review)
    user = conditions.at_path(reply, "status", "userInfo", "username")
    yield good_result(f"The management cluster answers and knows the driver's user as {user}.")


def check_cluster_api(run: Reconciliation) -> Iterator[CheckResult]:
    """Cluster API and its OpenStack provider are installed in versions that the driver reads."""
    cure = (
        "Install or update Cluster API and its OpenStack provider (clusterctl init "
        "--infrastructure openstack); the installation guide has the versions."
    )
    yield from _served_results(run, _CLUSTER_API, cure)
    yield from _provider_results(run)


def _served_results(
    run: Reconciliation, kinds: Iterable[names.Kind], cure: str
) -> Iterator[CheckResult]:
    served: dict[str, list[str]] = {}
    for kind in kinds:
        try:
            version = run.clients.kube.served_version(kind)
        except errors.DriverError as error:
            yield error_result(error, cure)
        else:
            served.setdefault(f"{kind.group}/{version}", []).append(kind.name)
    for api, served_kinds in sorted(served.items()):
        yield good_result(f"{api} has {', '.join(served_kinds)}.")


def _provider_results(run: Reconciliation) -> Iterator[CheckResult]:
    """What clusterctl records of providers, if the driver's user may read it."""
    try:
        providers = run.clients.kube.list(names.PROVIDER, None)
    except errors.ManagementRefused:
        return
    versions = sorted(
        f"{conditions.name(provider)} {conditions.words(provider.get('version'))}"
        for provider in providers
    )
    if versions:
        yield good_result(f"Providers by clusterctl: {', '.join(versions)}.")


def check_controllers(run: Reconciliation) -> Iterator[CheckResult]:
    """The controllers of Cluster API renew the Leases of their leader elections."""
    for lease in run.settings.capi_helm.controller_leases:
        namespace, _, name = lease.partition("/")
        try:
            obj = run.clients.kube.get(names.LEASE, namespace, name)
        except errors.ManagementRefused as error:
            yield error_result(error, "Apply the driver's roles again (manifests/rbac.yaml).")
            continue
        yield _controller_result(run, lease, obj)


def _controller_result(run: Reconciliation, lease: str, obj: Json | None) -> CheckResult:
    known = controller_leases.controller_lease(lease, obj, None, 0)
    if known is None:
        return warning_result(
            f"There is no Lease {lease}, or it was never renewed: a stop of that "
            "controller is not detected. Name the Leases of this management cluster in [capi_helm] "
            "controller_leases."
        )
    limit = datetime.timedelta(seconds=run.settings.capi_helm.controller_silence)
    stale = limit and controller_leases.stale_controller(known, limit, _server_time(run))
    if stale:
        return fault_result(
            f"The controller of Lease {lease} has not reported since "
            f"{known.renewed_at:%Y-%m-%d %H:%M} UTC. Check its pods: kubectl -n "
            f"{lease.partition('/')[0]} get pods."
        )
    return good_result(f"The controller of Lease {lease} is alive.")


def check_addon_provider(run: Reconciliation) -> Iterator[CheckResult]:
    """The addon provider is installed, and takes up what it is given."""
    cure = "Install cluster-api-addon-provider on the management cluster."
    results = list(_served_results(run, _ADDONS, cure))
    yield from results
    if len(results) == 0 or any(result.status for result in results):
        return
    silent = sorted(_silent_addons(run))
    if silent:
        more = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
        yield fault_result(
            f"The addon provider has said nothing of addon {silent[0]}{more} for "
            f"{_ADDON_PATIENCE.seconds // 60} minutes. Check that it runs, and its log."
        )


def _silent_addons(run: Reconciliation) -> list[str]:
    """Addons without any status that are not new any more."""
    begin = _server_time(run) - _ADDON_PATIENCE

    def keep(addon: Json) -> str | None:
        metadata = conditions.metadata(addon)
        created = conditions.instant(metadata.get("creationTimestamp"))
        if addon.get("status") or created is None or created > begin:
            return None
        return f"{metadata.get('namespace')}/{metadata.get('name')}"

    return [title for kind in _ADDONS for title in run.clients.kube.snapshot(kind, keep)[0]]


def check_janitor(run: Reconciliation) -> Iterator[CheckResult]:
    """The janitor has marked the clusters' infrastructure."""

    def keep(infrastructure: Json) -> bool:
        finalizers = conditions.metadata(infrastructure).get("finalizers") or ()
        return names.JANITOR_FINALIZER in finalizers

    marks = run.clients.kube.snapshot(names.OPENSTACK_CLUSTER, keep)[0]
    if not marks:
        yield good_result("Whether the janitor runs is known when there is a cluster.")
    elif not any(marks):
        yield warning_result(
            "No cluster has the finalizer of cluster-api-janitor-openstack. Install it, or know "
            "that volumes of deleted clusters remain (page on deletions)."
        )
    else:
        yield good_result(f"The janitor has marked {sum(marks)} of {len(marks)} clusters.")


def check_clocks(run: Reconciliation) -> Iterator[CheckResult]:
    """This host and the management cluster show the same time."""
    difference = run.clients.kube.clock_difference()
    if difference is None:
        yield warning_result("The answers of the management cluster have no time to compare with.")
        return
    direction = "ahead of" if difference > 0 else "behind"
    text = f"The clock of this host is {abs(difference)} s {direction} the management cluster's."
    if abs(difference) <= _CLOCK_WARNING:
        yield good_result(text)
        return
    result = fault_result if abs(difference) > _CLOCK_FAULT else warning_result
    yield result(f"{text} Synchronize the clocks of all hosts (NTP).")


def _server_time(run: Reconciliation) -> datetime.datetime:
    """What the clock of the management cluster shows."""
    return run.now - datetime.timedelta(seconds=run.clients.kube.clock_difference() or 0)
