# SPDX-License-Identifier: Apache-2.0
"""Sixty clusters: what ``list`` costs, and a rollout in waves that is killed, stops and goes on.

The ground is that of the soak: real API server, real Helm, Magnum's handlers and jobs, played
controllers that are through at once. ``K8S_CAPI_HELM_FLEET`` is the number of clusters.
"""

from __future__ import annotations

from collections.abc import Callable
import json
import multiprocessing
import os
from pathlib import Path
import resource
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any
import unittest
import uuid

from magnum.tests.functional.k8s_capi_helm.adoption.objects import ObjectStore
from magnum.tests.functional.k8s_capi_helm.envtest import kubeconfig
from magnum.tests.functional.k8s_capi_helm.kills import project
from magnum.tests.functional.k8s_capi_helm.soak import rollout_conductor

#: At least 17: the waves up to the one that stops have sixteen.
COUNT = int(os.environ.get("K8S_CAPI_HELM_FLEET") or 60)
#: Requests of ``list`` to the management cluster, and queries of Magnum's database, for any fleet.
_REQUESTS, _QUERIES = 6, 4
#: Seconds for one request to a conductor.
_PATIENCE = 1800.0
#: Minutes of the clock from one step to the next; a request that died is repeated after two.
_STEP = 3.0
#: Until the rest is in progress no more: looks.
_ROUNDS = 200
#: Minutes; the upgrade of a cluster has less time than Magnum gives it.
_SOAK, _TIMEOUT = 10, 45
_WAVES = (1, 5, 10)
_OBJECTS = "import magnum.objects"
#: Nobody watches, and an API server on a busy machine has time.
_OPTIONS = {
    "watch_staleness": "0",
    "management_connect_timeout": "60",
    "management_read_timeout": "120",
    "management_breaker_failures": "0",
}
NEXT = {**project.TEMPLATES[1], "public": True}


