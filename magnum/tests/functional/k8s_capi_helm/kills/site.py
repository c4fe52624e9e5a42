# SPDX-License-Identifier: Apache-2.0
"""A Magnum with a project of its own, its clusters, and their conductors, which are killed."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import itertools
import multiprocessing
from multiprocessing.context import BaseContext
from pathlib import Path
import random
import sys
import threading
import time
from typing import Any
import uuid

from magnum.tests.functional.k8s_capi_helm.adoption.objects import ObjectStore
from magnum.tests.functional.k8s_capi_helm.adoption.setting import CLUSTER
from magnum.tests.functional.k8s_capi_helm.envtest import kubeconfig
from magnum.tests.functional.k8s_capi_helm.kills import process, project
from magnum.tests.functional.k8s_capi_helm.kills.desired import Wishes
from magnum.tests.functional.k8s_capi_helm.kills.tally import Tally
from magnum.tests.unit.drivers.k8s_capi_helm import magnum_release

#: Seconds after which a conductor that is left alone has to be through.
PATIENCE = 240.0
#: The verb of Magnum's periodic jobs.
JOBS = "look_after"
#: Minutes of Magnum's clock from one round of periodic jobs to the next, and at most.
_ROUND, _LATEST = 4.0, 56.0
#: Rounds until a cluster at rest is known to be in want of something.
_SLOW = 4
#: Seconds between two rounds.
_PAUSE = 0.2
#: Seconds that a request and what follows it take, until it is known better.
_USUAL = 8.0
#: How often successors of a killed conductor are killed, too, at most.
_IN_A_ROW = 3
#: Characters of a conductor's log that a failure shows.
_SAID = 3000
#: What of a namespace neither helm nor the driver's own deletion takes away.
PASSED = {"RoleBinding", "ServiceAccount"}
# A conductor is there in a moment if its modules have been imported before it is forked. The server
# that forks cannot be one whose sockets are eventlet's.
_SPAWNS, _FORKS = multiprocessing.get_context("spawn"), multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([f"{process.__package__}.conductor"])
Work = Iterator[tuple[str, dict[str, Any]]]


class Conductor:
    """A process that is there to be killed.

    :param version: of the driver, a name of ``next_version``; "" for this one.
    """

    def __init__(self, place: Path, version: str = "") -> None:
        # What is preloaded is this version of the driver.
        is_own = magnum_release.EVENTLET or version
        context: BaseContext = _SPAWNS if is_own else _FORKS
        self._requests, theirs = context.Pipe()
        self._process = context.Process(  # type: ignore[attr-defined]
            target=process.serve,
            args=(str(place), str(place / project.CONFIGURATION), version, theirs),
            daemon=True,
        )
        self._process.start()
        theirs.close()

    def work(self, work: Work, seconds: float, answered: list[str]) -> str:
        """Let it work; "" when it is through in time, else what it was about when it was killed.

        :param answered: takes the answers to requests, "" for each that was taken.
        :raises AssertionError: a periodic job has failed.
        """
        end = time.monotonic() + seconds
        for verb, arguments in work:
            self._requests.send((verb, arguments))
            if not self._requests.poll(max(0.0, end - time.monotonic())):
                self.kill()
                return verb
            error, _ = self._requests.recv()
            if verb != JOBS:
                answered.append(error)
            elif error:
                raise AssertionError(f"Magnum's periodic jobs have failed: {error}")
        return ""

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Let it do one thing, and answer."""
        self._requests.send((verb, arguments))
        if not self._requests.poll(PATIENCE):
            raise AssertionError(f"no answer to {verb}")
        error, answer = self._requests.recv()
        if error:
            raise AssertionError(f"{verb}: {error}")
        return answer

    def kill(self) -> None:
        """SIGKILL: no ``finally``, no ``except``."""
        self._process.kill()
        self._process.join(60)
        self._requests.close()


