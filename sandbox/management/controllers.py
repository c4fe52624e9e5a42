# SPDX-License-Identifier: Apache-2.0
"""The controllers of the management cluster, real and simulated.

Real: Cluster API core, its kubeadm bootstrap and control plane providers, and CAPO, with their
webhooks. Played: the machines (sandbox/go/clusterapi/machines), the addon provider
(:mod:`sandbox.addons`) and the leader election (:mod:`sandbox.management.leader_leases`).
"""

from collections.abc import Container
from functools import partial
import os
from pathlib import Path
import sys
import time
import urllib.error
import urllib.request

import tenacity

from sandbox import processes
from sandbox.management import (
    addon_provider,
    binaries,
    chart_repository,
    server,
    tenant_api,
)
from sandbox.management.pki import Pki
from sandbox.management.releases import CAPO_MIGRATES, Providers
from sandbox.state import SandboxError, State

NAMESPACE = "capi-system"
CAPO = "capo"
NAMES = ("capi-core", "capi-bootstrap-kubeadm", "capi-controlplane-kubeadm", CAPO)
MACHINES = "machines"
ADDONS = "addon-provider"
ELECTIONS = "leader-election"
# ConfigMap in the namespace default that tells the machines what is wrong with them.
MACHINE_FAULTS = "machines-faults"
# The real addon provider waits 15 s; a sandbox is made for a short wait.
ADDON_RETRY = 5
#: Path below which each says whether it is ready.
HEALTH = {**dict.fromkeys(NAMES, "/readyz"), MACHINES: "/readyz", ADDONS: "/healthz"}
START_TIMEOUT = 60.0
# No object has this watch label: a manager that filters for it admits, and reconciles nothing.
NOTHING = "nothing-is-reconciled"
# Where all objects are new, so that there is no stored version to migrate.
SKIPPED_MIGRATION = ("StorageVersionMigration", "CleanupManagedFields")
# A proxy that the environment names has no way to our loopback.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
#: What the charts can ask of Cluster API and an operator has to switch on, and since when.
GATES = {"MachineTaintPropagation": (1, 12), "KubeadmBootstrapFormatIgnition": (1, 1)}
CHECKOUT = Path(__file__).parents[2]


def start_managers(state: State, place: Path, *, idle: Container[str] = ()) -> None:
    """Start the four managers, and wait until their webhooks answer.

    :param idle: those that only admit and convert objects.
    :raises SandboxError: one is not ready in time; the text ends with its log.
    """
    for name in NAMES:
        argv = manager(state, place, name, reconcile=name not in idle)
        processes.start(state, name, argv, env=_environment(state))
    deadline = time.monotonic() + START_TIMEOUT
    for name in NAMES:
        left = max(deadline - time.monotonic(), 1.0)
        processes.wait_ready(state, name, partial(healthy, state, name), left)


def manager(state: State, place: Path, name: str, *, reconcile: bool = True) -> list[str]:
    """Command line of a manager."""
    argv = [
        binaries.require(place, name),
        f"--webhook-port={state.port(f'{name}-webhook')}",
        f"--webhook-cert-dir={Pki(state).folder}",
        f"--health-addr=127.0.0.1:{state.port(f'{name}-health')}",
        f"--diagnostics-address=127.0.0.1:{state.port(f'{name}-metrics')}",
        "--insecure-diagnostics=true",
    ]
    providers = Providers.of(state)
    migrates = name != CAPO or providers.capo.minor >= CAPO_MIGRATES
    if migrates and not state.get("upgraded"):
        # A list for Cluster API, a repeated option for CAPO: repeated works with both.
        argv += [f"--skip-crd-migration-phases={phase}" for phase in SKIPPED_MIGRATION]
    if name != CAPO:
        gates = [gate for gate, since in GATES.items() if providers.capi.minor >= since]
        argv.append("--feature-gates=" + ",".join(f"{gate}=true" for gate in gates))
    if not reconcile:
        argv.append(f"--watch-filter={NOTHING}")
    return argv


def is_idle(state: State, name: str) -> bool:
    """Whether a manager runs that only admits and converts objects."""
    entry = processes.recorded(state, name)
    if entry is None or not entry.running:
        return False
    return f"--watch-filter={NOTHING}" in Path(f"/proc/{entry.pid}/cmdline").read_text().split("\0")


def start_players(state: State, place: Path) -> None:
    """Start what plays the machines, the addon provider and the leader election."""
    _start_addon_provider(state, place)  # the real one makes the CRDs that the machines watch
    health = f"127.0.0.1:{state.port(f'{MACHINES}-health')}"
    machines = [binaries.require(place, MACHINES), f"--health-addr={health}"]
    machines += tenant_api.arguments(state, place)
    processes.start(state, MACHINES, machines, env=_environment(state))
    elections = [sys.executable, "-m", "sandbox.management.leader_leases", f"--dir={state.root}"]
    processes.start(state, ELECTIONS, elections, env=_environment(state), cwd=CHECKOUT)
    for name in (MACHINES, ADDONS):
        processes.wait_ready(state, name, partial(healthy, state, name), START_TIMEOUT)


def _start_addon_provider(state: State, place: Path) -> None:
    """The simulated one, or the real one with the charts that it can have here."""
    port = state.port(f"{ADDONS}-health")
    argv = [sys.executable, "-m", "sandbox.addons", f"--port={port}", f"--retry={ADDON_RETRY}"]
    env = _environment(state)
    if addon_provider.chosen(state) == addon_provider.REAL:
        chart_repository.start(state, place)
        argv, own = addon_provider.prepare(state, place, f"127.0.0.1:{port}")
        env = {**env, **own}
    if addon_provider.chosen(state) != addon_provider.REAL:
        processes.start(state, ADDONS, argv, env=env, cwd=CHECKOUT)
        return
    # It ends if a kind that it has just created is not served yet: a kubelet would restart it.
    for attempt in tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(SandboxError),
        stop=tenacity.stop_after_attempt(3),
        wait=tenacity.wait_fixed(2.0),
        reraise=True,
    ):
        with attempt:
            processes.start(state, ADDONS, argv, env=env, cwd=CHECKOUT)
            processes.wait_ready(state, ADDONS, partial(healthy, state, ADDONS), START_TIMEOUT)


def healthy(state: State, name: str) -> bool:
    """Whether a controller says that it is ready."""
    address = f"http://127.0.0.1:{state.port(f'{name}-health')}{HEALTH[name]}"
    try:
        with _DIRECT.open(address, timeout=2.0) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _environment(state: State) -> dict[str, str]:
    return {
        **os.environ,
        **server.MEMORY,
        "KUBECONFIG": str(server.kubeconfig(state)),
        "POD_NAMESPACE": NAMESPACE,
    }
