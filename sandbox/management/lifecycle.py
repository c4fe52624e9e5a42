# SPDX-License-Identifier: Apache-2.0
"""Start, stop and describe the management cluster of a sandbox."""

from concurrent.futures import ThreadPoolExecutor

from sandbox import processes, progress
from sandbox.management import (
    addon_provider,
    binaries,
    chart_repository,
    controllers,
    crds,
    janitor,
    server,
    tenant_api,
)
from sandbox.management.api import Api
from sandbox.management.releases import Providers
from sandbox.state import State

#: Everything that runs, in order of start; simulated components say so.
PROCESSES = {
    "etcd": "real",
    "kube-apiserver": "real",
    "kube-controller-manager": "real",
    **dict.fromkeys(controllers.NAMES, "real"),
    controllers.MACHINES: "simulated",
    controllers.ADDONS: "simulated",
    controllers.ELECTIONS: "simulated",
}


def choose(state: State, providers: Providers) -> None:
    """Remember the providers with which the management cluster starts next.

    Other ones than it has had are an upgrade: those that run are ended, as clusterctl does, and
    from then on managers rewrite the objects of an older storage version.

    :raises SandboxError: it is none, or the new ones cannot be built; all goes on running.
    """
    before = Providers.of(state)
    if providers != before and (state.root / "management" / "etcd").exists():
        providers.check_follow(before)
        binaries.build(providers)
        for name in controllers.NAMES:
            processes.stop(state, name)
        state.record(upgraded=True)
        progress.say(f"upgrade from {before} to {providers}")
    providers.record(state)


def choose_tenants(state: State, api: str | None, provider: str | None) -> None:
    """Remember what API servers clusters have, and who installs their addons; None for as before.

    :raises SandboxError: clusters run with another API server, or the real addon provider lacks
        something.
    """
    if api:
        tenant_api.choose(state, api)
    addon_provider.choose(state, provider or addon_provider.chosen(state))


def up(state: State) -> None:
    """Start the whole management cluster; what runs already is left alone.

    Its kubeconfigs are ``management/kubeconfig`` (administrator) and
    ``management/driver.kubeconfig`` (user ``magnum``) below the state's root.

    :raises SandboxError: something cannot be built, or does not come up in time.
    """
    up_api(state, reconcile=True)
    place = binaries.build(state)
    kind = addon_provider.chosen(state)
    with progress.step(f"machines, addon provider ({kind}) and leader election"):
        controllers.start_players(state, place)


def up_api(state: State, *, webhooks: bool = True, reconcile: bool = False) -> None:
    """Start only what a test of manifests and of a client needs: the API server with its CRDs.

    :param webhooks: start the real managers too, so that objects are defaulted, validated and
        converted as in a real management cluster.
    :param reconcile: False: these managers leave objects alone; the test writes their status.
    :raises SandboxError: something cannot be built, or does not come up in time.
    """
    place = binaries.build(state)
    with progress.step("etcd and kube-apiserver (real)"):
        api = server.start(state, place)
    with progress.step("CRDs, webhooks and roles") as step:
        # Meanwhile: it takes seconds until its informers have seen everything.
        server.start_controller_manager(state, place)
        step.note(f"{crds.install(state, place, api, webhooks=webhooks)} applied")
    if webhooks:
        with progress.step("Cluster API and CAPO with their webhooks (real)"):
            idle = () if reconcile else controllers.NAMES
            controllers.start_managers(state, place, idle=idle)


def down(state: State) -> None:
    """End everything; the state of the management cluster stays on disk.

    Controllers go first, all at once, so that none sees the API server vanish for long.
    """
    late = ("kube-apiserver", "etcd")
    first = [janitor.NAME, chart_repository.NAME, *(name for name in PROCESSES if name not in late)]
    with ThreadPoolExecutor(len(first)) as pool:
        list(pool.map(lambda name: processes.stop(state, name), first))
    for name in late:
        processes.stop(state, name)


def status(state: State) -> list[tuple[str, str]]:
    """Name and state of every process, such as ``("etcd", "running (real)")``.

    One that runs and does not answer is ``not answering``. The janitor is there if it was started.
    """
    started = {janitor.NAME: "real"} if processes.recorded(state, janitor.NAME) else {}
    kinds = {**PROCESSES, controllers.ADDONS: addon_provider.chosen(state), **started}
    return [(name, f"{_condition(state, name)} ({kind})") for name, kind in kinds.items()]


def _condition(state: State, name: str) -> str:
    if not processes.alive(state, name):
        return "stopped"
    return "running" if _answers(state, name) else "not answering"


def _answers(state: State, name: str) -> bool:
    """Whether a process says that it is well, as far as it can be asked."""
    if name == "kube-apiserver":
        return Api(server.kubeconfig(state)).answers()
    if name == janitor.NAME:
        return janitor.healthy(state)
    if name in controllers.HEALTH:
        return controllers.healthy(state, name)
    return True
