# SPDX-License-Identifier: Apache-2.0
"""A conductor and its fleet, as one process: conductor.py DIRECTORY MINUTES CLUSTERS SEED.

Every now and then nobody asks for anything. When all of the fleet rests then, what the process
holds is printed, and in the end written down in the directory.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import json
import os
from pathlib import Path
import sys
import threading
import time
from typing import Any

from magnum.common import context as magnum_context
from magnum.drivers.k8s_capi_helm.kube.watch.informers import Informers, KINDS
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.drivers.k8s_capi_helm.reconcile.process import clients
from magnum.tests.functional.k8s_capi_helm.kills import cluster_api, conductor, project
from magnum.tests.functional.k8s_capi_helm.soak import holdings
from magnum.tests.functional.k8s_capi_helm.soak.fleet import Fleet
from magnum.tests.functional.k8s_capi_helm.soak.jobs import Jobs
from sandbox.cloud import sqlite

#: What is written down in the directory.
REPORT = "report.json"
#: Looks at what the process holds.
LOOKS = 6
#: The quota of the project.
_SERVER_GROUPS = 10**4
#: Seconds until the whole fleet rests at the latest, and between two questions for that.
_PATIENCE, _PAUSE = 600.0, 1.0


class Controllers(cluster_api.QuickClusters):
    """A management cluster whose controllers are through at once, for those who watch as well."""

    def snapshot(self, kind: names.Kind, keep: Any, label: str = "") -> Any:
        return super().snapshot(kind, lambda thing: keep(cluster_api.settled(kind, thing)), label)

    def changes(
        self, kind: names.Kind, since: str, seconds: int, label: str = ""
    ) -> Iterator[tuple[str, Json]]:
        for what, thing in super().changes(kind, since, seconds, label):
            yield what, thing if what == "BOOKMARK" else cluster_api.settled(kind, thing)


class Project(project.Project):
    """What is in a project, of which nobody knows after this process."""

    def read(self) -> dict[str, Any]:
        return {"groups": [], "addresses": [], "credentials": {}}

    def keep(self, **changed: Any) -> None:
        return


class Soak:
    """One soak; :attr:`report` is what came of it."""

    def __init__(self, place: Path, clusters: int, seed: str) -> None:
        sqlite.tune()
        conductor.configure(str(place / project.CONFIGURATION))
        self._begun = time.monotonic()
        self._cloud = project.Cloud(Project(place))
        # All clusters are one project's here.
        self._cloud.openstack.quota = _SERVER_GROUPS
        self._play()
        site = conductor.Conductor(self._cloud)
        site.make_database()
        for template in project.TEMPLATES:
            site.template(**template)
        self._fleet = Fleet(self._cloud, clusters, seed)
        self._jobs = Jobs(magnum_context.make_admin_context(all_tenants=True))
        self.report: Json = {"looks": [], "wrong": [], "left": []}

    def _play(self) -> None:
        """Put what is played in its place; what controllers make is not watched."""
        made = clients.build(conductor.CONF)
        kube = Controllers(conductor.CONF.capi_helm.kubeconfig_file)
        prefix = f"{conductor.CONF.capi_helm.namespace_prefix}-"
        watching = Informers(
            kube,
            staleness=conductor.CONF.capi_helm.watch_staleness,
            covers=lambda namespace: namespace.startswith(prefix),
            kinds=tuple(one for one in KINDS if one not in cluster_api.MADE),
        )
        ports = dataclasses.replace(made, kube=kube, informers=watching, cloud=self._cloud.seen_by)
        conductor.serve_with(ports)

    def run(self, minutes: float) -> None:
        """Make the fleet, change it, look, and delete it."""
        self._round(self._fleet.found)
        for _ in range(LOOKS):
            self._round(lambda: self._fleet.change(minutes * 60 / LOOKS))
            self.report["looks"].append(dataclasses.asdict(self._look("at rest")))
        self.report["wrong"] += self._fleet.wrong()
        self._round(self._fleet.delete)
        self._look("all deleted")
        self.report["left"] = [*self._cloud.credentials, *self._cloud.openstack.ids()]
        self.report["requests"] = dict(self._fleet.requests)

    def _round(self, work: Any) -> None:
        """Do something beside Magnum's periodic jobs, and go on until everything rests."""
        self._jobs.start()
        try:
            work()
            end = time.monotonic() + _PATIENCE
            while not (self._failed() or self._fleet.is_at_rest()):
                if time.monotonic() > end:
                    raise AssertionError("the fleet does not come to rest")
                threading.Event().wait(_PAUSE)
        finally:
            self._jobs.stop()
        if self._failed():
            raise AssertionError("\n".join(self._failed()))

    def _failed(self) -> list[str]:
        return [*self._fleet.failed, *self._jobs.failed]

    def _look(self, what: str) -> holdings.Holdings:
        found = holdings.look()
        minutes = (time.monotonic() - self._begun) / 60
        asked = self._fleet.requests.total()
        sys.stdout.write(
            f"{minutes:5.1f} min {what:<11} {self._fleet.clusters():3d} clusters "
            f"{asked:5d} requests {found}\n"
        )
        sys.stdout.flush()
        return found


def main(arguments: list[str]) -> int:
    place, minutes, clusters, seed = arguments
    soak = Soak(Path(place), int(clusters), seed)
    soak.run(float(minutes))
    (Path(place) / REPORT).write_text(json.dumps(soak.report))
    sys.stdout.flush()
    # Watches are in the middle of something, and nobody waits for them.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
