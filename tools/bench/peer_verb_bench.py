# SPDX-License-Identifier: Apache-2.0
"""Measure what verbs cost beside the peer driver: `make bench`.

Conductors carry out Magnum's own handlers in turns, each a process of its own, on one real
kube-apiserver with the definitions of Cluster API and without its controllers, with the real Helm
and the same chart. The peer is magnum-capi-helm as PyPI has it. A goal of
:mod:`tools.bench.peer_verb_costs` that is missed by more than is known is a failure.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
import contextlib
import dataclasses
import json
from pathlib import Path
import random
import sys
import tempfile
import time
from typing import Any

from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.functional.k8s_capi_helm.adoption import setting
from magnum.tests.functional.k8s_capi_helm.charts import reference, rendering
from sandbox.management import binaries, manifests
from sandbox.management.api import Api
from tools.bench import fleet, pass_tables, peer_verb_costs
from tools.bench.fleet import ManagementCluster
from tools.bench.pass_costs import OWN, PEER
from tools.bench.peer_verb_costs import Clock, CREATE, GROUP, PEER_REFERENCE, RESIZE, Spent
from tools.bench.peer_verb_process import Process, Setting

#: Measured rounds; one before them fills caches. Nodegroups at once take longer.
ROUNDS, TOGETHER_ROUNDS = 7, 3
#: A lock is free once it was found so often in a row: who has given it back may take it again.
_FREE, _LOOK = 3, 0.1
#: Longest time until what was asked for is there.
_PATIENCE = 120.0
_ADDED = "more"
_CLUSTER = {key: value for key, value in setting.CLUSTER.items() if key != "uuid"}
#: Each verb with the conductor's request, and what is given with it.
_STEPS: tuple[tuple[str, str, fleet.Json], ...] = (
    (CREATE, "create_next", _CLUSTER),
    (GROUP, "add_group", {"name": _ADDED, "node_count": 1, **setting.GROUP}),
    (RESIZE, "resize", {"count": 2, "group": _ADDED}),
)


class Bench:
    """A management cluster, and conductors that take turns on it.

    :ivar found: by verb and driver, one for each round.
    :ivar together: by driver, of nodegroups that were created at once.
    """

    def __init__(self, management: ManagementCluster, conductors: Mapping[str, Process]) -> None:
        self._management = management
        self._conductors = conductors
        self.found: dict[str, dict[str, list[Spent]]] = {
            verb: {driver: [] for driver in conductors} for verb in peer_verb_costs.VERBS
        }
        self.together: dict[str, list[Spent]] = {driver: [] for driver in conductors}

    def verbs(self, *, counted: bool) -> None:
        """Let each driver create a cluster, create a nodegroup, and resize it."""
        for driver in self._order():
            conductor = self._conductors[driver]
            for name, verb, given in _STEPS:
                spent = self._measure(conductor, verb, **given)
                conductor.ask("settle")
                if counted:
                    self.found[name][driver].append(spent)
            self._check(conductor)

    def at_once(self) -> None:
        """Let each driver create many nodegroups at once."""
        groups = [f"group-{number}" for number in range(peer_verb_costs.TOGETHER)]
        for driver in self._order():
            conductor = self._conductors[driver]
            conductor.ask("create_next", **_CLUSTER)
            self._wait(conductor)
            conductor.ask("settle")
            more = {"names": groups, "node_count": 1, **setting.GROUP}
            spent = self._measure(conductor, "add_groups", **more)
            # All but the one that the cluster was created with.
            done = len(self._machine_deployments(conductor)) - 1
            self.together[driver].append(dataclasses.replace(spent, done=done))

    def profile(self) -> Iterator[tuple[str, str]]:
        """The functions of this driver that take the time of each verb."""
        conductor = self._conductors[OWN]
        for name, verb, given in _STEPS:
            yield name, conductor.ask("profile", verb=verb, **given)
            self._wait(conductor)
            conductor.ask("settle")

    def _order(self) -> list[str]:
        return random.sample(list(self._conductors), len(self._conductors))

    def _measure(self, conductor: Process, verb: str, **given: Any) -> Spent:
        """What a verb took, and what its driver did by itself until it was through."""
        before = Clock(**conductor.ask("clock"))
        conductor.ask(verb, **given)
        returned = time.time()
        self._wait(conductor)
        after = Clock(**conductor.ask("clock"))
        with self._management.audit.open("rb") as lines:
            driver = conductor.setting.driver
            requests = peer_verb_costs.count_requests(lines, driver, before.time, after.time)
        spent = peer_verb_costs.spent(before, after, requests)
        # Nothing is asked of the peer after its verb, and looking takes a while.
        return dataclasses.replace(spent, wall=returned - before.time)

    def _wait(self, conductor: Process) -> None:
        """Wait until this driver has given the lock of a release back; the peer has none."""
        if conductor.setting.driver != OWN:
            return
        lease, namespace = names.lease(conductor.ask("release")), conductor.setting.namespace
        deadline, free = time.monotonic() + _PATIENCE, 0
        while free < _FREE and time.monotonic() < deadline:
            found = self._management.admin.get(names.LEASE, namespace, lease)
            held = found is not None and found["spec"].get("holderIdentity")
            free = 0 if held else free + 1
            time.sleep(_LOOK)

    def _machine_deployments(self, conductor: Process) -> list[Any]:
        release, space = conductor.ask("release"), conductor.setting.namespace
        # Their labels are the controllers'.
        found = self._management.admin.list(names.MACHINE_DEPLOYMENT, space)
        return [one for one in found if one["spec"]["clusterName"] == release]

    def _check(self, conductor: Process) -> None:
        """The three verbs have come to what they are for.

        :raises RuntimeError: they have not; the figures would mean nothing.
        """
        counts = [one["spec"]["replicas"] for one in self._machine_deployments(conductor)]
        if sorted(counts) != [1, 2]:
            driver = conductor.setting.driver
            raise RuntimeError(f"{driver}: machines {counts}: {conductor.said()}")


@contextlib.contextmanager
def bench() -> Iterator[Bench]:
    """A management cluster, and a conductor with each driver."""
    programs = binaries.build()
    with contextlib.ExitStack() as stack:
        management = stack.enter_context(fleet.management_cluster(()))
        _define(management, programs)
        charts = {PEER: rendering.CLUSTER, OWN: rendering.CLUSTER}
        with contextlib.suppress(reference.NotGiven):
            charts[PEER_REFERENCE] = stack.enter_context(reference.chart())
        conductors = dict[str, Process]()
        for driver, chart in charts.items():
            place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            given = Setting(driver, place, management.kubeconfig, programs, chart)
            if driver != OWN:
                _bind(management, given.namespace)
            conductors[driver] = stack.enter_context(Process(given))
            conductors[driver].ask("make_database")
            conductors[driver].ask("template", **setting.TEMPLATE)
        yield Bench(management, conductors)


def _bind(management: ManagementCluster, namespace: str) -> None:
    """Give Magnum's user, in a namespace, the rights that this driver gives itself."""
    management.admin.apply(names.NAMESPACE, {"metadata": {"name": namespace}})
    management.admin.apply(names.ROLE_BINDING, fleet.binding(namespace))


