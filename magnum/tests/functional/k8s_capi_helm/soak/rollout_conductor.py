# SPDX-License-Identifier: Apache-2.0
"""A conductor with a fleet, on whose host an operator runs the command; it may be killed.

Requests of the command go to Magnum's own handler in this process, and not over a message bus, so
that a kill hits both: the conductor in the middle of an upgrade, and the rollout that has asked.
"""

from __future__ import annotations

from concurrent import futures
import contextlib
import dataclasses
import io
import os
from pathlib import Path
import signal
import sys
import threading
import time
import traceback
from typing import Any

from oslo_db.sqlalchemy import enginefacade
from oslo_service import loopingcall
import sqlalchemy

from magnum import objects
from magnum.common import exception
from magnum.drivers.k8s_capi_helm import errors, lease
from magnum.drivers.k8s_capi_helm.commands.app import OperatorApp
from magnum.drivers.k8s_capi_helm.handlers.entry import reconciliation
from magnum.drivers.k8s_capi_helm.lease import holder
from magnum.drivers.k8s_capi_helm.metrics.registry import process_metrics
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.drivers.k8s_capi_helm.reconcile.process import caches, clients
from magnum.service import periodic
from magnum.tests.functional.k8s_capi_helm.adoption.setting import CLUSTER
from magnum.tests.functional.k8s_capi_helm.kills import cluster_api, conductor, project
from sandbox.cloud import sqlite

#: Requests that create clusters at once.
_TENANTS = 3
_SERVER_GROUPS = 10**4
#: Seconds; a machine may be too busy for those of a real conductor.
_RPC_TIMEOUT = 900
#: Has the releases, one a line, whose control plane does not come good.
BROKEN = "broken"
#: Where a conductor kills itself: before a request that is recorded, after it, and while Helm runs.
RECORDED, REQUESTED, HELM = "recorded", "requested", "helm"


class Controllers(cluster_api.QuickClusters):
    """A management cluster whose controllers are through at once, but for some releases.

    :param broken: path of a file with these.
    """

    def __init__(self, kubeconfig: str, broken: Path) -> None:
        super().__init__(kubeconfig)
        self._broken = broken

    def get(self, kind: names.Kind, namespace: str | None, name: str) -> Json | None:
        found = super().get(kind, namespace, name)
        return None if found is None else self._stalled(kind, found)

    def list(
        self,
        kind: names.Kind,
        namespace: str | None,
        selector: Any = None,
        *,
        metadata_only: bool = False,
    ) -> list[Json]:
        listed = super().list(kind, namespace, selector, metadata_only=metadata_only)
        return [self._stalled(kind, one) for one in listed]

    def _stalled(self, kind: names.Kind, thing: Json) -> Json:
        broken = self._broken.read_text().split() if self._broken.exists() else []
        stalled = map(names.kubeadm_control_plane, broken)
        if kind is names.CONTROL_PLANE and thing["metadata"]["name"] in stalled:
            thing["status"] = {**thing["status"], "conditions": [], "upToDateReplicas": 0}
            thing["status"]["v1beta2"] = {}
        return thing


