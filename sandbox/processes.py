# SPDX-License-Identifier: Apache-2.0
"""Start, find and stop the processes of a sandbox, also after a crash.

A process is known by its pid *and* the kernel's start time of that pid, so that a number the
kernel has given to somebody else meanwhile is never signalled.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import contextlib
import ctypes
import dataclasses
import json
import os
from pathlib import Path
import shutil
import signal
import subprocess
import threading
import time

from sandbox.state import SandboxError, State

# In the environment of every process that a sandbox starts: finds those whose pid file was never
# written because the starter was killed in between.
OWNER_VARIABLE = "K8S_CAPI_HELM_SANDBOX"
LOG_LINES_SHOWN = 15
_PR_SET_PDEATHSIG = 1  # prctl(2)

# Kept because Python warns of a child object that goes away before its process does.
_children: list[subprocess.Popen[bytes]] = []
_refusing = threading.Event()


@dataclasses.dataclass(frozen=True)
class Recorded:
    """What a pid file says.

    :ivar started: kernel start time of the process, in clock ticks since boot.
    :ivar order: nanoseconds since the epoch at which it was recorded; gives the order of start.
    """

    name: str
    pid: int
    started: int
    order: int

    @property
    def running(self) -> bool:
        """Whether this very process is alive and not a zombie."""
        return _start_time(self.pid) == self.started


def start(
    state: State,
    name: str,
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    ready: Callable[[], bool] | None = None,
    timeout: float = 60.0,
) -> None:
    """Start ``argv`` in a session of its own, unless it runs already, and wait until it is ready.

    :param env: the whole environment; this process's own when None.
    :param ready: asked about ten times a second, also when the process ran already.
    :param timeout: seconds that readiness may take.
    :raises SandboxError: the program is not there, it ended, or it is not ready in time; the
        text ends with the last lines of its log. A process that is late is ended.
    """
    check_not_refused()
    if not alive(state, name):
        _spawn(state, name, argv, os.environ if env is None else env, cwd)
    if ready is not None:
        wait_ready(state, name, ready, timeout)


def _spawn(
    state: State, name: str, argv: Sequence[str], env: Mapping[str, str], cwd: Path | None
) -> subprocess.Popen[bytes]:
    with state.log(name).open("ab") as log:
        try:
            child = subprocess.Popen(
                list(argv),
                env={**env, OWNER_VARIABLE: str(state.root)},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxError(
                f"{name} cannot be started: {argv[0]}: {error.strerror}; "
                "run `python -m sandbox up` to build it"
            ) from error
    record(state, name, child.pid)
    _children.append(child)
    return child


def wait_ready(state: State, name: str, ready: Callable[[], bool], timeout: float) -> None:
    """Wait until ``ready()`` is true.

    :raises SandboxError: the process ended, or ``timeout`` seconds passed (it is then stopped).
    """
    deadline = time.monotonic() + timeout
    while not ready():
        check_not_refused()
        if not alive(state, name):
            raise SandboxError(f"{name} exited while starting.\n{log_tail(state, name)}")
        if time.monotonic() > deadline:
            tail = log_tail(state, name)
            stop(state, name)
            raise SandboxError(f"{name} is not ready after {timeout:.0f} s.\n{tail}")
        time.sleep(0.1)


def run(
    state: State, name: str, argv: Sequence[str], *, env: Mapping[str, str], timeout: float
) -> None:
    """Run a program that ends by itself, and wait for its end.

    Like any process of the sandbox it is found and ended when its starter was killed.

    :raises SandboxError: it did not end well, or not in time; the text ends with its log.
    """
    check_not_refused()
    stop(state, name)  # one of a killed starter
    child = _spawn(state, name, argv, env, None)
    deadline = time.monotonic() + timeout
    try:
        while child.poll() is None:
            check_not_refused()
            if time.monotonic() > deadline:
                raise SandboxError(
                    f"{name} did not exit within {timeout:.0f} s.\n{log_tail(state, name)}"
                )
            time.sleep(0.1)
    finally:
        stop(state, name, timeout=1.0)
    if child.returncode != 0:
        raise SandboxError(
            f"{name} exited with status {child.returncode}.\n{log_tail(state, name)}"
        )


def refuse_starts() -> None:
    """From now on every start and every wait for one in this process raises: it is to end.

    For a thread that ends the sandbox while others still start it.
    """
    _refusing.set()


def allow_starts() -> None:
    """The opposite of :func:`refuse_starts`."""
    _refusing.clear()


def check_not_refused() -> None:
    """For loops that wait for something.

    :raises SandboxError: starts are refused.
    """
    if _refusing.is_set():
        raise SandboxError("the start is cancelled, because another process failed or was stopped")


def record(state: State, name: str, pid: int) -> None:
    """Write the pid file of a process that runs now (and leads its own session)."""
    started = _start_time(pid) or 0
    entry = Recorded(name, pid, started, time.time_ns())
    path = _pid_file(state, name)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(dataclasses.asdict(entry)))
    draft.replace(path)


def end_with_parent() -> None:
    """Let the kernel end this process, by SIGTERM, when the one that forked it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def alive(state: State, name: str) -> bool:
    """Whether the process recorded as ``name`` runs."""
    entry = recorded(state, name)
    return entry is not None and entry.running


