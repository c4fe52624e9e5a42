# SPDX-License-Identifier: Apache-2.0
"""A conductor of Magnum with whatever driver it finds: requests in as lines, answers out, as JSON.

Runs in an environment where nothing of this project is installed, too; so it imports Magnum only.
Periodic jobs run one after another: Magnum gives each a thread, but SQLite takes one who writes at
a time, and only their sum is measured.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import cProfile
import gc
import io
import json
import os
from pathlib import Path
import pstats
import re
import resource
import sqlite3
import sys
import time
import traceback
from typing import Any

from oslo_db.sqlalchemy import enginefacade
from oslo_log import log
from oslo_service import loopingcall
from oslo_utils import uuidutils
from sqlalchemy import event

from magnum.common import context as magnum_context
from magnum.common import rpc
import magnum.conf
from magnum.db.sqlalchemy import models
from magnum.drivers.common import driver
from magnum.objects import cluster as cluster_object
from magnum.objects import cluster_template as template_object
from magnum.objects import nodegroup as group_object
from magnum.service import periodic

CONF = magnum.conf.CONF
Json = dict[str, Any]
#: Of a row: what the database gives, and what belongs to other rows.
_LEFT = ("id", "created_at", "updated_at", "cluster_template")
IN_PROGRESS = ["CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"]
#: How many functions a profile has, and what the paths of this driver's contain.
_PROFILED, _PACKAGE = 30, "k8s_capi_helm"


class Conductor:
    """Each public method is one request, its arguments are what the line says."""

    def __init__(self) -> None:
        self._admin = magnum_context.make_admin_context(all_tenants=True)

    def insert(self, clusters: list[Json]) -> None:
        """Write the rows of clusters into a new database."""
        models.Base.metadata.create_all(enginefacade.writer.get_engine())
        for number, one in enumerate(clusters):
            insert(self._admin, one, first=number == 0)

    def run(self, job: str, times: int) -> list[Json]:
        """Passes of "status" or "health".

        :returns: for each when it began and ended, its processor seconds, and how many of its
            jobs failed: they took less than they should.
        """
        found = []
        for _ in range(times):
            gc.collect()
            found.append(self._pass(job))
        return found

    def finish(self, settle: float, pause: float, most: int, profiled: bool) -> Json:
        """Status passes until no cluster is in progress; how many, and what took their time.

        :param settle: seconds before the first one; *pause* are those between two.
        """
        time.sleep(settle)
        passes, failed, profiler = 0, 0, cProfile.Profile()
        while passes < most and self._clusters("status"):
            if passes:
                time.sleep(pause)
            with profiler if profiled else contextlib.nullcontext():
                failed += self._pass("status")["failed"]
            passes += 1
        end = {"time": time.time(), "cpu": time.process_time()}
        profile = profile_text(profiler) if profiled else ""
        return {"passes": passes, "failed": failed, "end": end, "profile": profile}

    def profile(self, job: str) -> str:
        """What takes the time of a pass, by function, the most first."""
        profiler = cProfile.Profile()
        with profiler:
            self._pass(job)
        return profile_text(profiler)

    def clock(self) -> Json:
        """The time, and the processor seconds of this process until now, without its garbage."""
        gc.collect()
        return {"time": time.time(), "cpu": time.process_time()}

    def rows(self) -> list[Json]:
        """What is written about each cluster."""
        fields = ("uuid", "status", "status_reason", "health_status")
        return [
            {field: getattr(one, field) for field in fields}
            for one in cluster_object.Cluster.list(self._admin)
        ]

    def memory(self) -> Json:
        """MiB of this process in memory now, and at most until now."""
        gc.collect()
        # getrusage() counts what was there before this program was loaded, too.
        lines = Path("/proc/self/status").read_text().splitlines()
        said = dict(line.split(":", 1) for line in lines)
        return {"settled": in_memory(), "peak": int(said["VmHWM"].split()[0]) / 2**10}

    def _clusters(self, job: str) -> list[Any]:
        filters = {"status": IN_PROGRESS} if job == "status" else {}
        found: list[Any] = cluster_object.Cluster.list(self._admin, filters=filters)
        return found

    def _pass(self, job: str) -> Json:
        since, cpu, failed = time.time(), time.process_time(), 0
        for cluster in self._clusters(job):
            if job == "health":
                one = periodic.ClusterHealthUpdateJob(self._admin, cluster).update_health_status
            else:
                one = periodic.ClusterUpdateJob(self._admin, cluster).update_status
            failed += not once(one)
        cpu = time.process_time() - cpu
        return {"since": since, "until": time.time(), "cpu": cpu, "failed": failed}


def profile_text(profiler: cProfile.Profile) -> str:
    """The functions that take the most, and those of this driver alone."""
    said = io.StringIO()
    statistics = pstats.Stats(profiler, stream=said).sort_stats("cumulative")
    statistics.print_stats(_PROFILED)
    statistics.print_stats(_PACKAGE, _PROFILED)
    # Modules are told apart by the end of their paths.
    return re.sub(r"\S*/(\S+/\S+\.py)", r"\1", said.getvalue())


def insert(admin: Any, one: Json, *, first: bool) -> None:
    """Write the rows of one cluster; those of the template with the first."""

    def made(kind: Any, row: Json, **more: Any) -> None:
        fields = {key: row[key] for key in kind.fields if key in row and key not in _LEFT}
        kind(admin, **{**fields, **more}).create()

    if first:
        made(template_object.ClusterTemplate, one["template"])
    made(cluster_object.Cluster, one["cluster"])
    for group in one["groups"]:
        more = {"cluster_id": one["cluster"]["uuid"], "uuid": uuidutils.generate_uuid()}
        made(group_object.NodeGroup, group, **more)


def once(job: Callable[[], None]) -> bool:
    """Run a periodic job; whether it came to its end. What it raises is printed."""
    try:
        job()
    except loopingcall.LoopingCallDone:
        return True
    except Exception:
        traceback.print_exc()
    return False


def in_memory() -> float:
    """MiB of this process that are in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def use_database(path: str) -> None:
    """Let threads share the database of CONF, which is SQLite's, as those of real clouds.

    Whoever looks at it keeps no writer waiting. Transactions wait for each other where they begin:
    one that has read and wants to write would fail at once where another one has written since
    (https://sqlite.org/isolation.html).
    """
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode=WAL")
    # oslo.db begins transactions by this statement.
    engine = enginefacade.writer.get_engine()
    event.listen(engine, "before_cursor_execute", _begin_at_once, retval=True)


def _begin_at_once(*arguments: Any) -> tuple[str, Any]:
    """As https://docs.sqlalchemy.org/en/latest/core/events.html says of before_cursor_execute."""
    _, _, statement, parameters, *_ = arguments
    return ("BEGIN IMMEDIATE" if statement == "BEGIN" else statement), parameters


def main(arguments: list[str], made: Callable[[], Conductor] = Conductor) -> None:
    """Answer requests until there are no more.

    :param arguments: paths of magnum.conf and of the database, "" for one that is no file.
    :param made: makes the conductor, which answers.
    """
    configuration, database = arguments
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else is printed is no answer
    log.register_options(CONF)
    CONF([], project="magnum", default_config_files=[configuration])
    # As in a conductor: Magnum's functional tests let everything be logged, when they are imported.
    log.setup(CONF, "magnum")
    # The driver's options are known when it is loaded, and are read from the same file.
    [point.load() for point, _ in driver.Driver.load_entry_points()]
    if database:
        use_database(database)
    rpc.init(CONF)
    conductor = made()
    for line in sys.stdin:
        verb, given = json.loads(line)
        answers.write(json.dumps(getattr(conductor, verb)(**given)) + "\n")
        answers.flush()
    # Watches are in the middle of something, and nobody waits for them.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
