# SPDX-License-Identifier: Apache-2.0
"""Faults of the management cluster and its simulated components."""

from collections.abc import Callable
import os
import re
import shutil
import signal
import sys
import time

from sandbox import processes
from sandbox.addons import rules
from sandbox.faults.fault import expression, Fault
from sandbox.management import binaries, controllers, gateway, lifecycle, server
from sandbox.management.api import Api
from sandbox.management.pki import write_private
from sandbox.management.releases import Providers
from sandbox.state import SandboxError, State

APISERVER = "kube-apiserver"
#: MATCH of the API server's fault: requests hang instead of being refused.
HANG = "hang"
#: The process on the driver's way to a degraded API server.
GATEWAY = "management-gateway"
#: Directory of another management cluster, below a sandbox's own.
OTHER = "other-management"
SILENCE_TIMEOUT = 20.0


def pattern_fault(name: str, summary: str, config_map: str, key: str) -> Fault:
    """A fault that a simulator reads from a ConfigMap in the namespace default.

    :param key: key of the ConfigMap; its value is a regular expression on names of objects.
    """
    return Fault(name, summary, on=_writer(config_map, key), off=_eraser(config_map, key))


def set_pattern(state: State, config_map: str, key: str, pattern: str | None) -> None:
    """Write or remove one key of a simulator's ConfigMap.

    :raises SandboxError: the management cluster cannot be reached.
    """
    api = Api(server.kubeconfig(state))
    identity = {"name": config_map, "namespace": "default"}
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": identity}
    found = api.get(f"/api/v1/namespaces/default/configmaps/{config_map}") or {}
    data = dict(found.get("data") or {})
    data.pop(key, None)
    if pattern is not None:
        data[key] = pattern
    api.apply({**document, "data": data})


def _writer(config_map: str, key: str) -> Callable[[State, str | None], str]:
    def on(state: State, match: str | None) -> str:
        pattern = expression(match)
        set_pattern(state, config_map, key, pattern)
        return f"{key} is on for every name that matches {pattern!r}"

    return on


def _eraser(config_map: str, key: str) -> Callable[[State], str]:
    def off(state: State) -> str:
        set_pattern(state, config_map, key, None)
        return f"{key} is off"

    return off


def stop_api(state: State, match: str | None) -> str:
    """End the API server, or let it hang: accept connections and answer nothing.

    :raises SandboxError: ``match`` is neither None nor ``hang``, or the server does not run.
    """
    if match not in (None, HANG):
        raise SandboxError(
            f"management-api-stopped: {match!r} is not {HANG!r}; use {HANG!r}, or omit it"
        )
    entry = processes.recorded(state, APISERVER)
    if entry is None or not entry.running:
        raise SandboxError(f"{APISERVER} does not run; `python -m sandbox up` starts it")
    if match == HANG:
        os.kill(entry.pid, signal.SIGSTOP)
        _wait_silent(Api(server.kubeconfig(state)))
        return "the API server of the management cluster answers no request"
    processes.stop(state, APISERVER)
    return "the API server of the management cluster is stopped"


def _wait_silent(api: Api) -> None:
    """Its threads stop one after the other, on a busy machine with some time between."""
    deadline = time.monotonic() + SILENCE_TIMEOUT
    while api.answers():
        if time.monotonic() > deadline:
            raise SandboxError(f"{APISERVER} still responds {SILENCE_TIMEOUT:.0f} s after SIGSTOP")


def start_api(state: State) -> str:
    """Let the API server answer again, whatever was done to it.

    What has ended because nobody answered is started again, as a kubelet does.

    :raises SandboxError: it does not come up in time.
    """
    entry = processes.recorded(state, APISERVER)
    if entry is not None and entry.running:
        os.kill(entry.pid, signal.SIGCONT)
    place = binaries.build(state)
    server.start(state, place)
    if processes.recorded(state, controllers.ADDONS) is not None:
        controllers.start_players(state, place)
    return "the API server of the management cluster answers"


def degrade_api(state: State, match: str | None) -> str:
    """Let the driver's requests wait or fail; nothing else of the management cluster notices.

    :param match: one of the gateway's modes; errors when None.
    :raises SandboxError: there is no such mode.
    """
    mode = match or gateway.ERRORS
    if mode not in gateway.MODES:
        raise SandboxError(
            f"management-api-degraded: choose one of {', '.join(gateway.MODES)}, not {match!r}"
        )
    processes.stop(state, GATEWAY)
    server.write_users(state)
    own, target = server.driver_kubeconfig(state), state.path("management", "gateway.kubeconfig")
    source = state.path("management", "direct.kubeconfig")
    write_private(source, own.read_bytes())
    target.unlink(missing_ok=True)
    argv = [sys.executable, "-m", gateway.__name__, str(source), str(target), mode]
    processes.start(state, GATEWAY, argv, ready=target.exists)
    write_private(own, target.read_bytes())
    return f"requests of the driver to the management cluster are answered: {mode}"


