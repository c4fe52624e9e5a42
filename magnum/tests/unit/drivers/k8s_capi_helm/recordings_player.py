# SPDX-License-Identifier: Apache-2.0
"""Recorded watch streams of real controllers, replayed as looks.

A recording is a gzipped file of JSON lines in order of arrival: objects (``type``, ``api``,
``kind``, ``name``, ``object``) and marks of whoever drove it (``mark``: "apply: ...", "applied",
"reached: ..."). ``make record`` makes the project's own; their "applied" says what was asked for
(``version``, ``wanted``). Where a recording has no addons a replay takes them for deployed, and
where it does not say what was asked for, that is what the specs ask for.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
import dataclasses
import datetime
import functools
import gzip
import json
import os
import pathlib
import unittest

from magnum.drivers.k8s_capi_helm import model
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.status.objects import generations
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.builders import Json

#: Directory with ``<version>/<scenario>.jsonl.gz``.
ENVIRONMENT = "K8S_CAPI_HELM_RECORDINGS"
OWN = pathlib.Path(__file__).parent / "recordings"

_SINGLE = {
    "Cluster": names.CLUSTER,
    "OpenStackCluster": names.OPENSTACK_CLUSTER,
    "KubeadmControlPlane": names.CONTROL_PLANE,
}
#: Marks of the recordings' driver after which what was asked for is on the management cluster.
_HANDED_OVER = ("applied", "scale", "unpause", "delete Machine")
_BEGINS = ("apply", "delete", "scale", "unpause", "Cluster.spec.paused")
_MASTERS = "default-master"


def own() -> list[pathlib.Path]:
    """The project's own recordings.

    :raises unittest.SkipTest: there are none in this checkout.
    """
    found = sorted(OWN.glob("**/*.jsonl.gz"))
    if not found:
        raise unittest.SkipTest("there are no recordings here; `make record` makes them")
    return found


def others() -> list[pathlib.Path]:
    """Those of the directory that the environment names."""
    extra = os.environ.get(ENVIRONMENT)
    return sorted(pathlib.Path(extra).glob("**/*.jsonl.gz")) if extra else []


@dataclasses.dataclass(frozen=True)
class Moment:
    """After one line of a recording.

    :ivar mark: what the recording's driver said, "" for a change of an object.
    :ivar begun: number of the moment at which what is wanted now was handed over; None while it is
        being handed over.
    :ivar wanted: machines by nodegroup and version, None where nobody says.
    :ivar written: generations when it was handed over.
    """

    at: datetime.datetime
    mark: str = ""
    begun: int | None = None
    wanted: dict[str, int] | None = None
    version: str = ""
    written: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Track:
    """One object from version to version; None when it is gone."""

    kind: str
    name: str
    numbers: list[int] = dataclasses.field(default_factory=list)
    versions: list[Json | None] = dataclasses.field(default_factory=list)

    def at(self, number: int) -> Json | None:
        """The object after a moment."""
        found = bisect.bisect_right(self.numbers, number) - 1
        return self.versions[found] if found >= 0 else None


class Film:
    """One cluster of a recording, as a watcher of one version of Cluster API knows it."""

    def __init__(self, path: pathlib.Path, core: str, cluster: str) -> None:
        self.title = f"{path.parent.name}/{path.name} {core} {cluster}"
        self.cluster = cluster
        self.moments: list[Moment] = []
        self._tracks: dict[tuple[str, str], Track] = {}
        self._has_addons = False
        #: Every group that ever was, so that one which is not wanted any more is being deleted.
        self._groups: set[str] = set()
        for line in lines(path):
            self._take(line, core)

    def _take(self, line: Json, core: str) -> None:
        before = self.moments[-1] if self.moments else Moment(moment(line))
        number, at, mark = len(self.moments), moment(line), str(line.get("mark", ""))
        if not mark and not self._note(line, core, number):
            return
        now = dataclasses.replace(before, at=at, mark=mark)
        if mark.startswith(_HANDED_OVER):
            self.moments.append(now)
            written = generations.applied_generations(self.observed(number))
            wanted, version = line.get("wanted"), line.get("version", "").removeprefix("v")
            now = dataclasses.replace(now, begun=number, written=written)
            if wanted is not None:
                now = dataclasses.replace(now, wanted=wanted, version=version)
            self.moments.pop()
        elif mark.startswith(_BEGINS):
            now = dataclasses.replace(now, begun=None)
        self.moments.append(now)

    def _note(self, line: Json, core: str, number: int) -> bool:
        """Take in an object; False if it is of another version, or of another cluster."""
        group = str(line["object"].get("apiVersion", "")).partition("/")[0]
        old = group in (names.CORE_GROUP, names.CONTROL_PLANE_GROUP)
        if (old and line["api"] != core) or not _is_of(line, self.cluster):
            return False
        key = (line["kind"], line["name"])
        track = self._tracks.setdefault(key, Track(*key))
        thing = None if line["type"] == "DELETED" else _renamed(line["object"])
        track.numbers.append(number)
        track.versions.append(thing)
        self._has_addons |= line["kind"] in ("HelmRelease", "Manifests")
        if thing and line["kind"] == "MachineDeployment":
            self._groups.add(thing["metadata"]["labels"][names.LABEL_NODE_GROUP])
        return True

    def tracks(self, number: int) -> list[tuple[str, str]]:
        """Kind and name of all objects that there were up to a moment."""
        return [key for key, one in self._tracks.items() if one.numbers[0] <= number]

    def observed(
        self,
        number: int,
        behind: Callable[[str, str], int | None] = lambda kind, name: 0,
        order: Callable[[list[Json]], list[Json]] = lambda listed: listed,
    ) -> model.Observed:
        """What a look at a moment shows.

        :param behind: how many moments the look is behind with an object; None: it is not shown.
        :param order: puts each list into another order.
        """
        shown: dict[str, list[Json]] = {}
        for (kind, name), track in self._tracks.items():
            late = behind(kind, name)
            thing = None if late is None else track.at(number - late)
            if thing is not None:
                shown.setdefault(kind, []).append(thing)

        def listed(*kinds: str) -> tuple[Json, ...]:
            return tuple(order([one for kind in kinds for one in shown.get(kind, ())]))

        single = {kind: (shown.get(kind) or [model.Missing.NOT_FOUND])[0] for kind in _SINGLE}
        addons = listed("HelmRelease", "Manifests")
        return model.Observed(
            at=self.moments[number].at if number < len(self.moments) else builders.NOW,
            cluster=single["Cluster"],
            infrastructure=single["OpenStackCluster"],
            control_plane=single["KubeadmControlPlane"],
            machine_deployments=listed("MachineDeployment"),
            machine_sets=listed("MachineSet"),
            machines=listed("Machine"),
            servers=listed("OpenStackServer"),
            addons=addons if self._has_addons else builders.core_addons(self.cluster),
            events=listed("Event"),
        )

    def state(self, number: int, word: str = "UPDATE_IN_PROGRESS") -> model.MagnumState:
        """What Magnum's rows ask for at a moment."""
        now = self.moments[number]
        begun = self.moments[now.begun].at if now.begun is not None else now.at
        return model.MagnumState(
            release=self.cluster,
            status=word,
            status_reason="timeout: not done" if word.endswith("_FAILED") else None,
            groups=self._rows(number, word),
            is_applied=now.begun is not None,
            kubernetes_version=now.version,
            started_at=begun,
            applied_generations=now.written,
        )

    def _rows(self, number: int, word: str) -> tuple[model.GroupState, ...]:
        wanted, version = self.moments[number].wanted, self.moments[number].version
        if wanted is None:
            return self._asked_by_specs(number, word)
        rows = [
            model.GroupState(name, word, count, name == _MASTERS, version=version)
            for name, count in wanted.items()
        ]
        leaving = sorted(self._groups - set(wanted)) if self.moments[number].begun else ()
        return (*rows, *(model.GroupState(name, "DELETE_IN_PROGRESS", 0) for name in leaving))

    def _asked_by_specs(self, number: int, word: str) -> tuple[model.GroupState, ...]:
        rows = []
        for (kind, _), track in self._tracks.items():
            thing = track.at(number)
            if thing is None:
                continue
            if kind == "KubeadmControlPlane":
                rows.insert(0, model.GroupState(_MASTERS, word, thing["spec"]["replicas"], True))
            if kind == "MachineDeployment" and not thing["metadata"].get("deletionTimestamp"):
                name = thing["metadata"]["labels"][names.LABEL_NODE_GROUP]
                rows.append(model.GroupState(name, word, thing["spec"]["replicas"]))
        return tuple(rows)


