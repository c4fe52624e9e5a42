# SPDX-License-Identifier: Apache-2.0
"""Run the stages of a test run and print the total in one line.

A stage is a tox environment. Its output goes to ``.stages/<stage>.log``; the terminal gets one line
when it starts and one when it ends. Stages that test count their tests; one that checks counts as
one. A failed stage does not stop the others: what is wrong is said once, at the end.

The Go binaries of the sandbox are built beside the first stages, which need none of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
import contextlib
import dataclasses
import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / ".stages"
CLOSING = LOGS / "closing"
SANDBOX_PYTHON = ROOT / ".tox" / "sandbox" / "bin" / "python"
BUILD = "build"
TAIL = 40

#: Releases of Magnum, besides the newest one, on which the unit tests run, and the Python for each.
RELEASES = {20: "3.10", 21: "3.11", 22: "3.12"}

#: Programs that have no package: the variable that names a checkout of each, and where that is.
CHECKOUTS = {
    "ADDON_PROVIDER": "https://github.com/azimuth-cloud/cluster-api-addon-provider",
    "JANITOR": "https://github.com/azimuth-cloud/cluster-api-janitor-openstack",
}

#: Stands in the environment of everything that a stage starts, daemons too.
MARK = "K8S_CAPI_HELM_STAGE"

#: What stestr prints of a test that failed.
FAILED = re.compile(r"^\{\d+\} (\S.*?) \[[\d.]+s\] \.\.\. FAILED$", re.M)
#: What stestr prints at the end of each run, once per run.
TOTAL = re.compile(r"^ - (Passed|Failed|Skipped|Expected Fail|Unexpected Success): (\d+)$", re.M)
#: What a stage says whose tests cannot be run here (tools/with_database.py).
NOT_TESTED = re.compile(r"^(Not tested .*)$", re.M)


@dataclasses.dataclass(frozen=True)
class Stage:
    """One part of a run.

    ``minutes`` is its longest time: one that takes longer is stopped and has failed. ``counts``
    says that stestr runs in it; ``binaries`` that it needs the built binaries of the sandbox;
    ``live`` that its lines are worth seeing while it runs; ``verdict`` that it is there to check
    something, so that its run ends with a sum; ``may_skip`` that all of its tests are skipped, and
    say why, where a program that they need cannot be had; ``notest`` that its environment is only
    installed.
    """

    name: str
    env: str
    minutes: int
    counts: bool = False
    binaries: bool = False
    sandbox: bool = False
    live: bool = False
    verdict: bool = True
    may_skip: bool = False
    notest: bool = False

    def command(self) -> list[str]:
        """How the stage is run by hand, too."""
        return ["tox", "-q", "run", "-e", self.env, *(["--notest"] if self.notest else [])]


@dataclasses.dataclass(frozen=True)
class Tally:
    """Tests or checks by their outcome."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        )

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


