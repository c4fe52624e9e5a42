# SPDX-License-Identifier: Apache-2.0
"""A conductor that carries verbs out and says what they took: DRIVER MAGNUM.CONF DATABASE.

DRIVER is a module with a played OpenStack, as the tests of an adoption have; the conductor is
theirs. It runs in an environment where nothing of this project is installed, too; so Python has to
find that directory, and this one as ``tools``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
import cProfile
import gc
import importlib
from pathlib import Path
import resource
import subprocess
import sys
import time
from typing import Any

from oslo_utils import uuidutils

from magnum import objects
from magnum.conductor.handlers import cluster_conductor
from tools.bench import pass_conductor

#: The conductor of the tests of an adoption.
CONDUCTOR: Any = importlib.import_module("conductor")


class Counters:
    """Counts runs of Helm, and the processor time in which Magnum makes certificates."""

    def __init__(self) -> None:
        self.certificates = 0.0
        self._started = list[str]()
        self._note(subprocess.Popen)
        module = cluster_conductor.cert_manager
        name = "generate_certificates_to_cluster"
        setattr(module, name, self._timed(getattr(module, name)))

    @property
    def runs(self) -> int:
        """Runs of Helm until now."""
        return len(self._started)

    def _note(self, kind: Any) -> None:
        """Let a class of processes note those that are, or become, Helm."""
        begin = kind.__init__

        def noted(child: Any, command: Any, *arguments: Any, **named: Any) -> None:
            self._started += [one for one in map(str, command) if Path(one).name == "helm"]
            begin(child, command, *arguments, **named)

        kind.__init__ = noted

    def _timed(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            before = time.thread_time()
            try:
                return work(*arguments, **named)
            finally:
                self.certificates += time.thread_time() - before

        return timed


class Conductor(CONDUCTOR.Conductor):  # type: ignore[misc]
    """Requests about one cluster after another; what they took is between two looks at a clock."""

    def __init__(self, database: str) -> None:
        pass_conductor.use_database(database)
        super().__init__()
        self._counters = Counters()
        self._uuid = ""

    def clock(self) -> dict[str, float]:
        """What this process has taken until now, without its garbage."""
        gc.collect()
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {
            "time": time.time(),
            "driver": time.process_time(),
            "children": children.ru_utime + children.ru_stime,
            "runs": self._counters.runs,
            "certificates": self._counters.certificates,
        }

    def create_next(self, **fields: Any) -> None:
        """Create a cluster, which the requests that follow are about."""
        self._uuid = uuidutils.generate_uuid()
        self.create(masters=1, workers=1, uuid=self._uuid, **fields)

    def release(self) -> str:
        """Name of the release of the cluster."""
        return str(self._cluster().stack_id)

    def settle(self, **fields: Any) -> None:
        """Write its rows as they are when Cluster API is through, which is not played here."""
        cluster = self._cluster()
        for row in (*cluster.nodegroups, cluster):
            if row.status.endswith("_IN_PROGRESS"):
                row.status = row.status.replace("_IN_PROGRESS", "_COMPLETE")
                row.save()

    def add_groups(self, names: list[str], **fields: Any) -> list[str]:
        """Create nodegroups at once, a thread each as in Magnum's conductor; returns the errors."""
        with futures.ThreadPoolExecutor(len(names)) as pool:
            tasks = [pool.submit(self.add_group, name=name, **fields) for name in names]
        errors = (task.exception() for task in tasks)
        return [f"{type(one).__name__}: {one}" for one in errors if one]

    def profile(self, verb: str, **arguments: Any) -> str:
        """The functions in which a verb's thread spends its processor time, without its waits."""
        profiler = cProfile.Profile(time.thread_time)
        with profiler:
            getattr(self, verb)(**arguments)
        return pass_conductor.profile_text(profiler)

    def _cluster(self) -> Any:
        return objects.Cluster.get_by_uuid(self._user, self._uuid)


def main(arguments: list[str]) -> None:
    """Answer requests until there are no more."""
    driver, configuration, database = arguments
    played: Any = importlib.import_module(driver)
    CONDUCTOR.serve(configuration, played.play, lambda: Conductor(database))


if __name__ == "__main__":
    main(sys.argv[1:])