def _define(management: ManagementCluster, programs: Path) -> None:
    """Give it the definitions of Cluster API, without webhooks."""
    entries = json.loads((programs / binaries.MANIFESTS).read_text())
    definitions = [one for one in entries if one["document"]["kind"] == manifests.CRD]
    documents = manifests.localize(definitions, {}, b"")
    api = Api(management.admin_kubeconfig)
    api.apply_all(documents)
    api.wait_established(one["metadata"]["name"] for one in documents)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench.peer_verb_bench", description=__doc__
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="measured ones of each verb")
    parser.add_argument("--together", type=int, default=TOGETHER_ROUNDS, help="rounds, 0 for none")
    parser.add_argument("--verbose", action="store_true", help="requests by verb and resource")
    parser.add_argument("--profile", action="store_true", help="this driver's functions, too")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a goal is failed."""
    given = _arguments(arguments)
    with bench() as measured:
        for number in range(given.rounds + 1):
            measured.verbs(counted=number > 0)
        for _ in range(given.together):
            measured.at_once()
        profiles = list(measured.profile()) if given.profile else []
    _print(measured, verbose=given.verbose)
    for verb, text in profiles:
        print(f"{verb}:\n{text}")
    checks = peer_verb_costs.verb_checks(measured.found)
    if given.together:
        checks += peer_verb_costs.together_checks(measured.together[OWN])
    text, failed = pass_tables.verdict(checks)
    print(text, flush=True)
    return 1 if failed else 0


def _print(measured: Bench, *, verbose: bool) -> None:
    for verb, drivers in measured.found.items():
        print(peer_verb_costs.table(verb, drivers))
        if verb == CREATE:
            print(peer_verb_costs.certificates(drivers))
        if verbose:
            print(peer_verb_costs.requests_table(drivers))
    if any(measured.together.values()):
        print(peer_verb_costs.together_table(measured.together))
        if verbose:
            print(peer_verb_costs.requests_table(measured.together))


if __name__ == "__main__":
    sys.exit(main())
