# SPDX-License-Identifier: Apache-2.0
"""One conductor's periodic tasks over a fleet, as a process of the benchmarks.

Magnum's code and database (SQLite) are the real ones, and so is the driver; OpenStack is in memory.
Reads what to do from a file, and prints what it found, as JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
import gc
import json
import os
from pathlib import Path
import random
import sqlite3
import sys
import threading
import time
from typing import Any

from oslo_db.sqlalchemy import enginefacade

from magnum.common import context as magnum_context
import magnum.conf
from magnum.db.sqlalchemy import models
from magnum.drivers.common import driver
from magnum.drivers.k8s_capi_helm.kube.informers import KINDS
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import names
from magnum.objects import cluster as cluster_object
from magnum.service import periodic
from tools import own_driver, pass_conductor, pass_process
from tools.fleet import builders, Json

CONF = magnum.conf.CONF
#: Seconds between two passes of Magnum's status task.
PERIOD = 10.0
_PATIENCE = 120.0
_THREADS = 8
_LOOKS = 0.02


def main(arguments: list[str]) -> int:
    task = json.loads(Path(arguments[0]).read_text())
    _configure(task)
    admin = magnum_context.make_admin_context(all_tenants=True)
    for number, one in enumerate(task["clusters"]):
        pass_conductor.insert(admin, one, first=number == 0)
    found = {"passes": passes, "follow": follow, "start": start}[task["what"]](admin, task)
    print(json.dumps(found))
    sys.stdout.flush()
    # Watches are in the middle of something, and nobody waits for them.
    os._exit(0)


def passes(admin: Any, task: Json) -> Json:
    """One health pass over a fleet at rest: when, CPU seconds, and memory that watching takes."""
    memory, watching = 0.0, own_driver.of_process().informers
    if watching is not None:
        gc.collect()
        before = pass_conductor.in_memory()
        watching.start()
        _until(lambda: watching.view().kinds == frozenset(KINDS))
        gc.collect()
        memory = pass_conductor.in_memory() - before
    clusters = cluster_object.Cluster.list(admin)
    # The first one makes connections; those who watch keep what they have found twice.
    for _ in range(1 if watching is None else 2):
        _health_pass(admin, clusters[:1] if watching is None else clusters)
    since, cpu = time.time(), time.process_time()
    _health_pass(admin, clusters)
    until, cpu = time.time(), time.process_time() - cpu
    return {
        "since": since,
        "until": until,
        "cpu": cpu,
        "threads": threading.active_count(),
        "memory": memory,
        "healthy": sum(
            one.health_status == "HEALTHY" for one in cluster_object.Cluster.list(admin)
        ),
    }


def start(admin: Any, task: Json) -> Json:
    """The first health task of a process, in some threads: when, and CPU seconds.

    It begins when as many conductors as the task says are ready.
    """
    clusters = cluster_object.Cluster.list(admin)
    ready = Path(task["ready"])
    (ready / str(os.getpid())).touch()
    _until(lambda: len(list(ready.iterdir())) >= task["conductors"])
    since, cpu = time.time(), time.process_time()
    jobs = [periodic.ClusterHealthUpdateJob(admin, one).update_health_status for one in clusters]
    with futures.ThreadPoolExecutor(_THREADS) as pool:
        done = sum(pool.map(pass_conductor.once, jobs))
    until, cpu = time.time(), time.process_time() - cpu
    rows = cluster_object.Cluster.list(admin)
    healthy = sum(one.health_status == "HEALTHY" for one in rows)
    return {"since": since, "until": until, "cpu": cpu, "done": done, "healthy": healthy}


def follow(admin: Any, task: Json) -> Json:
    """Seconds from the change of an object to the reason in Magnum's row, once per change."""
    stopped = threading.Event()
    thread = threading.Thread(target=_status_task, args=(admin, stopped), daemon=True)
    thread.start()
    # Watches and connections have to be there.
    stopped.wait(2 * PERIOD)
    kube, found = KubeClient(task["admin"]), list[float]()
    releases = [one["cluster"]["stack_id"] for one in task["clusters"]]
    spaces = [one["release"]["namespace"] for one in task["clusters"]]
    cpu = time.process_time()
    for _ in range(task["turns"]):
        moments = sorted((random.uniform(0, PERIOD), n) for n in range(len(releases)))  # noqa: S311
        waiting, begin = dict[str, tuple[str, float]](), time.monotonic()
        while moments or waiting:
            now = time.monotonic()
            while moments and now - begin >= moments[0][0]:
                _, number = moments.pop(0)
                mark = f"mark {int(begin)}-{number} "
                _change(kube, spaces[number], releases[number], mark)
                waiting[releases[number]] = mark, time.monotonic()
            for release, reason in _reasons(task["database"]):
                mark, since = waiting.get(release, ("", 0.0))
                if mark and mark in (reason or ""):
                    found.append(time.monotonic() - since)
                    del waiting[release]
            stopped.wait(_LOOKS)
            if now - begin > _PATIENCE:
                raise TimeoutError(f"{waiting} and {moments} left: {_reasons(task['database'])}")
    stopped.set()
    return {"seconds": found, "cpu": time.process_time() - cpu}


# --------------------------------------------------------------------------------------------------
def _configure(task: Json) -> None:
    CONF.set_override("disabled_drivers", [pass_process.INSTALLED], "drivers")
    for point, _ in driver.Driver.load_entry_points():
        point.load()
    CONF([], project="magnum", default_config_files=[])
    CONF.set_override("connection", f"sqlite:///{task['database']}?timeout=60", "database")
    CONF.set_override("sqlite_synchronous", False, "database")
    pass_conductor.use_database(task["database"])
    CONF.set_override("kubeconfig_file", task["kubeconfig"], "capi_helm")
    CONF.set_override("watch_staleness", task["staleness"], "capi_helm")
    models.Base.metadata.create_all(enginefacade.writer.get_engine())


def _health_pass(admin: Any, clusters: list[Any]) -> None:
    """One after another: Magnum gives each a thread, but SQLite takes one who writes at a time."""
    for cluster in clusters:
        pass_conductor.once(periodic.ClusterHealthUpdateJob(admin, cluster).update_health_status)


def _status_task(admin: Any, stopped: threading.Event) -> None:
    """As Magnum's: every ten seconds, a thread for each cluster in progress."""
    with futures.ThreadPoolExecutor(_THREADS) as pool:
        while not stopped.is_set():
            begin = time.monotonic()
            jobs = [
                periodic.ClusterUpdateJob(admin, one) for one in cluster_object.Cluster.list(admin)
            ]
            for one in jobs:
                pool.submit(pass_conductor.once, one.update_status)
            stopped.wait(max(0.0, PERIOD - (time.monotonic() - begin)))


def _change(kube: KubeClient, namespace: str, release: str, mark: str) -> None:
    """Let a server fail with a message, as CAPO does."""
    [server, *_] = kube.list(names.OPENSTACK_SERVER, namespace, {names.LABEL_CLUSTER_NAME: release})
    builders.say(server, "InstanceReady", "False", mark, reason="InstanceCreateFailed")
    status = {"status": {"conditions": server["status"]["conditions"]}}
    kube.patch(names.OPENSTACK_SERVER, namespace, server["metadata"]["name"], status)


def _reasons(database: str) -> list[tuple[str, str | None]]:
    connection = sqlite3.connect(database, timeout=30)
    try:
        return connection.execute("select stack_id, status_reason from cluster").fetchall()
    finally:
        connection.close()


def _until(question: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not question():
        if time.monotonic() > end:
            raise TimeoutError("the watches do not come to know everything")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
