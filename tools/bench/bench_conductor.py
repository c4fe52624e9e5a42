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
import sys
import threading
import time
from typing import Any

from oslo_db.sqlalchemy import enginefacade

from magnum.common import context as magnum_context
import magnum.conf
from magnum.db.sqlalchemy import models
from magnum.drivers.common import driver
from magnum.drivers.k8s_capi_helm.kube.watch.informers import KINDS
from magnum.objects import cluster as cluster_object
from magnum.service import periodic
from tools.bench import own_driver, pass_conductor, pass_process
from tools.bench.fleet import Json

CONF = magnum.conf.CONF
_PATIENCE = 120.0
_THREADS = 8


def main(arguments: list[str]) -> int:
    task = json.loads(Path(arguments[0]).read_text())
    _configure(task)
    admin = magnum_context.make_admin_context(all_tenants=True)
    for number, one in enumerate(task["clusters"]):
        pass_conductor.insert(admin, one, first=number == 0)
    found = {"passes": passes, "start": start}[task["what"]](admin, task)
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
        _until(lambda: watching.view().kinds >= frozenset(KINDS))
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
    own_driver.of_process()
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


def _until(question: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not question():
        if time.monotonic() > end:
            raise TimeoutError("the watches do not come to know everything")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