def measured(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds that something takes, and those of the processor in the processes that it starts."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run()
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Host:
    """A host with a conductor, which is started again when it was killed."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.kills: list[str] = []
        self._start()

    def _start(self) -> None:
        self._requests, theirs = multiprocessing.get_context("spawn").Pipe()
        self._process = multiprocessing.get_context("spawn").Process(
            target=rollout_conductor.serve, args=(str(self._place), theirs), daemon=True
        )
        self._process.start()
        theirs.close()

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Let the conductor do one thing, and answer."""
        self._requests.send((verb, arguments))
        if not self._requests.poll(_PATIENCE):
            raise AssertionError(f"no answer to {verb}")
        error, answer = self._requests.recv()
        if error:
            log = (self._place / project.LOG).read_text(errors="replace")[-5000:]
            raise AssertionError(f"{verb}: {error}\n{log}")
        return answer

    def die(self, phase: str, **arguments: Any) -> None:
        """Let it run a command in which it kills itself, and start the next one.

        :param phase: of :mod:`rollout_conductor`.
        """
        self._requests.send(("command", {**arguments, "end": phase}))
        self._process.join(_PATIENCE)
        assert self._process.exitcode == -9, f"{phase}: {self._process.exitcode}"
        self._restart(phase)

    def kill(self, phase: str) -> None:
        """SIGKILL while nothing is asked of it, and start the next one."""
        self._process.kill()
        self._process.join(60)
        self._restart(phase)

    def _restart(self, phase: str) -> None:
        self.kills.append(phase)
        self._requests.close()
        self._start()

    def end(self) -> None:
        self._process.kill()
        self._process.join(60)


class TestFleet(unittest.TestCase):
    """One story; its figures are printed."""

    host: Host
    place: Path

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.place = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="fleet-")))
        prefix = f"fleet-{uuid.uuid4().hex[:8]}"
        store = ObjectStore(kubeconfig(), f"{prefix}-p1")
        cls.addClassCleanup(store.close)
        project.configure(
            cls.place, kubeconfig_file=kubeconfig(), namespace_prefix=prefix, **_OPTIONS
        )
        cls.host = Host(cls.place)
        cls.addClassCleanup(lambda: cls.host.end())
        cls.host.ask("make_database")
        for template in (project.TEMPLATES[0], NEXT):
            cls.host.ask("template", **template)
        began = time.monotonic()
        cls.host.ask("make", count=COUNT)
        while cls.host.ask("follow", minutes=0.0):
            threading.Event().wait(0.1)
        cls.say(f"{COUNT} clusters are complete after {time.monotonic() - began:.0f} s")

    def setUp(self) -> None:
        super().setUp()
        self.minutes = 0.0

    @staticmethod
    def say(text: str) -> None:
        sys.stdout.write(f"fleet: {text}\n")
        sys.stdout.flush()

    def command(self, *argv: str) -> Any:
        """What a command costs, and its rows."""
        arguments = [*argv, "-f", "json"]
        answer = self.host.ask("command", argv=arguments, minutes=self.minutes)
        self.assertNotEqual(3, answer["status"], answer["error"])
        return {**answer, "rows": json.loads(answer["out"])}

    def rollout(self, *argv: str) -> dict[str, Any]:
        """The row of a command about the rollout."""
        [row] = self.command("rollout", *argv)["rows"]
        return dict(row)

    def step(self) -> dict[str, Any]:
        """Time passes, Magnum's jobs run, and the rollout takes its steps."""
        self.minutes += _STEP
        self.host.ask("follow", minutes=self.minutes)
        return self.rollout("run", "next", "--once")

    def until(self, wave: int) -> None:
        """Until a wave is the next one, and nothing is in progress."""
        for _ in range(_ROUNDS):
            row = self.step()
            self.assertEqual("running", row["State"], row)
            if row["Wave"] == wave and not self.in_progress():
                return
        raise AssertionError(f"wave {wave} does not come: {row}")

    def in_progress(self) -> list[str]:
        found = self.host.ask("fleet")
        return [name for name, one in found.items() if one["status"].endswith("_IN_PROGRESS")]

    def test_a_fleet(self) -> None:
        self.listed()
        self.planned()
        self.killed_in_each_phase()
        self.stopped_at_the_first_that_fails()
        self.resumed_to_its_end()
        self.listed()

    def listed(self) -> None:
        """As many requests and queries as for one cluster."""
        answer = self.command("list")
        rows = answer["rows"]
        self.assertEqual((0, COUNT), (answer["status"], len(rows)), answer["error"])
        self.assertEqual({"HEALTHY"}, {row["Health"] for row in rows})
        self.say(
            f"list: {COUNT} clusters in {answer['seconds']:.2f} s, {answer['requests']} requests, "
            f"{answer['queries']} queries; {self.program_seconds()}"
        )
        self.assertLessEqual(answer["requests"], _REQUESTS)
        self.assertLessEqual(answer["queries"], _QUERIES)

    def program_seconds(self) -> str:
        """How long the console script takes for the same, beside the import of Magnum's objects."""
        self.list_by_program()  # Compiles its modules, as an installation does.
        seconds, work = measured(self.list_by_program)
        _, objects = measured(lambda: self.run_compiled(sys.executable, "-c", _OBJECTS))
        return (
            f"{seconds:.1f} s as a new process, {work:.1f} s of it work, where the import of "
            f"Magnum's objects alone is {objects:.1f} s"
        )

    def list_by_program(self) -> None:
        program = str(Path(sys.executable).with_name("k8s-capi-helm"))
        configuration = str(self.place / project.CONFIGURATION)
        out = self.run_compiled(program, "--config-file", configuration, "list", "-f", "json")
        self.assertEqual(COUNT, len(json.loads(out)))

    def run_compiled(self, *command: str) -> str:
        """The output of a program whose compiled modules are kept."""
        compiled = {
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(self.place / "compiled"),
        }
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            env={**os.environ, **compiled},
            text=True,
            timeout=_PATIENCE,
        )
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def planned(self) -> None:
        waves = ",".join(map(str, _WAVES))
        answer = self.command(
            *("rollout", "start", "next", "--template", NEXT["uuid"], "--waves", waves),
            *("--budget", "8", "--soak", str(_SOAK), "--timeout", str(_TIMEOUT)),
        )
        rows = answer["rows"]
        self.assertEqual((0, COUNT), (answer["status"], len(rows)), answer["error"])
        self.say(
            f"rollout start: {answer['seconds']:.1f} s, {answer['requests']} requests, "
            f"{answer['queries']} queries, {rows[-1]['Wave']} waves"
        )

    def killed_in_each_phase(self) -> None:
        """Before a request, after it, while Helm runs, while machines roll, between waves."""
        run = ["rollout", "run", "next", "--once"]
        self.host.die(rollout_conductor.RECORDED, argv=run, minutes=self.minutes)
        self.assertEqual([], self.upgraded(), "recorded and not requested")
        row = self.rollout("run", "next", "--once")
        self.assertEqual((0, []), (row["Done"], self.upgraded()), "it may be on its way")
        self.until(wave=2)
        self.assertEqual(["c00"], self.upgraded())
        self.host.kill("soak")
        self.minutes += _SOAK
        self.host.die(rollout_conductor.REQUESTED, argv=run, minutes=self.minutes)
        self.host.die(rollout_conductor.HELM, argv=run, minutes=self.minutes)
        self.rollout("run", "next", "--once")
        self.host.ask("follow", minutes=self.minutes)
        self.host.kill("rolling")
        self.until(wave=3)
        self.assertEqual([f"c{number:02}" for number in range(6)], self.upgraded())
        self.say(f"rollout: a conductor was killed in each phase: {', '.join(self.host.kills)}")

    def stopped_at_the_first_that_fails(self) -> None:
        """The second of wave three; the rest of the wave that was requested goes on, no other."""
        before = self.host.ask("fleet")
        (self.place / rollout_conductor.BROKEN).write_text(before["c07"]["release"])
        for _ in range(_ROUNDS):
            row = self.step()
            if row["State"] != "running":
                break
        self.assertEqual("stopped", row["State"])
        self.assertIn("Cluster 'c07' has failed: UPDATE_IN_PROGRESS", row["Reason"])
        for _ in range(3):
            self.step()
        after = self.host.ask("fleet")
        touched = [name for name in after if after[name] != before[name]]
        wave = [f"c{number:02}" for number in range(6, 16)]
        self.assertEqual(wave, sorted(touched), "nothing of the waves behind it is touched")
        self.say(f"rollout: stopped at c07 of wave 3, {COUNT - 16} clusters are untouched")

    def resumed_to_its_end(self) -> None:
        (self.place / rollout_conductor.BROKEN).unlink()
        began, steps = time.monotonic(), 0
        while self.in_progress():
            self.host.ask("follow", minutes=self.minutes)
        self.rollout("resume", "next", "--retry")
        row: dict[str, Any] = {}
        while row.get("State") != "finished":
            row, steps = self.step(), steps + 1
            self.assertIn(row["State"], ("running", "finished"), row)
            self.assertLess(steps, _ROUNDS)
        self.assertEqual((COUNT, COUNT), (row["Done"], len(self.upgraded())))
        self.say(
            f"rollout: {COUNT} of {COUNT} done, the last {COUNT - 15} in {steps} steps and "
            f"{time.monotonic() - began:.0f} s"
        )

    def upgraded(self) -> list[str]:
        """The clusters with the new template that are complete, by name."""
        found = self.host.ask("fleet")
        return sorted(
            name
            for name, one in found.items()
            if one["template"] == NEXT["uuid"] and one["status"] == "UPDATE_COMPLETE"
        )
