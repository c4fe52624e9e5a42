# SPDX-License-Identifier: Apache-2.0
"""Clusters in progress whose objects change, as controllers change them, for benchmarks."""

from __future__ import annotations

import itertools
import random
import threading

from magnum.drivers.k8s_capi_helm.model import names
from tools.bench import fleet
from tools.bench.fleet import builders, Json, ManagementCluster

#: Numbers of clusters in progress are far from those of a fleet at rest.
_FIRST = 10**6
_ROW = ("template", "cluster", "groups")


class BusyFleet:
    """Clusters of one project, which all wait for machines.

    :ivar rows: what of each a conductor has to know.
    :ivar releases: of each, in the same order.
    """

    def __init__(self, management: ManagementCluster, number: int, project: str) -> None:
        one = fleet.one_cluster(in_progress=True)
        clusters = [fleet.copy(one, _FIRST + index, project) for index in range(number)]
        management.fill(clusters)
        self._admin = management.admin
        self._servers = [_server(cluster) for cluster in clusters]
        self.rows = [{key: cluster[key] for key in _ROW} for cluster in clusters]
        self.releases = [str(cluster["cluster"]["stack_id"]) for cluster in clusters]

    def change(self, index: int, mark: str) -> None:
        """Let a server of a cluster fail with a message, as the provider does."""
        server = self._servers[index]
        builders.say(server, "InstanceReady", "False", mark, reason="InstanceCreateFailed")
        metadata, status = server["metadata"], {"conditions": server["status"]["conditions"]}
        place = metadata["namespace"], metadata["name"]
        self._admin.patch(names.OPENSTACK_SERVER, *place, {"status": status})


class Changes:
    """Changes of random clusters of a fleet at a steady rate, until :meth:`end`."""

    def __init__(self, busy: BusyFleet, rate: float) -> None:
        self._busy = busy
        self._pause = 1 / rate
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.made = 0
        self._thread.start()

    def end(self) -> None:
        """Change nothing any more."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        for number in itertools.count():
            if self._ended.wait(self._pause):
                return
            index = random.randrange(len(self._busy.releases))  # noqa: S311
            self._busy.change(index, f"change {number} ")
            self.made += 1


def _server(cluster: Json) -> Json:
    """One of the servers of a cluster."""
    found: Json = next(
        one for one in cluster["things"] if one["kind"] == names.OPENSTACK_SERVER.name
    )
    return found
