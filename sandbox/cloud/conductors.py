# SPDX-License-Identifier: Apache-2.0
"""Magnum's conductors with RabbitMQ: whether they listen, their Helm runs, crashes."""

import collections
import contextlib
import os
import re
import signal

import psutil

from sandbox import processes
from sandbox.cloud import broker
from sandbox.cloud.conductor_layout import Layout
from sandbox.cloud.ini import Sections
from sandbox.state import SandboxError, State

_HELM = "magnum.drivers.k8s_capi_helm.helm.cli"
_HELM_RUN = re.compile(rf"{re.escape(_HELM)} \[[^]]*\] helm (\S+) (\S*)")
#: A line that oslo.log writes with a request and its user.
_REQUEST = re.compile(r"^\S+ \S+ (\d+) \S+ \S+ \[None req-\S+ [0-9a-f]{32} ", re.M)
#: A line with a request: until Magnum 22 a conductor logs no users.
_ANY_REQUEST = re.compile(r"^\S+ \S+ (\d+) \S+ \S+ \[None req-", re.M)


def configurations(layout: Layout) -> dict[str, Sections]:
    """What each process has of its own: a name, and that each run of helm is logged.

    The periodic tasks are those of each conductor's first process, as in Magnum.
    """
    from oslo_log import log

    levels = ",".join([*log.get_default_log_levels(), f"{_HELM}=DEBUG"])
    return {
        worker: {
            "DEFAULT": {
                "host": worker,
                "default_log_levels": levels,
                "periodic_enable": worker == name,
            }
        }
        for name in layout.names
        for worker in layout.workers_of(name)
    }


def helm_runs(state: State, release: str) -> collections.Counter[str]:
    """How often the conductors have started helm for a release, by its subcommand.

    Those that failed or were killed count too.
    """
    found: collections.Counter[str] = collections.Counter()
    for name in Layout.of(state).names:
        log = state.log(name).read_text(errors="replace")
        found.update(verb for verb, first in _HELM_RUN.findall(log) if first == release)
    return found


def answering(state: State) -> set[int]:
    """Pids of the processes that have logged something about a request of a tenant.

    Until Magnum 22 a conductor's first process, which forks the others, answers requests too.
    """
    found: set[int] = set()
    layout = Layout.of(state)
    line = _ANY_REQUEST if layout.runs_programs else _REQUEST
    for name in layout.names:
        log = state.log(name).read_text(errors="replace")
        found.update(int(pid) for pid in line.findall(log))
    return found


def threads(state: State, name: str) -> list[int]:
    """Native threads of each of a conductor's processes, the most first."""
    found = []
    for pid in _members(state, name):
        with contextlib.suppress(psutil.Error):  # it ended meanwhile
            found.append(psutil.Process(pid).num_threads())
    return sorted(found, reverse=True)


def listens(state: State, name: str) -> bool:
    """Whether all workers of a conductor are connected to RabbitMQ."""
    port = state.port(broker.NAME)
    # The processes that Magnum forks from a worker have its connection too.
    own = {end for pid in _members(state, name) for end in _ends(pid, port)}
    return len(own) >= Layout.of(state).workers


def kill(state: State, name: str) -> list[int]:
    """SIGKILL to a conductor and its workers at once, as when its container is killed.

    :returns: the pids that were killed.
    :raises SandboxError: no such conductor runs.
    """
    pids = _members(state, name) if name in Layout.of(state).names else []
    if not pids:
        raise SandboxError(f"no conductor {name} runs; `status` lists the running ones")
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def stop(state: State, name: str, timeout: float = 10.0) -> None:
    """End a conductor with all its workers; nothing happens if none runs."""
    for worker in Layout.of(state).workers_of(name):
        processes.stop(state, worker, timeout)


def _members(state: State, name: str) -> list[int]:
    workers = Layout.of(state).workers_of(name)
    return [pid for worker in workers for pid in processes.members(state, worker)]


def _ends(pid: int, port: int) -> list[int]:
    """Own ports of a process's connections to a port."""
    try:
        connections = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:  # it ended meanwhile
        return []
    return [
        one.laddr.port
        for one in connections
        if one.status == psutil.CONN_ESTABLISHED and one.raddr and one.raddr.port == port
    ]