def mend_api(state: State) -> str:
    """Let the driver's kubeconfig name the API server itself again."""
    server.write_users(state)
    processes.stop(state, GATEWAY)
    return "requests of the driver go to the API server itself"


def stop_controllers(state: State, match: str | None) -> str:
    """End controllers, and their webhooks with them, as when their node is gone.

    :param match: a regular expression on their names; all of them when None.
    """
    names = _controllers(match)
    for name in names:
        processes.stop(state, name)
    return f"stopped, webhooks too: {', '.join(names)}"


def idle_controllers(state: State, match: str | None) -> str:
    """Let controllers admit objects and do nothing about them, as when each waits to lead.

    :param match: as of :func:`stop_controllers`.
    :raises SandboxError: one does not start again.
    """
    names, place = _controllers(match), binaries.build(state)
    for name in names:
        processes.stop(state, name)
    controllers.start_managers(state, place, idle=names)
    return f"admit objects and do nothing: {', '.join(names)}"


def start_controllers(state: State) -> str:
    """Let all controllers work again.

    :raises SandboxError: one does not start.
    """
    for name in controllers.NAMES:
        if controllers.is_idle(state, name):
            processes.stop(state, name)
    controllers.start_managers(state, binaries.build(state))
    return "all controllers work"


def other_cluster(state: State, match: str | None) -> str:
    """Let the driver's kubeconfig name another management cluster, on which nothing ever was.

    :raises SandboxError: that one does not come up in time.
    """
    other = State(state.path(OTHER, "x").parent)
    Providers.of(state).record(other)
    lifecycle.up_api(other, webhooks=False)
    write_private(server.driver_kubeconfig(state), server.driver_kubeconfig(other).read_bytes())
    return f"the driver's kubeconfig names the management cluster in {other.root}"


def own_cluster(state: State) -> str:
    """Let it name this sandbox's management cluster again, and end the other one."""
    server.write_users(state)
    end_other(state)
    return "the driver's kubeconfig names the management cluster of this sandbox"


def end_other(state: State) -> None:
    """End the other management cluster, if there is one, and forget it."""
    if (state.root / OTHER).is_dir():
        other = State(state.root / OTHER)
        lifecycle.down(other)
        processes.stop_all(other)
        shutil.rmtree(other.root)


def _controllers(match: str | None) -> list[str]:
    pattern = expression(match)
    found = [name for name in controllers.NAMES if re.search(pattern, name)]
    if not found:
        raise SandboxError(
            f"no controller matches {match!r}; there are {', '.join(controllers.NAMES)}"
        )
    return found


_MACHINES, _ADDONS = controllers.MACHINE_FAULTS, rules.FAULTS

#: All faults by name.
FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        pattern_fault("node-never-joins", "kubeadm never ends on machines", _MACHINES, "no-node"),
        pattern_fault("node-not-ready", "kubelet falls silent", _MACHINES, "not-ready"),
        pattern_fault("wrong-kubelet", "nodes report an old kubelet", _MACHINES, "wrong-kubelet"),
        pattern_fault("addon-fails", "Helm fails on addons", _ADDONS, "fail"),
        pattern_fault("addon-stuck", "Helm does not end on addons", _ADDONS, "stuck"),
        Fault(
            "management-api-stopped",
            f"the management cluster refuses connections, or with {HANG!r} does not respond",
            on=stop_api,
            off=start_api,
        ),
        Fault(
            "management-api-degraded",
            f"the driver's requests fail with {gateway.ERRORS}, or are {gateway.SLOW!r}",
            on=degrade_api,
            off=mend_api,
        ),
        Fault(
            "controllers-stopped",
            "controllers of Cluster API are stopped, and their webhooks do not respond",
            on=stop_controllers,
            off=start_controllers,
        ),
        Fault(
            "controllers-idle",
            "controllers of Cluster API admit objects and do not reconcile them",
            on=idle_controllers,
            off=start_controllers,
        ),
        Fault(
            "wrong-management-cluster",
            "the driver's kubeconfig is that of another, empty management cluster",
            on=other_cluster,
            off=own_cluster,
        ),
    )
}