class Site:
    """A Magnum with a project of its own.

    :param versions: of the driver; each conductor has the next one of them.
    """

    def __init__(
        self, number: int, place: Path, tally: Tally, seed: str, versions: tuple[str, ...] = ("",)
    ) -> None:
        self.versions = itertools.cycle(versions)
        self.tally, self.place = tally, place
        self.lots = random.Random(f"{seed}-{number}")  # noqa: S311 - no secret
        self.prefix = f"kills-{uuid.uuid4().hex[:8]}"
        self.store = ObjectStore(kubeconfig(), f"{self.prefix}-p1")
        self.usual: dict[str, float] = {}
        self.wishes = Wishes(self.lots)
        self.certificates: set[str] = set()
        self.story: list[str] = []
        project.configure(
            place, kubeconfig_file=kubeconfig(), namespace_prefix=self.prefix, watch_staleness="0"
        )
        self.conductor = Conductor(place, next(self.versions))
        self.conductor.ask("make_database")
        for template in project.TEMPLATES:
            self.conductor.ask("template", **template)

    def close(self) -> None:
        self.conductor.kill()
        self.store.close()

    # Lives ----------------------------------------------------------------------------------------
    def live(self) -> None:
        """One life of a cluster after the other, until there were kills enough."""
        try:
            while not self.tally.is_enough():
                self.story = []
                self.one_life()
                self.tally.add(lives=1)
                sys.stdout.write(f"{self.tally}\n")
        except Exception as error:
            self.tally.failed.set()
            log = (self.place / project.LOG).read_text(errors="replace")[-_SAID:]
            raise AssertionError("\n".join([self.prefix, *self.story, repr(error), log])) from error

    def one_life(self) -> None:
        self.carry_out("create", masters=1, workers=1, **CLUSTER)
        for _ in range(self.lots.randint(3, 7)):
            row = self.row()
            if self.tally.is_enough() or not row or row["status"] == "CREATE_FAILED":
                break
            verb, arguments = self.wishes.draw(row)
            self.carry_out(verb, **arguments)
        while self.row():
            self.carry_out("delete")
        self.nothing_is_left()

    def is_done(self, verb: str, arguments: dict[str, Any]) -> bool:
        """Whether the rows say that it is so."""
        row = self.row()
        if verb in ("create", "delete"):
            return bool(row) == (verb == "create")
        group = row["groups"].get(arguments.get("name") or arguments.get("group"), {})
        if verb == "resize":
            return bool(group["node_count"] == arguments["count"])
        if verb == "drop_group":
            return not group
        if verb == "upgrade":
            return bool(row["cluster_template_id"] == arguments["template"])
        if verb == "change_group":
            return all(group[key] == value for key, value in arguments.items() if key != "name")
        return verb == "rotate" or group.get("status") == "CREATE_COMPLETE"

    def carry_out(self, verb: str, **arguments: Any) -> None:
        """Ask for something, kill who does it and some who follow; look what has become of it."""
        self.story.append(f"{verb} {arguments}")
        request, answered = [(verb, arguments)], list[str]()
        for _ in range(self.lots.randint(0, _IN_A_ROW)):
            seconds = self.lots.uniform(0, self.usual.get(verb, _USUAL))
            killed = self.conductor.work(self.rounds(request), seconds, answered)
            request = []
            if not killed:
                break
            self.story.append(f"killed after {seconds:.2f} s, in {killed}")
            self.tally.add(killed=killed)
            self.conductor = Conductor(self.place, next(self.versions))
        began = time.monotonic()
        if self.conductor.work(self.rounds(request), PATIENCE, answered):
            raise AssertionError("it does not come to rest")
        if request:
            self.usual[verb] = time.monotonic() - began
        self.is_true()
        done = self.is_done(verb, arguments)
        if any(answered) or (answered and not done):
            raise AssertionError(f"{answered}: {self.row()}")
        self.tally.add(request=f"{verb} {'done' if done else 'lost'}")

    def rounds(self, request: list[tuple[str, dict[str, Any]]]) -> Work:
        """A request, and then Magnum's periodic jobs until everything rests."""
        yield from request
        for number in itertools.count(1):
            yield JOBS, {"minutes": min(_LATEST, number * _ROUND)}
            if number >= _SLOW and self.conductor.ask("rests"):
                return
            threading.Event().wait(_PAUSE)

    # Looks ----------------------------------------------------------------------------------------
    def row(self) -> dict[str, Any]:
        """The cluster, an empty one when there is none."""
        found = self.conductor.ask("rows")
        return dict(found[0]) if found else {}

    def is_true(self) -> None:
        """Rows, release, objects and project agree, and nobody runs helm."""
        wrong = [*self.conductor.ask("wrong"), *self.helms()]
        if wrong:
            raise AssertionError("\n".join([*wrong, f"{self.row()}"]))

    def nothing_is_left(self) -> None:
        left, certificates = self.conductor.ask("left")
        there = [key for key in self.store.snapshot() if key[0] not in PASSED]
        if left or there:
            raise AssertionError(f"left behind: {left} {there}")
        # Magnum makes four, and keeps in mind which until the last of them is made.
        new = set(certificates) - self.certificates
        if new and not any("in create" in line for line in self.story):
            raise AssertionError(f"certificates are left: {new}")
        self.certificates |= new
        self.tally.add(left=len(new))

    def helms(self) -> Iterator[str]:
        """Processes of helm that change something of this Magnum's."""
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                arguments = entry.read_bytes().decode(errors="replace").split("\0")
                if f"{self.prefix}-p1" in arguments:
                    yield f"helm {arguments[1:3]} still runs"
