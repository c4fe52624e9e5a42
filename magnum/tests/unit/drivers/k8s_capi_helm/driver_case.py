# SPDX-License-Identifier: Apache-2.0
"""A whole small world for the driver: Magnum's real conductor code and database, clients in memory.

Requests go through Magnum's own conductor handlers and periodic jobs, so that what Magnum saves
before and after each driver call is Magnum's doing. What Cluster API's controllers would do is one
call,
:meth:`DriverCase.capi_converges`.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import importlib.util
import json
import logging
import pathlib
import tempfile
from typing import Any

import fixtures
from oslo_db.sqlalchemy import enginefacade
from oslo_service import loopingcall
import sqlalchemy

from magnum import objects
from magnum.common import exception
from magnum.conductor.handlers import cluster_conductor, nodegroup_conductor
import magnum.conf
from magnum.drivers import k8s_capi_helm
from magnum.drivers.common import driver as magnum_driver
from magnum.drivers.k8s_capi_helm import chart_store, conf, errors, lease
from magnum.drivers.k8s_capi_helm.driver import Driver
from magnum.drivers.k8s_capi_helm.handlers.entry import reconciliation
from magnum.drivers.k8s_capi_helm.lease import codec
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.process import clients
from magnum.drivers.k8s_capi_helm.reconcile.process.caches import FinishedOnce, FirstSeen
from magnum.drivers.k8s_capi_helm.values.tree import live
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade
from magnum.service import periodic
from magnum.tests.unit.db import base
from magnum.tests.unit.drivers.k8s_capi_helm import builders, fakes, test_database
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.cloud import FakeCloud, SECRET_TEXT

__all__ = ["NAMESPACE", "RELEASE", "SECRET_TEXT", "DriverCase", "FakeCloud"]

CONF = magnum.conf.CONF
conf.register_opts(CONF)
NAMESPACE, RELEASE = builders.NAMESPACE, builders.RELEASE


@functools.cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def _charts() -> pathlib.Path:
    """A store of charts that a process fills once; it is gone when the process ends."""
    return pathlib.Path(_kept().name)


_TRUSTS = "magnum.conductor.handlers.common.trust_manager"


class DriverCase(base.DbTestCase):
    """Base of the driver's tests."""

    def setUp(self) -> None:
        test_database.use()
        super().setUp()
        _unmute()
        self.context.project_id, self.context.user_id = "p1", "u1"
        self.context.roles = ["member", "reader"]
        self.kube, self.helm, self.cloud = fakes.FakeKube(), fakes.FakeHelm(), FakeCloud()
        charts = chart_store.ChartStore(
            bundled_charts=pathlib.Path(k8s_capi_helm.__file__).parent / "charts",
            directory=_charts(),
            copies=chart_store.ChartConfigMaps(self.kube),
        )
        self.fixed_time: datetime.datetime | None = None
        self.ports = self.clients_of(
            kube=self.kube,
            leases=lease.ReleaseLeases(self.kube, holder="test", lease_duration=60),
            helm=self.helm,
            charts=charts,
        )
        self.driver = self.new_driver()
        of_magnum = f"{magnum_driver.__name__}.Driver"
        for name in ("get_driver_for_cluster", "get_driver"):
            self.useFixture(fixtures.MonkeyPatch(f"{of_magnum}.{name}", lambda *args: self.driver))
        if importlib.util.find_spec(_TRUSTS):
            # Until Magnum 22 the conductor itself asks Keystone for a trust for each cluster.
            for name in ("create_trustee_and_trust", "delete_trustee_and_trust"):
                self.useFixture(fixtures.MonkeyPatch(f"{_TRUSTS}.{name}", lambda *args: None))
        self.config(group="x509", rsa_key_size=1024)
        self.config(group="certificates", cert_manager_type="x509keypair")
        self.config(group="capi_helm", lock_wait=0)
        self.template = self._template()

    def new_driver(self) -> Driver:
        """The driver of a conductor, with whatever clients it has by then."""
        return Driver(lambda settings: self.ports)

    def clients_of(self, **given: Any) -> clients.Clients:
        """The clients of a process in this world, which knows nothing yet."""
        return clients.Clients(
            **{
                "first_seen": self.seen(),
                "cloud": self.openstack_of,
                "clock": lambda: self.wall_clock(),
                "release_name": lambda name: self.release_of(name),
                **given,
            }
        )

    def periodic(self) -> Reconciliation:
        """The reconciliation of a periodic task."""
        return reconciliation.of_periodic_task(self.ports, CONF)

    def seen(self) -> FirstSeen:
        """What a new process has seen; its clock goes as the driver's does."""
        return FirstSeen(lambda: self.wall_clock().timestamp())

    def openstack_of(self, context: Any) -> Any:
        """OpenStack as somebody sees it."""
        return self.cloud.seen_by(context)

    def release_of(self, name: str) -> str:
        """The name of the release of a new cluster."""
        return RELEASE

    def wall_clock(self) -> datetime.datetime:
        """What the clock of the driver shows."""
        return self.fixed_time or datetime.datetime.now(datetime.timezone.utc)

    def _template(self, **changes: Any) -> Any:
        fields = {
            "uuid": "11111111-2222-4333-8444-555555555555",
            "project_id": "p1",
            "user_id": "u1",
            "name": "kube",
            "image_id": "ubuntu-kube",
            "flavor_id": "small",
            "master_flavor_id": "small",
            "external_network_id": "public",
            "network_driver": "calico",
            "cluster_distro": "ubuntu",
            "coe": "kubernetes",
            "server_type": "vm",
            "labels": {},
            "master_lb_enabled": True,
            "floating_ip_enabled": True,
        }
        template = objects.ClusterTemplate(self.context, **{**fields, **changes})
        template.create()
        return template

    def selects(self) -> list[str]:
        """The SELECT statements of the database from now on; they are added to the list."""
        found: list[str] = []

        def note(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
            if statement.startswith("SELECT"):
                found.append(statement)

        engine = enginefacade.writer.get_engine()
        sqlalchemy.event.listen(engine, "before_cursor_execute", note)
        self.addCleanup(sqlalchemy.event.remove, engine, "before_cursor_execute", note)
        return found

    def count_seconds(self, holder: str, duration: float) -> None:
        """From now on the locks' time is :attr:`seconds`, for a conductor of this name."""
        self.seconds = 0.0
        leases = lease.ReleaseLeases(
            self.kube,
            holder=holder,
            lease_duration=duration,
            clock=lambda: self.seconds,
            pause=lambda seconds: None,
        )
        self.ports = dataclasses.replace(self.ports, leases=leases)

    def drop_group_of_new_cluster(self, name: str) -> None:
        """A cluster whose machines of one nodegroup, which is to go, have gone already."""
        self.made()
        self.add_group(name)
        self.capi_converges()
        self.status_task(2)
        self.drop_group(name)
        self.capi_converges()

    # Requests, as Magnum's API casts them ---------------------------------------------------------
    def create(self, masters: int = 1, workers: int = 1, **changes: Any) -> Any:
        """A create request; errors of the driver are Magnum's to handle, as in the conductor."""
        # The uuid of a cluster that came to its end never comes again, but here.
        self.ports = dataclasses.replace(self.ports, finished_deletions=FinishedOnce())
        fields = {
            "uuid": "99999999-8888-4777-8666-555555555555",
            "name": "demo",
            "project_id": "p1",
            "user_id": "u1",
            "cluster_template_id": self.template.uuid,
            "labels": {},
            "create_timeout": 60,
            "floating_ip_enabled": True,
            "master_lb_enabled": True,
        }
        cluster = objects.Cluster(self.context, **{**fields, **changes})
        self.quietly(
            cluster_conductor.Handler().cluster_create, self.context, cluster, masters, workers, 60
        )
        return objects.Cluster.get_by_uuid(self.context, cluster.uuid)

    def resize(self, count: int, name: str = "default-worker", remove: Any = None) -> None:
        handler = cluster_conductor.Handler()
        cluster, group = self.cluster(), self.group(name)
        self.quietly(handler.cluster_resize, self.context, cluster, count, remove, group)

    def upgrade(self, template: Any, name: str = "default-worker", batch: int = 1) -> str:
        """An upgrade request, which Magnum answers at once: the refusal, "" if there is none."""
        handler = cluster_conductor.Handler()
        cluster, group = self.cluster(), self.group(name)
        try:
            handler.cluster_upgrade(self.context, cluster, template, batch, group)
        except exception.NotSupported as error:
            return str(error)
        return ""

    def new_group(self, name: str, **changes: Any) -> Any:
        """A nodegroup as Magnum's API has it from a request; it is not saved."""
        fields = {
            "name": name,
            "cluster_id": self.cluster().uuid,
            "project_id": "p1",
            "image_id": "ubuntu-kube",
            "flavor_id": "small",
            "node_count": 1,
            "role": "worker",
            "labels": {},
            "min_node_count": 0,
        }
        return objects.NodeGroup(self.context, **{**fields, **changes})

    def add_group(self, name: str, count: int = 1, **changes: Any) -> None:
        group = self.new_group(name, node_count=count, **changes)
        handler = nodegroup_conductor.Handler()
        self.quietly(handler.nodegroup_create, self.context, self.cluster(), group)

    def change_group(self, name: str = "default-worker", **fields: Any) -> None:
        """An update of a nodegroup as Magnum's API casts it: the fields are set and not saved."""
        group = self.group(name)
        for field, value in fields.items():
            setattr(group, field, value)
        handler = nodegroup_conductor.Handler()
        self.quietly(handler.nodegroup_update, self.context, self.cluster(), group)

    def drop_group(self, name: str) -> None:
        handler = nodegroup_conductor.Handler()
        self.quietly(handler.nodegroup_delete, self.context, self.cluster(), self.group(name))

    def delete(self) -> None:
        handler = cluster_conductor.Handler()
        self.quietly(handler.cluster_delete, self.context, self.cluster().uuid)

    @staticmethod
    def quietly(call: Any, *args: Any) -> None:
        """Call a conductor handler; it has written what it raises, and oslo.messaging logs it."""
        try:
            call(*args)
        except (errors.DriverError, exception.MagnumException) as error:
            del error

    # Periodic tasks -------------------------------------------------------------------------------
    def status_task(self, times: int = 1) -> None:
        """The status task, for clusters that it would visit."""
        for _ in range(times):
            for cluster in objects.Cluster.list(self.context):
                if cluster.status.endswith("_IN_PROGRESS"):
                    job = periodic.ClusterUpdateJob(self.context, cluster)
                    self.assertRaises(loopingcall.LoopingCallDone, job.update_status)

    def health_task(self) -> None:
        """The health task."""
        for cluster in objects.Cluster.list(self.context):
            job = periodic.ClusterHealthUpdateJob(self.context, cluster)
            self.assertRaises(loopingcall.LoopingCallDone, job.update_health_status)

    def after(self, minutes: float) -> None:
        """Let time pass for the driver."""
        self.stand_still(
            datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=minutes)
        )

    def stand_still(self, now: datetime.datetime) -> None:
        """Let the clock of the driver show this time from now on."""
        self.fixed_time = now

    # What Cluster API does ------------------------------------------------------------------------
    def capi_converges(self) -> None:
        """Bring every object to what the release's values ask for."""
        values = self.helm.live(NAMESPACE, RELEASE).values
        groups = {one["name"]: self._wanted(one) for one in values["nodeGroups"]}
        self.capi_deletes()
        look = builders.observed(groups, masters=values["controlPlane"]["machineCount"])
        wanted = upgrade.versions(values)
        for one in builders.objects(look):
            labels = one["metadata"].get("labels") or {}
            group = labels.get(names.LABEL_DEPLOYMENT_NAME, "").removeprefix(f"{RELEASE}-")
            place = labels.get(names.LABEL_NODE_GROUP) or group or live.CONTROL_PLANE
            version = wanted[place]
            text = json.dumps(one).replace(f"v{builders.VERSION}", f"v{version}")
            self.kube.put(_KINDS[one["kind"]], json.loads(text))

    def _wanted(self, entry: dict[str, Any]) -> int:
        """Machines of a group: its number, or its MachineDeployment's own between the bounds."""
        if "machineCount" in entry:
            return int(entry["machineCount"])
        have = self.replicas(entry["name"])
        return min(max(have or 0, entry["machineCountMin"]), entry["machineCountMax"])

    def replicas(self, group: str) -> int | None:
        """What the MachineDeployment of a nodegroup asks for."""
        found = self.kube.list(names.MACHINE_DEPLOYMENT, NAMESPACE, {names.LABEL_NODE_GROUP: group})
        return found[0]["spec"].get("replicas") if found else None

    def scale(self, group: str, count: int) -> None:
        """The autoscaler, or anybody else, sets the number of machines."""
        selector = {names.LABEL_NODE_GROUP: group}
        for one in self.kube.list(names.MACHINE_DEPLOYMENT, NAMESPACE, selector):
            name = one["metadata"]["name"]
            patch = {"spec": {"replicas": count}}
            self.kube.patch(names.MACHINE_DEPLOYMENT, NAMESPACE, name, patch)

    def capi_deletes(self) -> None:
        """Everything that Cluster API keeps for the cluster goes."""
        for kind in _KINDS.values():
            for one in self.kube.list(kind, NAMESPACE):
                self.kube.remove(kind, NAMESPACE, one["metadata"]["name"])

    # Looks ----------------------------------------------------------------------------------------
    def cluster(self) -> Any:
        return objects.Cluster.get_by_name(self.context, "demo")

    def group(self, name: str = "default-worker") -> Any:
        return objects.NodeGroup.get_by_name(self.context, self.cluster().uuid, name)

    def made(self, **more: Any) -> Any:
        """A cluster that is CREATE_COMPLETE."""
        self.create(**more)
        self.capi_converges()
        self.status_task(2)
        return self.cluster()

    def give_the_operators_word(self) -> None:
        """Declare on the Lease that nothing of the cluster is left in OpenStack."""
        word = {"metadata": {"annotations": {codec.CLEARED: "true"}}}
        self.kube.patch(names.LEASE, NAMESPACE, names.lease(RELEASE), word)

    def make_late(self) -> None:
        """Write the pending operation's times into the past, as if it had begun long ago."""
        text = json.dumps(self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE)))
        year = datetime.datetime.now(datetime.timezone.utc).year
        self.kube.put(names.LEASE, json.loads(text.replace(f"{year}-", "2020-")))

    def forget_resolved(self) -> None:
        """The Lease is as an older version has written it."""
        found = self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
        notes = found["metadata"]["annotations"]
        for key, text in notes.items():
            if key.endswith("/operations"):
                listed = json.loads(text)
                self.assertTrue([one for one in listed if one.pop("resolved", None)])
                notes[key] = json.dumps(listed)
        self.kube.put(names.LEASE, found)

    def left(self) -> list[str]:
        """What is on the management cluster, but for the project's namespace and role."""
        return sorted(
            f"{one['kind']}/{one['metadata']['name']}"
            for one in self.kube.everything()
            if one["kind"] not in ("Namespace", "RoleBinding")
        )


_KINDS = {
    kind.name: kind
    for kind in (
        names.CLUSTER,
        names.OPENSTACK_CLUSTER,
        names.CONTROL_PLANE,
        names.MACHINE_DEPLOYMENT,
        names.MACHINE_SET,
        names.MACHINE,
        names.OPENSTACK_SERVER,
        names.HELM_RELEASE,
    )
}


def _unmute() -> None:
    """Give loggers their voice back: making the database's tables reads a logging configuration
    that switches off every logger there is, and tests of the log would prove nothing.
    """
    for one in logging.root.manager.loggerDict.values():
        if isinstance(one, logging.Logger):
            one.disabled = False