def recorded(state: State, name: str) -> Recorded | None:
    """The pid file of ``name``, if there is one."""
    try:
        return Recorded(**json.loads(_pid_file(state, name).read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise SandboxError(
            f"{_pid_file(state, name)} is invalid ({error}); remove it and run `sandbox down`"
        ) from error


def all_recorded(state: State) -> list[Recorded]:
    """All pid files, in order of start, whether their processes run or not."""
    names = [path.stem for path in (state.root / "run").glob("*.pid")]
    entries = [entry for name in names if (entry := recorded(state, name))]
    return sorted(entries, key=lambda entry: entry.order)


def members(state: State, name: str) -> list[int]:
    """Pids of the process ``name`` and of everything in its session; none when it is not there."""
    entry = recorded(state, name)
    return [] if entry is None else _session_members(entry)


def stop(state: State, name: str, timeout: float = 10.0) -> None:
    """End the process ``name`` and everything in its session; nothing happens if there is none.

    :param timeout: seconds to end by itself before it is killed.
    """
    entry = recorded(state, name)
    if entry is None:
        return
    _end(lambda: _session_members(entry), timeout)
    _pid_file(state, name).unlink(missing_ok=True)


def stop_all(state: State, timeout: float = 10.0) -> None:
    """End everything of this sandbox, last started first, also what lost its pid file."""
    for entry in reversed(all_recorded(state)):
        stop(state, entry.name, timeout)
    _end(lambda: owned(state), timeout)


@contextlib.contextmanager
def throw_away(directory: Path) -> Iterator[State]:
    """A sandbox for the body of a ``with``: what an earlier run left there is no part of it."""
    stop_all(State(directory))
    shutil.rmtree(directory)
    state = State(directory)
    try:
        yield state
    finally:
        stop_all(state)


def owned(state: State) -> list[int]:
    """Pids of all processes that carry this sandbox's mark, except the caller."""
    mark = f"{OWNER_VARIABLE}={state.root}".encode()
    found = []
    for pid in _pids():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:  # ended meanwhile, or somebody else's
            continue
        if mark in environment.split(b"\0") and pid != os.getpid() and _start_time(pid):
            found.append(pid)
    return found


def memory_mib(pids: Iterable[int]) -> float:
    """Memory of processes in MiB: proportional set size, so shared pages count once."""
    kib = 0
    for pid in pids:
        with contextlib.suppress(OSError):  # it ended meanwhile
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            kib += sum(int(line.split()[1]) for line in rollup.splitlines() if line[:4] == "Pss:")
    return kib / 1024


def log_tail(state: State, name: str, lines: int = LOG_LINES_SHOWN) -> str:
    """The last lines of a process's log with the log's path above them."""
    path = state.log(name)
    text = path.read_text(errors="replace") if path.exists() else ""
    return "\n".join([f"{path}:", *text.splitlines()[-lines:]])


def _end(members: Callable[[], list[int]], timeout: float) -> None:
    """SIGTERM, wait, SIGKILL. SIGCONT too: a stopped process does not see SIGTERM."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        for pid in members():
            _signal(pid, sent)
            _signal(pid, signal.SIGCONT)
        deadline = time.monotonic() + timeout
        while members() and time.monotonic() < deadline:
            time.sleep(0.05)
        if not members():
            return


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _session_members(entry: Recorded) -> list[int]:
    leader = _start_time(entry.pid)
    if leader is not None and leader != entry.started:
        return []  # the number belongs to somebody else now; nothing of ours is left
    return [pid for pid in _pids() if _stat(pid)[:2] == ("alive", entry.pid)]


def _pids() -> list[int]:
    return [int(path) for path in os.listdir("/proc") if path.isdigit()]


def _start_time(pid: int) -> int | None:
    """Start time in clock ticks since boot; None when there is no such process or it is dead."""
    liveness, _, started = _stat(pid)
    return started if liveness == "alive" else None


def _stat(pid: int) -> tuple[str, int, int]:
    """Liveness, session and start time out of /proc/<pid>/stat (proc(5), fields 3, 6 and 22)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "gone", 0, 0
    fields = text.rpartition(")")[2].split()
    return "dead" if fields[0] in "ZX" else "alive", int(fields[3]), int(fields[19])


def _pid_file(state: State, name: str) -> Path:
    return state.path("run", f"{name}.pid")
