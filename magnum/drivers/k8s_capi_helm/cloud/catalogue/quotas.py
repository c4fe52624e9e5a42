# SPDX-License-Identifier: Apache-2.0
"""Quotas of a project: limit and usage, with one request per service.

A quota that cannot be read keeps nobody from anything: a cloud may have switched the API off, a
policy may keep it from tenants, and what has no limit needs no check. It is logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.access.services import Services, translate_errors
from magnum.drivers.k8s_capi_helm.model import Quota, QuotaKey, QuotaResource

LOG = logging.getLogger(__name__)

_NOVA = {
    "instances": QuotaResource.INSTANCES,
    "cores": QuotaResource.CORES,
    "ram": QuotaResource.RAM,
    "server_groups": QuotaResource.SERVER_GROUPS,
}
_CINDER = {"volumes": QuotaResource.VOLUMES, "gigabytes": QuotaResource.GIGABYTES}
_NEUTRON = {
    "networks": QuotaResource.NETWORKS,
    "subnets": QuotaResource.SUBNETS,
    "routers": QuotaResource.ROUTERS,
    "ports": QuotaResource.PORTS,
    "security_groups": QuotaResource.SECURITY_GROUPS,
    "floating_ips": QuotaResource.FLOATING_IPS,
}


def quotas(
    services: Services, project_id: str, usage: Mapping[QuotaKey, int]
) -> Mapping[QuotaKey, Quota]:
    """The limited quotas of a project that can be read.

    :param usage: what is needed; a service of which nothing is needed is not asked.
    """
    limited: dict[QuotaKey, Quota] = {}
    for service, read, about in (
        ("Nova", _nova, {*_NOVA.values(), QuotaResource.SERVER_GROUP_MEMBERS}),
        ("Cinder", _cinder, {*_CINDER.values()}),
        ("Neutron", _neutron, {*_NEUTRON.values()}),
        ("Octavia", _octavia, {QuotaResource.LOAD_BALANCERS}),
    ):
        if about & usage.keys():
            limited.update(_tolerant(service, read, services, project_id))
    return {key: quota for key, quota in limited.items() if quota.limit >= 0}


def _tolerant(
    service: str,
    read: Callable[[Services, str], Mapping[QuotaKey, Quota]],
    services: Services,
    project_id: str,
) -> Mapping[QuotaKey, Quota]:
    try:
        with translate_errors(service, f"the quota of project '{project_id}'"):
            return read(services, project_id)
    except errors.DriverError as error:
        LOG.warning("Not checked before use: %s %s", error, error.detail)
    return {}


def _nova(services: Services, project_id: str) -> Mapping[QuotaKey, Quota]:
    body = services.nova().get_quota_set(project_id, usage=True).to_dict()
    limits: dict[QuotaKey, Quota] = dict(_of_set(body, _NOVA))
    if body.get("server_group_members") is not None:
        limits[QuotaResource.SERVER_GROUP_MEMBERS] = Quota(int(body["server_group_members"]))
    return limits


def _cinder(services: Services, project_id: str) -> Mapping[QuotaKey, Quota]:
    """The project's, and those per volume type, which have the type behind their names."""
    body = services.cinder().get_quota_set(project_id, usage=True).to_dict()
    limits: dict[QuotaKey, Quota] = dict(_of_set(body, _CINDER))
    if body.get("per_volume_gigabytes") is not None:
        limits[QuotaResource.VOLUME_GIGABYTES] = Quota(int(body["per_volume_gigabytes"]))
    for name in body["usage"]:
        kind, _, volume_type = name.partition("_")
        if kind in _CINDER and volume_type:
            for resource, quota in _of_set(body, {name: _CINDER[kind]}):
                limits[resource, volume_type] = quota
    return limits


def _neutron(services: Services, project_id: str) -> Mapping[QuotaKey, Quota]:
    details = services.neutron().get_quota(project_id, details=True)
    limits: dict[QuotaKey, Quota] = {}
    for name, resource in _NEUTRON.items():
        detail = getattr(details, name, None)
        if detail:
            used = int(detail.get("used") or 0) + int(detail.get("reserved") or 0)
            limits[resource] = Quota(int(detail["limit"]), used)
    return limits


def _octavia(services: Services, project_id: str) -> Mapping[QuotaKey, Quota]:
    """Octavia tells limits only: what there is has to be counted, if there is a limit at all."""
    octavia = services.octavia()
    limits = octavia.get_quota(project_id)
    reported = {
        QuotaResource.LOAD_BALANCERS: limits.load_balancers,
        QuotaResource.LISTENERS: limits.listeners,
        QuotaResource.POOLS: limits.pools,
    }
    limited = {
        resource: int(n) for resource, n in reported.items() if n is not None and int(n) >= 0
    }
    if not limited:
        return {}
    balancers = list(octavia.load_balancers(project_id=project_id))
    used = {
        QuotaResource.LOAD_BALANCERS: len(balancers),
        QuotaResource.LISTENERS: sum(len(balancer.listeners or ()) for balancer in balancers),
        QuotaResource.POOLS: sum(len(balancer.pools or ()) for balancer in balancers),
    }
    return {resource: Quota(limit, used[resource]) for resource, limit in limited.items()}


def _of_set(
    body: Mapping[str, Any], names: Mapping[str, QuotaResource]
) -> Iterable[tuple[QuotaResource, Quota]]:
    for name, resource in names.items():
        if body.get(name) is not None:
            used = sum(int(body[part].get(name) or 0) for part in ("usage", "reservation"))
            yield resource, Quota(int(body[name]), used)