STAGES = {
    stage.name: stage
    for stage in (
        Stage("pep8", "pep8", 10),
        Stage("mypy", "mypy", 10),
        Stage("docs", "docs", 10),
        Stage("releasenotes", "releasenotes", 10),
        Stage("packaging", "packaging", 15, counts=True),
        Stage("recipes", "recipes", 25, counts=True),
        Stage("unit", "py3", 40, counts=True),
        *(Stage(f"magnum-{n}", f"magnum-{n}-core", 15, counts=True) for n in RELEASES),
        # The environments with which the sandbox runs other releases of Magnum.
        *(
            Stage(f"magnum-{n}-env", f"magnum-{n}", 15, notest=True, verdict=False)
            for n in RELEASES
        ),
        Stage("predecessor-20-env", "predecessor-20", 15, notest=True, verdict=False),
        Stage("beside", "beside", 15, counts=True),
        Stage("releases", ",".join(f"magnum-{n}" for n in RELEASES), 60, counts=True),
        Stage("crashes", "crashes", 60, live=True),
        Stage("hostile", "hostile", 120, live=True),
        Stage("mariadb-core", "mariadb-core", 15, counts=True, sandbox=True, may_skip=True),
        Stage("mariadb", "mariadb", 90, counts=True, sandbox=True, live=True, may_skip=True),
        Stage("costs", "costs", 20, live=True),
        Stage("regions", "regions", 20, counts=True, sandbox=True, live=True),
        Stage("sandbox", "sandbox-tests", 20, counts=True, binaries=True, sandbox=True),
        Stage("charts", "charts", 20, counts=True, binaries=True, sandbox=True),
        Stage("addons", "addons", 20, counts=True, binaries=True, sandbox=True),
        Stage("metrics", "metrics", 60, counts=True, sandbox=True, live=True),
        Stage("envtest", "envtest", 20, counts=True, binaries=True, sandbox=True),
        Stage(
            "functional-core",
            "functional-core",
            30,
            counts=True,
            binaries=True,
            sandbox=True,
            live=True,
        ),
        Stage("adoption", "adoption", 30, counts=True, binaries=True, sandbox=True, live=True),
        *(
            Stage(name, name, 60, binaries=True, sandbox=True, live=True)
            for name in ("kills", "kills-20", "kills-22", "kills-versions")
        ),
        Stage("sandbox-live", "sandbox-live", 30, counts=True, binaries=True, sandbox=True),
        Stage("functional", "functional", 120, counts=True, binaries=True, sandbox=True, live=True),
        *(
            Stage(
                f"functional-core-{n}",
                f"functional-core-{n}",
                45,
                counts=True,
                binaries=True,
                sandbox=True,
                live=True,
            )
            for n in RELEASES
        ),
        *(
            Stage(name, name, 60, counts=True, binaries=True, sandbox=True, live=True)
            for name in (
                *("functional-core-capi", "clusterctl", "functional-management"),
                *("functional-restore", "functional-capi-upgrade", "functional-tenant"),
                "cloud-programs",
            )
        ),
        *(
            Stage(
                f"functional-faults-{n}",
                f"functional-faults-{n}",
                90,
                counts=True,
                binaries=True,
                sandbox=True,
                live=True,
            )
            for n in (20, 22)
        ),
        *(
            Stage(name, name, 45, counts=True, binaries=True, sandbox=True, live=True)
            for name in ("magnum-upgrade", "magnum-adoption")
        ),
        *(
            Stage(name, name, 60, counts=True, binaries=True, sandbox=True, live=True)
            for name in ("fleet", "kubeadm", "helm-releases", "storms", "storms-20", "storms-22")
        ),
        Stage(
            "chart-packages",
            "chart-packages",
            5,
            binaries=True,
            sandbox=True,
            live=True,
            verdict=False,
        ),
        Stage("bench-quick", "bench-quick", 30, binaries=True, sandbox=True, live=True),
        Stage("demo", "demo", 45, binaries=True, sandbox=True, live=True, verdict=False),
    )
}
TEST = (
    *("pep8", "mypy", "docs", "releasenotes", "packaging", "unit"),
    *(f"magnum-{n}" for n in RELEASES),
    "mariadb-core",
    *("sandbox", "charts", "envtest", "functional-core"),
)


def tally(log: str, returncode: int, counts: bool, may_skip: bool = False) -> Tally:
    """What a stage's output and exit status come to.

    A stage that fails without a failed test (it could not start, say) is a failure all the same,
    and so is one that should have run tests and ran none; skipped ones are none unless it may skip.
    """
    if not counts:
        return Tally(failed=1) if returncode else Tally(passed=1)
    numbers = {"Passed": 0, "Failed": 0, "Skipped": 0, "Expected Fail": 0, "Unexpected Success": 0}
    for outcome, number in TOTAL.findall(log):
        numbers[outcome] += int(number)
    passed = numbers["Passed"] + numbers["Expected Fail"]
    failed = numbers["Failed"] + numbers["Unexpected Success"]
    ran = passed or (may_skip and numbers["Skipped"])
    if not failed and (returncode or not ran):
        failed = 1
    return Tally(passed, failed, numbers["Skipped"])