@functools.cache
def films(path: pathlib.Path, core: str) -> tuple[Film, ...]:
    """A film of each cluster of a recording; none where Cluster API does not serve the version."""
    found = {
        line["name"]
        for line in lines(path)
        if line.get("kind") == "Cluster" and line["api"] == core
    }
    return tuple(Film(path, core, cluster) for cluster in sorted(found))


def _is_of(line: Json, cluster: str) -> bool:
    """Whether a look at the cluster would find the object."""
    thing = line["object"]
    if line["kind"] == "Event":
        return str(thing["involvedObject"].get("name", "")).startswith(cluster)
    labels = thing["metadata"].get("labels") or {}
    marks = (labels.get(names.LABEL_CLUSTER_NAME), labels.get(names.LABEL_CHART_CLUSTER))
    return cluster in marks or line["name"] == cluster


def _renamed(thing: Json) -> Json:
    """Some recordings were made with labels of an example domain."""
    labels = thing.get("metadata", {}).get("labels")
    if labels:
        thing["metadata"]["labels"] = {
            key.replace("capi.example.org/", f"{names.CHART_PREFIX}/"): value
            for key, value in labels.items()
        }
    return thing


def lines(path: pathlib.Path) -> Iterator[Json]:
    """All lines of a recording."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def moment(line: Json) -> datetime.datetime:
    """When a line arrived, aware."""
    parsed = datetime.datetime.fromisoformat(line["ts"])
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=datetime.timezone.utc)
