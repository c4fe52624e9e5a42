# SPDX-License-Identifier: Apache-2.0
"""A small world with two projects, whose clusters have the same name, and faults on every question.

One cloud, one management cluster, one conductor and one database are shared, as in an operator's.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from typing import Any

from keystoneauth1 import exceptions as ka_exceptions
from openstack import exceptions as sdk_exceptions

from magnum import objects
from magnum.common import context as magnum_context
from magnum.drivers.k8s_capi_helm import errors, lease
from magnum.drivers.k8s_capi_helm.kube.http import request as wire
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade
from magnum.service import periodic
from magnum.tests.unit.drivers.k8s_capi_helm import builders, driver_case


@dataclasses.dataclass(frozen=True, slots=True)
class Tenant:
    """A person in a project, with one cluster at most.

    :ivar release: what the cluster's ``stack_id`` will be.
    """

    project: str
    user: str
    release: str
    uuid: str
    template: str

    @property
    def namespace(self) -> str:
        return f"magnum-{self.project}"


FIRST = Tenant(
    "p1",
    "u1",
    builders.RELEASE,
    "99999999-8888-4777-8666-555555555555",
    "11111111-2222-4333-8444-555555555555",
)
#: Its cluster is named like the other one's release, and the person is the same in both projects,
#: so that both clusters' credentials are the same user's.
SECOND = Tenant(
    "p2",
    "u1",
    f"{builders.RELEASE}-mnopqrstuvwx",
    "88888888-7777-4666-8555-444444444444",
    "22222222-2222-4333-8444-555555555555",
)
_HTML = b"<html><head><title>503 Service Unavailable</title></head></html>"
_ASKED = wire.Request("GET", "/apis/x", "read", "an object")
#: Ways of the management cluster not to answer: status and body, or None for a time-out.
MANAGEMENT_FAULTS: dict[str, tuple[int, bytes] | None] = {
    "401": (401, b'{"kind": "Status"}'),
    "403": (403, b'{"kind": "Status"}'),
    "404 of the kind": (404, b"404 page not found"),
    "409": (409, b'{"kind": "Status", "details": {"name": "a"}}'),
    "429": (429, b""),
    "500": (500, b'{"kind": "Status", "message": "etcdserver: request timed out"}'),
    "503 of a proxy": (503, _HTML),
    "time-out": None,
}
#: The same of OpenStack's services.
CLOUD_FAULTS: dict[str, Exception] = {
    **{
        str(code): sdk_exceptions.HttpException("no", http_status=code)
        for code in (401, 409, 429, 500, 503)
    },
    "403": sdk_exceptions.ForbiddenException("no", http_status=403),
    "404 of the endpoint": sdk_exceptions.NotFoundException("no", http_status=404),
    "no endpoint": ka_exceptions.EndpointNotFound("no"),
    "time-out": ka_exceptions.ConnectTimeout("timed out"),
    "empty": KeyError("servers"),
    "cut": ValueError("Unterminated string"),
}


def _owner(credential: str) -> Tenant:
    """Whose an application credential is, by its name."""
    mine = f"id-{names.credential(SECOND.release)}"
    return SECOND if credential.startswith(mine) else FIRST


class Neighbourhood(driver_case.DriverCase):
    """Two tenants; requests are those of the one who acts."""

    def setUp(self) -> None:
        super().setUp()
        self.tenant = FIRST
        self.everybody = magnum_context.make_admin_context(all_tenants=True)
        self.management_fault = self.cloud_fault = ""
        self.kube.before = self._before
        self.act_as(SECOND)
        self._template(uuid=SECOND.template, project_id=SECOND.project, user_id=SECOND.user)
        self.act_as(FIRST)

    def release_of(self, name: str) -> str:
        return self.tenant.release

    def act_as(self, tenant: Tenant) -> None:
        """From now on requests are this tenant's."""
        self.tenant = tenant
        self.context = copy.copy(self.context)
        self.context.project_id, self.context.user_id = tenant.project, tenant.user
        self.cloud.openstack.project = tenant.project

    # Requests -------------------------------------------------------------------------------------
    def ask_for_cluster(self, **more: Any) -> None:
        one = self.tenant
        identity = {"uuid": one.uuid, "project_id": one.project, "user_id": one.user}
        self.create(**{**identity, "cluster_template_id": one.template, **more})

    def has_cluster(self) -> bool:
        return bool(objects.Cluster.list(self.context))

    # What happens ---------------------------------------------------------------------------------
    def pass_by(self, tenant: Tenant, *, health: bool = False) -> None:
        """Magnum's periodic task at one tenant's cluster, as Magnum's administrator."""
        for cluster in objects.Cluster.list(self.everybody):
            if cluster.project_id != tenant.project:
                continue
            if health:
                job = periodic.ClusterHealthUpdateJob(self.everybody, cluster)
                self._run(job.update_health_status)
            elif cluster.status.endswith("_IN_PROGRESS"):
                job = periodic.ClusterUpdateJob(self.everybody, cluster)
                self._run(job.update_status)

    def _run(self, task: Any) -> None:
        self.assertRaises(periodic.loopingcall.LoopingCallDone, task)

    def restart(self) -> None:
        """Another conductor, which remembers nothing."""
        ports = self.ports
        self.ports = self.clients_of(
            kube=ports.kube,
            leases=lease.ReleaseLeases(self.kube, holder="another", lease_duration=60),
            helm=ports.helm,
            charts=ports.charts,
        )
        self.driver = self.new_driver()

    def converge(self, tenant: Tenant) -> None:
        """Cluster API brings one tenant's objects and servers to what the release asks for."""
        live = self.helm.live(tenant.namespace, tenant.release)
        if live is None:
            return
        before = self._silently("list", names.MACHINE, tenant)
        if not live.values.get("nodeGroups") and not live.values.get("controlPlane"):
            return
        groups = {one["name"]: int(one["machineCount"]) for one in live.values["nodeGroups"]}
        self.take_away(tenant)
        look = builders.observed(groups, masters=live.values["controlPlane"]["machineCount"])
        wanted = upgrade.versions(live.values)
        for one in builders.objects(look):
            labels = one["metadata"].get("labels") or {}
            group = labels.get(names.LABEL_DEPLOYMENT_NAME, "").removeprefix(f"{builders.RELEASE}-")
            place = labels.get(names.LABEL_NODE_GROUP) or group or values_live.CONTROL_PLANE
            text = json.dumps(one).replace(f"v{builders.VERSION}", f"v{wanted[place]}")
            text = text.replace(builders.RELEASE, tenant.release)
            mine = json.loads(text.replace(builders.NAMESPACE, tenant.namespace))
            self.kube.put(driver_case._KINDS[mine["kind"]], mine)
        assert before is not None
        self._set_servers(tenant)

    def take_away(self, tenant: Tenant) -> None:
        """All objects of one tenant's cluster go; its servers stay until Nova has deleted them."""
        for kind in driver_case._KINDS.values():
            for one in self._silently("list", kind, tenant):
                self.kube.remove(kind, tenant.namespace, one["metadata"]["name"])

    def delete_servers(self, tenant: Tenant) -> None:
        """Nova is through with what has no object any more."""
        self._set_servers(tenant)

    def _set_servers(self, tenant: Tenant) -> None:
        left = self.cloud.openstack.left
        left["servers"] = [one for one in left["servers"] if one.project_id != tenant.project]
        for one in self._silently("list", names.MACHINE, tenant):
            name = one["metadata"]["name"]
            self.cloud.openstack.leave("servers", name=name, project_id=tenant.project)

    def _silently(self, verb: str, kind: names.Kind, tenant: Tenant) -> list[Any]:
        """Objects of a tenant's namespace, without a fault."""
        return [
            one
            for one in self.kube.everything()
            if one["kind"] == kind.name and one["metadata"].get("namespace") == tenant.namespace
        ]

    # Faults ---------------------------------------------------------------------------------------
    def _before(self, verb: str, kind: names.Kind, name: str) -> None:
        if not self.management_fault:
            return
        fault = MANAGEMENT_FAULTS[self.management_fault]
        if fault is None:
            raise wire.unreachable(f"{verb} {kind.name}: timed out")
        raise wire.refusal(_ASKED, *fault)

    def break_management(self, fault: str) -> None:
        self.management_fault = fault
        self.helm.refusal = errors.HelmInterrupted("helm did not come through.") if fault else None

    def break_cloud(self, fault: str) -> None:
        self.cloud_fault = fault
        self.cloud.openstack.failing = CLOUD_FAULTS[fault] if fault else None
        away = errors.CloudUnreachable("A service does not answer. Try again in some minutes.")
        self.cloud.refusal = away if fault else None

    # Looks ----------------------------------------------------------------------------------------
    def everything_of(self, tenant: Tenant) -> dict[str, Any]:
        """All that is a tenant's, in every place."""
        rows = [
            (row.as_dict(), [one.as_dict() for one in row.nodegroups])
            for row in objects.Cluster.list(self.everybody)
            if row.project_id == tenant.project
        ]
        cloud = self.cloud.openstack
        live = self.helm.live(tenant.namespace, tenant.release)
        return {
            "rows": repr(rows),
            "objects": [
                one
                for one in self.kube.everything()
                if one["metadata"].get("namespace") == tenant.namespace
                or one["metadata"]["name"] == tenant.namespace
            ],
            "release": live and dataclasses.asdict(live),
            "credentials": sorted(one for one in self.cloud.credentials if _owner(one) is tenant),
            "groups": sorted(one.id for one in cloud.groups if one.project_id == tenant.project),
            "addresses": sorted(
                one.id for one in cloud.addresses if one.project_id == tenant.project
            ),
            "servers": sorted(
                one.name for one in cloud.left["servers"] if one.project_id == tenant.project
            ),
        }

    def machines(self, tenant: Tenant) -> list[Any]:
        return self._silently("list", names.MACHINE, tenant)