class Run:
    """One process of a stage: its log, its end, and no child left when it is stopped."""

    def __init__(self, name: str, command: list[str], minutes: int, *, live: bool) -> None:
        self.log = LOGS / f"{name}.log"
        self.begin = time.monotonic()
        self.seconds = 0.0
        self._overdue = False
        self._name, self._live = name, live
        self._mark = f"{name}-{os.getpid()}-{time.monotonic_ns()}"
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**environment(os.environ), MARK: self._mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._timer = threading.Timer(minutes * 60, self._expire)
        self._timer.daemon = True
        self._timer.start()
        self._copier = threading.Thread(target=self._copy, daemon=True)
        self._copier.start()

    def _copy(self) -> None:
        assert self._process.stdout is not None
        with self.log.open("wb") as log:
            for line in self._process.stdout:
                log.write(line)
                log.flush()
                if self._live:
                    # What runs beside other stages says whose line it is.
                    mark = f"  {BUILD}: " if self._name == BUILD else ""
                    print(mark + line.decode(errors="replace").rstrip(), flush=True)
        self.seconds = time.monotonic() - self.begin

    def _expire(self) -> None:
        """Stop it; what has ended may be waited for long afterwards, as the build is."""
        if not self.running():
            return
        self._overdue = True
        self.stop()

    def stop(self) -> None:
        """End the stage and everything that it started, in whatever session that is."""
        for number, patience in ((signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0)):
            for pid in marked(f"{MARK}={self._mark}"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
        # One that was just being started has been missed.
        for pid in marked(f"{MARK}={self._mark}"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait(self) -> int:
        """The exit status, once the output is complete; not 0 if it took too long."""
        status = self._process.wait()
        self._copier.join(10.0)
        self._timer.cancel()
        # A child that holds the output keeps the copier from its end.
        self.seconds = self.seconds or time.monotonic() - self.begin
        if self._overdue:
            self._timer.join(60.0)  # it is still stopping what the stage has started
            with self.log.open("a") as log:
                log.write(
                    f"\nStopped: it took longer than {self._timer.interval / 60:.0f} minutes.\n"
                )
        return 124 if self._overdue else status

    def running(self) -> bool:
        return self._process.poll() is None


def marked(mark: str) -> list[int]:
    """Processes whose environment has the mark, "NAME=value"."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it ended, or belongs to another user
                if mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The environment of a stage: no colours or questions, and a nested tox finds this one."""
    found = dict(ours)
    found["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{found.get('PATH', os.defpath)}"
    found.update(NO_COLOR="1", TERM="dumb", PIP_NO_INPUT="1", PYTHONUNBUFFERED="1")
    found.pop("TOX_ENV_DIR", None)
    for release, version in RELEASES.items():
        if python := interpreter(version, ours):
            found.setdefault(f"MAGNUM_{release}_PYTHON", python)
    return found


def interpreter(version: str, ours: Mapping[str, str]) -> str | None:
    """The path of a version of Python: one of pyenv's, or in ``PATH``; None without one.

    What pyenv has put into ``PATH`` under its name runs only where pyenv is told to.
    """
    root = ours.get("PYENV_ROOT")
    found = Path(root).glob(f"versions/{version}.*/bin/python{version}") if root else ()
    paths = [str(path) for path in sorted(found, reverse=True)]
    if in_path := shutil.which(f"python{version}", path=ours.get("PATH")):
        paths.append(in_path)
    return next(filter(_runs, paths), None)


def lacking(ours: Mapping[str, str]) -> list[str]:
    """What is wrong with the checkouts that the environment names, a sentence each."""
    found = []
    for variable, address in CHECKOUTS.items():
        named = ours.get(variable, "")
        if not (Path(named) / "requirements.txt").is_file() or not named:
            value = f"{variable}={named}" if named else f"{variable}, which is not set,"
            found.append(f"{value} has to name a checkout of {address}")
    return found


def _runs(python: str) -> bool:
    """Whether an interpreter can be started."""
    try:
        subprocess.run([python, "-c", ""], capture_output=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def mebibytes(path: Path) -> int:
    """Disk space of a directory, hard links counted once, 0 if it is not there."""
    if not path.exists():
        return 0
    found = subprocess.run(
        ["du", "-sm", str(path)], capture_output=True, text=True, check=False, timeout=120
    )
    return int(found.stdout.split()[0]) if found.stdout else 0


class Runner:
    """A whole run: the stages in order, the build beside them, the sum."""

    def __init__(self, stages: Iterable[Stage]) -> None:
        self.stages = list(stages)
        self.sum = Tally()
        self.failures: list[tuple[str, Path]] = []
        self._current: set[Run] = set()
        self._build: Run | None = None
        self._built: int | None = None

    def run(self) -> int:
        """Run the stages; 0 when nothing failed."""
        LOGS.mkdir(exist_ok=True)
        begin = time.monotonic()
        try:
            if any(stage.sandbox for stage in self.stages):
                self._prepare()
            for stage in self.stages:
                self._stage(stage)
        except KeyboardInterrupt:
            print("\nInterrupted: stopping all stages.", flush=True)
            self.failures.append(("interrupted", LOGS))
            self.sum += Tally(failed=1)
        finally:
            for run in list(self._current):
                run.stop()
        self._report(time.monotonic() - begin)
        return 1 if self.sum.failed else 0

    def _prepare(self) -> None:
        """Install the sandbox's environment once; start building its binaries beside the rest."""
        env = Stage("sandbox-env", "sandbox", 20)
        status = self._do("sandbox-env", [*env.command(), "--notest"], 20, live=False)
        if status or not any(stage.binaries for stage in self.stages):
            self._built = status
            return
        if shutil.which("go") is None:
            print(
                "  There is no 'go' in PATH: binaries are taken from KUBEBUILDER_ASSETS, PATH or\n"
                "  the cache; what is not there cannot be built without Go 1.26 or newer.",
                flush=True,
            )
        print(f"{BUILD}: the binaries of the sandbox, in parallel with the next stages", flush=True)
        command = ["nice", "-n", "5", str(SANDBOX_PYTHON), "-m", "sandbox", "build"]
        if any(stage.name == "charts" for stage in self.stages):
            command.append("--charts")
        self._build = Run(BUILD, command, 45, live=True)
        self._current.add(self._build)

    def _binaries(self) -> int:
        """Wait for the build; its exit status."""
        if self._built is None and self._build is not None:
            if self._build.running():
                print(f"{BUILD}: waiting for it", flush=True)
            self._built = self._build.wait()
            self._current.discard(self._build)
            self._say(BUILD, self._build, self._built, "")
        return self._built or 0

    def _stage(self, stage: Stage) -> None:
        if stage.binaries and self._binaries():
            print(f"{stage.name}: not run, the sandbox cannot be built", flush=True)
            self.sum += Tally(failed=1)
            return
        self._do(stage.name, stage.command(), stage.minutes, live=stage.live, stage=stage)

    def _do(
        self, name: str, command: list[str], minutes: int, *, live: bool, stage: Stage | None = None
    ) -> int:
        print(f"{name}: {' '.join(command)}", flush=True)
        directory = ROOT / ".tox" / (stage.env if stage else "sandbox")
        before = mebibytes(directory)
        run = Run(name, command, minutes, live=live)
        self._current.add(run)
        status = run.wait()
        self._current.discard(run)
        counted = Tally()
        if stage:
            log = run.log.read_text(errors="replace")
            counted = tally(log, status, stage.counts, stage.may_skip)
            if stage.may_skip and not stage.live:
                print("\n".join(NOT_TESTED.findall(log)), flush=True)
            self.sum += counted
        installed = mebibytes(directory) - before
        facts = [str(counted)] if stage and stage.counts else []
        facts += [f"{installed} MiB installed"] if installed > 0 else []
        self._say(name, run, status or (1 if counted.failed else 0), ", ".join(facts))
        return status

    def _say(self, name: str, run: Run, status: int, facts: str) -> None:
        word = f"FAILED ({status})" if status else "ok"
        rest = f", {facts}" if facts else ""
        print(f"{name}: {word}, {run.seconds:.1f} s{rest}", flush=True)
        if status:
            self.failures.append((name, run.log))

    def _report(self, seconds: float) -> None:
        for name, log in self.failures:
            print(f"\n--- {name}: the end of {os.path.relpath(log, ROOT)}")
            if log.is_file():
                text = log.read_text(errors="replace")
                print("\n".join([*text.splitlines()[-TAIL:], *FAILED.findall(text)]))
        if self.failures:
            print(f"\nFailed: {', '.join(name for name, _ in self.failures)}")
        if any(stage.verdict for stage in self.stages):
            print(f"\n{len(self.stages)} stages in {seconds:.0f} s")
            CLOSING.write_text(f"{self.sum}\n")
            print(self.sum, flush=True)


def _end(*_: object) -> None:
    """A request to end, from whoever started this, is a Ctrl-C: no stage is left running."""
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="stages", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "stages",
        nargs="+",
        choices=["test", *STAGES],
        help="'test' stands for: " + " ".join(TEST),
        metavar="STAGE",
    )
    parser.add_argument(
        "--real",
        action="store_true",
        help="refuse to start without a checkout of each program that has no package: "
        + ", ".join(CHECKOUTS),
    )
    chosen = parser.parse_args(arguments)
    if chosen.real and (wrong := lacking(os.environ)):
        parser.error("; ".join(wrong))
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGHUP, _end)
    names: list[str] = []
    for name in chosen.stages:
        names += TEST if name == "test" else [name]
    return Runner(STAGES[name] for name in dict.fromkeys(names)).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
