# SPDX-License-Identifier: Apache-2.0
"""Count the files, requests and renders of each verb and pass: ``make bench``, ``--rst``.

A cluster lives in the unit tests' world, from its creation to the end of its deletion, with watches
that have seen everything that happened before. For each verb and each pass on the way these are
counted, in the thread that carries it out: files of the driver's package with a function that is
called, rooms (top-level entries of the package) that they are in, requests to the management
cluster, reads of the Helm release (each of them lists the Secrets that Helm keeps), snapshots of
the Cluster API objects, parses of a cluster's labels, renders of all values, and runs of Helm, dry
ones too. Helm's own requests are not counted. Counts are the same on every machine.
"""

from __future__ import annotations

import argparse
import collections
from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import dataclasses
import functools
import importlib
import inspect
import logging
from pathlib import Path
import sys
import types
from typing import Any

from magnum.drivers import k8s_capi_helm
from magnum.drivers.k8s_capi_helm import helm_values
from magnum.drivers.k8s_capi_helm.kube.watch import snapshot
from magnum.drivers.k8s_capi_helm.labels import parser as labels_parser

#: The unit tests' world; not imported by name, because it is checked less strictly than tools are.
CASES: Any = importlib.import_module("magnum.tests.unit.drivers.k8s_capi_helm.driver_case")
WATCHES: Any = importlib.import_module(
    "magnum.tests.unit.drivers.k8s_capi_helm.test_status_task_with_watches"
)
PACKAGE = Path(k8s_capi_helm.__file__).parent
#: How Kubernetes calls what the management cluster in memory is asked.
_METHODS = {
    "get": "GET",
    "list": "LIST",
    "create": "POST",
    "replace": "PUT",
    "apply": "PATCH",
    "patch": "PATCH",
    "delete": "DELETE",
    "watch": "WATCH",
}
#: The image of the template that the upgrade leads to: name, id and version of Kubernetes.
_NEXT = ("ubuntu-kube-1.35", "image-2", "1.35.2")


@dataclasses.dataclass(frozen=True)
class Walk:
    """What one verb or one pass took.

    :ivar name: of the verb or the pass.
    :ivar files: of the package, relative to it.
    :ivar requests: number by kind and method.
    :ivar reads: how often the Helm release was read.
    :ivar snapshots: of all Cluster API objects of the cluster.
    :ivar parses: of a cluster's labels.
    :ivar renders: of all values.
    :ivar runs: of Helm.
    """

    name: str
    files: frozenset[str]
    requests: collections.Counter[tuple[str, str]]
    reads: int
    snapshots: int
    parses: int
    renders: int
    runs: int

    @property
    def rooms(self) -> frozenset[str]:
        """Top-level entries of the package that the files are in."""
        return frozenset(one.partition("/")[0].removesuffix(".py") for one in self.files)

    @property
    def others(self) -> int:
        """Requests that are neither about a Lease nor lists of Secrets."""
        return sum(
            number
            for (kind, method), number in self.requests.items()
            if kind != "Lease" and (kind, method) != ("Secret", "LIST")
        )

    def cells(self) -> tuple[str, ...]:
        """A row of the table, as :data:`TITLES` names its columns."""
        asked = self.requests
        lease = sum(number for (kind, _), number in asked.items() if kind == "Lease")
        gets, puts = asked["Lease", "GET"], asked["Lease", "PUT"]
        numbers = (
            len(self.files),
            len(self.rooms),
            gets,
            puts,
            lease - gets - puts,
            asked["Secret", "LIST"],
            self.others,
            self.reads,
            self.snapshots,
            self.parses,
            self.renders,
            self.runs,
        )
        return (self.name, *(str(number) for number in numbers))


TITLES = (
    "walk",
    "files",
    "rooms",
    "Lease GET",
    "Lease PUT",
    "Lease other",
    "Secret LIST",
    "other requests",
    "release reads",
    "snapshots",
    "label parses",
    "renders",
    "Helm runs",
)


