# SPDX-License-Identifier: Apache-2.0
"""A conductor that carries out a tenant's requests, and has Magnum's status task going on.

It runs as :mod:`tools.bench.pass_conductor` does. Its database may be shared: Magnum's parent
process has the periodic tasks, and its workers have the requests.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from typing import Any

from oslo_db.sqlalchemy import enginefacade

from magnum import objects
from magnum.common import context as magnum_context
from magnum.conductor.handlers import cluster_conductor
import magnum.conf
from magnum.db.sqlalchemy import models
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import query_cache, reader
from magnum.drivers.k8s_capi_helm.metrics import registry
from magnum.objects import cluster as cluster_object
from magnum.service import periodic
from magnum.tests.functional.k8s_capi_helm.adoption import setting
from sandbox.cloud import sqlite
from tools.bench import pass_conductor, verb_driver
from tools.bench.pass_conductor import Json
from tools.bench.thread_profile import ThreadProfile

CONF = magnum.conf.CONF
#: Seconds between two passes of Magnum's status task.
PERIOD = 10.0
#: The cluster of the tenant who asks for something.
_UUID = "77777777-8888-4777-8666-555555555555"
#: Beside the one of the fleet, in the same database.
_TEMPLATE = {**setting.TEMPLATE, "uuid": "21111111-2222-4333-8444-555555555555"}
_CLUSTER = {
    **setting.CLUSTER,
    "uuid": _UUID,
    "name": "one",
    "cluster_template_id": _TEMPLATE["uuid"],
    "keypair": None,
}


class StatusTask:
    """Magnum's status task: every ten seconds a thread for each cluster in progress."""

    def __init__(self, admin: Any) -> None:
        self._admin = admin
        self._stopped = threading.Event()
        self._thread = threading.Thread()
        self._passes: list[threading.Thread] = []
        #: Seconds that each round took, from its begin to the end of its last pass.
        self.rounds: list[float] = []

    def begin(self) -> None:
        """Go on from now on."""
        self._stopped.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def pause(self) -> None:
        """End, with all passes that run."""
        self._stopped.set()
        for one in (self._thread, *self._passes):
            one.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            begin = time.monotonic()
            self._round()
            self._stopped.wait(max(0.0, PERIOD - (time.monotonic() - begin)))

    def _round(self) -> None:
        begin, number = time.monotonic(), len(self.rounds)
        self.rounds.append(0.0)

        def once(job: periodic.ClusterUpdateJob) -> None:
            pass_conductor.once(job.update_status)
            self.rounds[number] = time.monotonic() - begin

        filters = {"status": pass_conductor.IN_PROGRESS}
        jobs = [
            periodic.ClusterUpdateJob(self._admin, one)
            for one in cluster_object.Cluster.list(self._admin, filters=filters)
        ]
        new = [threading.Thread(target=once, args=(job,), daemon=True) for job in jobs]
        for one in new:
            one.start()
        self._passes = [one for one in (*self._passes, *new) if one.is_alive()]


class Conductor(pass_conductor.Conductor):
    """Each public method is one request, its arguments are what the line says."""

    def __init__(self) -> None:
        super().__init__()
        self._user = self._admin
        # With a driver that does nothing, too: what is compared is the drivers.
        query_cache.enable_query_cache()
        verb_driver.of_process()
        self._handler = cluster_conductor.Handler()
        self._task = StatusTask(self._admin)

    # Threads --------------------------------------------------------------------------------------
    def watch_threads(self) -> None:
        """Look from now on what all threads do."""
        self._threads = ThreadProfile()

    def threads(self) -> str:
        """What they did, and look no more."""
        return self._threads.end()

    # Magnum's status task -------------------------------------------------------------------------
    def begin(self) -> None:
        """Let Magnum's status task go on."""
        self._task.begin()

    def pause(self) -> None:
        """End it, with all passes that run."""
        self._task.pause()

    def rounds(self) -> list[float]:
        """Seconds that each of its rounds took."""
        return self._task.rounds

    # Requests -------------------------------------------------------------------------------------
    def create(self, project: str) -> None:
        """Make the cluster of a tenant, who asks from now on."""
        models.Base.metadata.create_all(enginefacade.writer.get_engine())
        owner = {"project_id": project, "user_id": "u1"}
        self._user = magnum_context.make_context(
            auth_token="token",  # noqa: S106 - it is not used
            auth_url="http://keystone.example.org/v3",
            roles=["member"],
            is_admin=False,
            **owner,
        )
        objects.ClusterTemplate(self._user, **owner, **_TEMPLATE).create()
        cluster = objects.Cluster(self._user, **owner, **_CLUSTER)
        self._handler.cluster_create(self._user, cluster, 1, 1, 60)
        self.settle()

    def resize(self, count: int) -> Json:
        """Give its workers another number; what the request took, and Helm's part of that."""
        cluster = self._cluster()
        group = objects.NodeGroup.get_by_name(self._user, _UUID, "default-worker")
        begin, before = time.monotonic(), _helm()
        self._handler.cluster_resize(self._user, cluster, count, None, group)
        return {"seconds": time.monotonic() - begin, "helm": _helm() - before}

    def settle(self) -> None:
        """Be through with what was asked for: Cluster API is not played here."""
        cluster, leases = self._cluster(), verb_driver.of_process().leases
        namespace = reader.cluster_namespace(cluster, CONF)
        record = leases.read(namespace, cluster.stack_id)
        if record is None:
            raise RuntimeError(f"{cluster.status}: {cluster.status_reason}")
        leases.finish(namespace, cluster.stack_id, [one.id for one in record.operations])
        for row in (*cluster.nodegroups, cluster):
            row.status = "UPDATE_COMPLETE"
            row.save()

    def _cluster(self) -> Any:
        return objects.Cluster.get_by_uuid(self._user, _UUID)


def _helm() -> float:
    """Seconds of all runs of helm until now."""
    metrics = registry.process_metrics().registry
    name = f"{registry.PREFIX}helm_run_duration_seconds_sum"
    found = [metrics.get_sample_value(name, {"command": one}) for one in ("upgrade", "install")]
    return math.fsum(one or 0.0 for one in found)


if __name__ == "__main__":
    sqlite.tune()
    pass_conductor.main(sys.argv[1:], Conductor)