class FleetConductor(conductor.Conductor):
    """Beside requests: many clusters at once, and the command."""

    def __init__(self, cloud: project.Cloud) -> None:
        super().__init__(cloud)
        self._end = ""
        self._queries = 0
        engine = enginefacade.reader.get_engine()
        sqlalchemy.event.listen(engine, "before_cursor_execute", self._count)

    def _count(self, *_: Any) -> None:
        self._queries += 1

    def make(self, count: int) -> None:
        """So many clusters, with names in order."""

        def one(number: int) -> None:
            new = {"uuid": f"{number:08x}-8888-4777-8666-555555555555", "name": f"c{number:02}"}
            self.create(masters=1, workers=1, **{**CLUSTER, **new})

        with futures.ThreadPoolExecutor(_TENANTS) as tenants:
            list(tenants.map(one, range(count)))

    def follow(self, minutes: float) -> bool:
        """Magnum's periodic jobs for what is in progress; whether something still is."""
        conductor.CLOCK.minutes = minutes
        for cluster in objects.Cluster.list(self._admin):
            if cluster.status.endswith("_IN_PROGRESS"):
                for job in (
                    periodic.ClusterUpdateJob(self._admin, cluster).update_status,
                    periodic.ClusterHealthUpdateJob(self._admin, cluster).update_health_status,
                ):
                    with contextlib.suppress(loopingcall.LoopingCallDone):
                        job()
        return any(one.status.endswith("_IN_PROGRESS") for one in objects.Cluster.list(self._admin))

    def fleet(self) -> dict[str, dict[str, Any]]:
        """Status, health, template and revision of the control plane's object, by name."""
        versions = {
            one["metadata"]["name"]: one["metadata"]["resourceVersion"]
            for one in conductor.given().kube.list(names.CONTROL_PLANE, None)
        }
        return {
            cluster.name: {
                "status": cluster.status,
                "health": cluster.health_status,
                "template": cluster.cluster_template_id,
                "release": cluster.stack_id,
                "object": versions[names.kubeadm_control_plane(cluster.stack_id)],
            }
            for cluster in objects.Cluster.list(self._admin)
        }

    def command(self, argv: list[str], minutes: float = 0.0, end: str = "") -> dict[str, Any]:
        """The operator's command: its exit status, what it prints, and what it asks for.

        :param minutes: how far the clock is.
        :param end: where this process kills itself; "" for nowhere.
        """
        conductor.CLOCK.minutes, self._end = minutes, end
        if end == HELM:
            threading.Thread(target=_end_with_helm, daemon=True).start()
        out, error = io.StringIO(), io.StringIO()
        app = OperatorApp(
            lambda options: reconciliation.of_periodic_task(conductor.given(), conductor.CONF),
            (),
            lambda: self,
            version="0",
            stdout=out,
            stderr=error,
        )
        requests, queries, began = _requests(), self._queries, time.monotonic()
        status = app.run(argv)
        return {
            "status": int(status),
            "out": out.getvalue(),
            "error": error.getvalue(),
            "seconds": time.monotonic() - began,
            "requests": _requests() - requests,
            "queries": self._queries - queries,
        }

    def run_tasks(self, cluster: Any) -> None:
        """No command of these tests asks for this."""
        raise AssertionError("a command has asked for tasks of Magnum")

    def request_upgrade(self, uuid: str, template: str, max_batch_size: int) -> None:
        """What Magnum's API casts, and the handler answers."""
        if self._end == RECORDED:
            _kill()
        cluster = objects.Cluster.get_by_uuid(self._admin, uuid)
        chosen = objects.ClusterTemplate.get_by_uuid(self._admin, template)
        workers = cluster.default_ng_worker
        try:
            self._clusters.cluster_upgrade(self._admin, cluster, chosen, max_batch_size, workers)
        except exception.MagnumException as error:
            raise errors.InvalidRequest(str(error)) from None
        if self._end == REQUESTED:
            _kill()


def _requests() -> int:
    """Requests to the management cluster until now."""
    (family,) = [
        one for one in process_metrics().registry.collect() if one.name.endswith("api_requests")
    ]
    return sum(
        int(sample.value)
        for sample in family.samples
        if sample.name.endswith("_total") and sample.labels["api"] == "management"
    )


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _end_with_helm() -> None:
    """Kill this process as soon as a child of it changes a release."""
    while True:
        for task in Path("/proc/self/task").iterdir():
            for child in (task / "children").read_text().split():
                with contextlib.suppress(OSError):
                    if b"\0upgrade\0" in Path(f"/proc/{child}/cmdline").read_bytes():
                        _kill()
        time.sleep(0.01)


def serve(directory: str, requests: Any) -> None:
    """Answer requests until somebody kills this process.

    :param directory: with the configuration.
    :param requests: a connection, over which verb and arguments come.
    """
    place = Path(directory)
    output = os.open(place / project.LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sqlite.tune()
    conductor.configure(str(place / project.CONFIGURATION))
    # Of which requests have six tenths; no client waits for the answer of one here.
    conductor.CONF.set_override("rpc_response_timeout", _RPC_TIMEOUT)
    fleet = FleetConductor(_play(place))
    while True:
        verb, arguments = requests.recv()
        try:
            answer = getattr(fleet, verb)(**arguments)
        except Exception as error:
            traceback.print_exc()
            requests.send((f"{type(error).__name__}: {error}", None))
        else:
            requests.send(("", answer))
        sys.stdout.flush()


def _play(place: Path) -> project.Cloud:
    """Put what is played in its place; returns the cloud as everybody's."""
    cloud = project.Cloud(project.Project(place / "project.json"))
    cloud.openstack.quota = _SERVER_GROUPS
    kube = Controllers(conductor.CONF.capi_helm.kubeconfig_file, place / BROKEN)
    leases = lease.ReleaseLeases(
        kube,
        # The next conductor on this host takes the lock of a killed one at once.
        holder=holder.holder_identity(),
        lease_duration=conductor.CONF.capi_helm.lease_duration,
        now=conductor.CLOCK.now,
    )
    conductor.serve_with(
        dataclasses.replace(
            clients.build(conductor.CONF),
            kube=kube,
            leases=leases,
            informers=None,
            first_seen=caches.FirstSeen(lambda: conductor.CLOCK.now().timestamp()),
            cloud=cloud.seen_by,
            clock=conductor.CLOCK.now,
        )
    )
    return cloud