class Counter:
    """Counts what the driver does in this thread, over the world of one test."""

    def __init__(self, case: Any) -> None:
        self._case = case
        self._calls: collections.Counter[types.CodeType] = collections.Counter()
        self._files: set[str] = set()
        self._inside = 0
        self._world = _file(CASES.DriverCase)
        #: In memory, and no part of the driver, whatever they call of it.
        self._ports = {_file(type(case.kube)), _file(type(case.helm))}
        helm = type(case.helm)
        self._counted = {
            name: tuple(_code(one) for one in functions)
            for name, functions in (
                ("reads", (helm.live, helm.deployed_release)),
                ("snapshots", (snapshot.take_snapshot,)),
                ("parses", (labels_parser._parse,)),
                ("renders", (helm_values.render,)),
                ("runs", (helm.apply, helm.uninstall, helm.check)),
            )
        }

    def walk(self, name: str, work: Callable[[], object]) -> Walk:
        """Do *work* and say what it took."""
        self._calls.clear()
        self._files.clear()
        asked = len(self._case.kube.calls)
        before = sys.getprofile()
        sys.setprofile(self._note)
        try:
            work()
        finally:
            sys.setprofile(before)
        requests = collections.Counter(
            (kind, _METHODS[verb])
            for verb, kind, _, _ in self._case.kube.calls[asked:]
            if verb in _METHODS
        )
        numbers = {
            name: sum(self._calls[code] for code in codes) for name, codes in self._counted.items()
        }
        return Walk(name, frozenset(self._files), requests, **numbers)

    def _note(self, frame: types.FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if code.co_filename in self._ports:
            if event == "call":
                self._inside += 1
                self._calls[code] += self._inside == 1
            elif event == "return":
                self._inside -= 1
            return
        if event != "call" or self._inside:
            return
        caller = frame.f_back
        if caller is not None and caller.f_code.co_filename == self._world:
            return
        place = _within(code.co_filename)
        if place:
            self._files.add(place)
            self._calls[code] += 1


def walks(lives: int = 2) -> list[Walk]:
    """Every verb and every pass of a cluster's life, in their order.

    :param lives: how often it is led. The last one is returned: what a process reads only once is
        read before that.
    """
    found: list[Walk] = []
    with _silence():
        for _ in range(lives):
            labels_parser._parse.cache_clear()
            with _world() as case:
                found = list(_life(case, Counter(case)))
    return found


def _life(case: Any, counter: Counter) -> Iterator[Walk]:
    def walk(name: str, work: Callable[[], object]) -> Walk:
        case.catch_up()
        return counter.walk(name, work)

    def settle() -> None:
        case.capi_converges()
        case.status_task(3)

    yield walk("create", lambda: case.create(masters=1, workers=1))
    yield walk("create: first status pass", case.status_task)
    yield walk("create: status pass that writes nothing", case.status_task)
    yield walk("create: status pass that waits", case.status_task)
    case.capi_converges()
    yield walk("create: status pass that finds all in place", case.status_task)
    yield walk("create: status pass that completes", case.status_task)
    yield walk("settled: status pass", lambda: _status_pass(case))
    yield walk("settled: first health pass", case.health_task)
    yield walk("settled: health pass that writes nothing", case.health_task)
    yield walk("settled: health pass", case.health_task)
    yield walk("resize 1 -> 2", lambda: case.resize(2))
    yield walk("resize: first status pass", case.status_task)
    case.status_task()
    yield walk("resize: status pass that waits", case.status_task)
    case.capi_converges()
    yield walk("resize: status pass that finds all in place", case.status_task)
    yield walk("resize: status pass that completes", case.status_task)
    yield walk("nodegroup create", lambda: case.add_group("more"))
    settle()
    yield walk("nodegroup delete", lambda: case.drop_group("more"))
    case.capi_converges()
    yield walk("nodegroup delete: status pass that finds all in place", case.status_task)
    yield walk("nodegroup delete: status pass that completes", case.status_task)
    template = _next_template(case)
    yield walk("upgrade", lambda: case.upgrade(template))
    yield walk("upgrade: first status pass", case.status_task)
    case.status_task()
    yield walk("upgrade: status pass that waits", case.status_task)
    case.capi_converges()
    yield walk("upgrade: status pass that acts", case.status_task)
    settle()
    _keep_until_the_end(case)
    yield walk("delete", case.delete)
    yield walk("delete: status pass that acts", case.status_task)
    yield walk("delete: status pass that waits", case.status_task)
    case.capi_deletes()
    yield walk("delete: status pass that ends", case.status_task)


def _status_pass(case: Any) -> None:
    """The status task, for a cluster that Magnum would not visit now."""
    job = CASES.periodic.ClusterUpdateJob(case.context, case.cluster())
    with contextlib.suppress(CASES.loopingcall.LoopingCallDone):
        job.update_status()


def _keep_until_the_end(case: Any) -> None:
    """Cluster API keeps its objects until it has done with them."""
    for one in list(case.kube.everything()):
        if one["apiVersion"].partition("/")[0].endswith("cluster.x-k8s.io"):
            one["metadata"]["finalizers"] = ["cluster.x-k8s.io"]
            case.kube.put(case.kube.kind_of(one), one)


def _next_template(case: Any) -> Any:
    name, image, version = _NEXT
    case.cloud.images[name] = (image, version)
    uuid = "21111111-2222-4333-8444-555555555555"
    return case._template(uuid=uuid, name="kube-2", image_id=name)


@contextlib.contextmanager
def _world() -> Iterator[Any]:
    case = type("Case", (WATCHES.WatchingWorld,), {"runTest": lambda self: None})("runTest")
    try:
        case.setUp()
        yield case
    finally:
        case.doCleanups()


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Nothing of the log: passes that wait say so there."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


@functools.cache
def _within(path: str) -> str:
    """The path of a file relative to the package, "" for one that is elsewhere."""
    place = Path(path)
    return place.relative_to(PACKAGE).as_posix() if place.is_relative_to(PACKAGE) else ""


def _file(thing: type) -> str:
    return inspect.getsourcefile(thing) or ""


def _code(function: Callable[..., object]) -> types.CodeType:
    code: types.CodeType = inspect.unwrap(function).__code__
    return code


def text(found: Sequence[Walk]) -> str:
    """A plain table, a row for each walk."""
    rows = [one.cells() for one in found]
    first = max(len(row[0]) for row in (TITLES, *rows))
    # Titles of numbers have a word in each of their two lines.
    heads = [title.partition(" ") for title in TITLES[1:]]
    widths = [max(len(above), len(below), 3) for above, _, below in heads]

    def line(head: str, cells: Iterable[str]) -> str:
        padded = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        return f"{head:{first}}  {'  '.join(padded)}"

    above = (one if rest else "" for one, _, rest in heads)
    below = (rest or one for one, _, rest in heads)
    lines = [line("", above).rstrip(), line(TITLES[0], below)]
    return "\n".join([*lines, *(line(row[0], row[1:]) for row in rows)])


def rst(found: Sequence[Walk]) -> str:
    """The same as a list-table of reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (TITLES, *(one.cells() for one in found)):
        lines += [f"   {'-' if number else '* -'} {cell}" for number, cell in enumerate(row)]
    indented = (one if one[3:4] != "-" else f"  {one}" for one in lines)
    return "\n".join(indented)


def requests(found: Sequence[Walk]) -> str:
    """The requests of each walk by kind and method, a line each."""
    lines = []
    for one in found:
        counted = (
            f"{kind} {method} {number}" for (kind, method), number in sorted(one.requests.items())
        )
        lines.append(f"{one.name}: {', '.join(counted) or 'none'}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.walks", description=__doc__)
    parser.add_argument("--rst", action="store_true", help="print it as reStructuredText")
    parser.add_argument("--requests", action="store_true", help="add requests by kind and method")
    chosen = parser.parse_args(arguments)
    found = walks()
    print((rst if chosen.rst else text)(found))
    if chosen.requests:
        print(f"\n{requests(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
