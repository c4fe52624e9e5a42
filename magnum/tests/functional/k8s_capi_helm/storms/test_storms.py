# SPDX-License-Identifier: Apache-2.0
"""Every one of many requests at once is carried out, also when a conductor is killed meanwhile.

Who asks for what, and in which order, is drawn by lot. ``K8S_CAPI_HELM_STORMS`` has the seeds, with
a comma between two; each is a storm of each kind.
"""

from __future__ import annotations

import concurrent.futures
import os
import secrets

from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Refused, Rows
from magnum.tests.functional.k8s_capi_helm.storms.storm import LIMIT, mixed, Storm
from sandbox import cloud
from sandbox.cloud import conductors, watched_conductor
from sandbox.cloud.conductor_layout import Layout

#: Twenty requests at once are to need two or three runs of Helm; on a machine that is busy
#: the first of them are carried out before the last have come in.
_MOST_RUNS = 6
_SEEDS = [
    int(seed)
    for seed in (os.environ.get("K8S_CAPI_HELM_STORMS") or f"{secrets.randbelow(10**6)}").split(",")
]


class Storms(Life):
    """Twenty groups at once, and away; fifty requests of all kinds; killed conductors."""

    name = "storms"

    @property
    def storm(self) -> Storm:
        return Storm(self.customer, self.say)

    @step
    def create(self) -> None:
        """Conductors and workers are those of a large site."""
        layout = Layout.of(setting.state())
        self.say(str(layout))
        assert (layout.conductors, layout.workers) >= (2, 3), layout
        self.customer.create()
        self.cluster.complete("CREATE")

    @step
    def twenty(self) -> None:
        """Created at once, and deleted at once, after a few runs of Helm each."""
        for number, seed in enumerate(_SEEDS):
            names = [f"group-{number}-{one:02}" for one in range(20)]
            before = self.storm.runs()
            self.storm.create(names, seed=seed)
            created = self.storm.see_through(f"20 created, seed {seed}", before)
            assert 0 < created <= _MOST_RUNS, created
            before = self.storm.runs()
            self.storm.delete(names, seed=seed + 1)
            deleted = self.storm.see_through(f"20 deleted, seed {seed + 1}", before)
            assert 0 < deleted <= _MOST_RUNS, deleted

    @step
    def mixed(self) -> None:
        """Create, resize, update, delete in one go; groups that are left go with the next storm."""
        for number, seed in enumerate(_SEEDS):
            before = self.storm.runs()
            self.storm.rage(mixed(seed, 50, f"mixed-{number}"))
            self.storm.see_through(f"50 mixed, seed {seed}", before)
            left = [name for name in self.cluster.intent.groups if name.startswith("mixed-")]
            self.storm.delete(left)
        self.cluster.complete(limit=LIMIT)
        self._show_conductors()
        workers = conductors.answering(setting.state())
        self.say(f"{len(workers)} processes have answered")
        layout = Layout.of(setting.state())
        first = layout.conductors if layout.runs_programs else 0
        assert len(workers) == layout.conductors * layout.workers + first, workers

    @step
    def killed(self) -> None:
        """Each conductor in turn, with all its workers, while requests come in."""
        before, names = self.storm.runs(), list[str]()
        for number, name in enumerate(Layout.of(setting.state()).names):
            new = [f"killed-{number}-{one:02}" for one in range(20)]
            with concurrent.futures.ThreadPoolExecutor(1) as killer:
                death = killer.submit(self._kill, name, set(new))
                self.storm.create(new, wait=False)
                death.result()
            names += new
        lost, failed = self.storm.again(names)
        self.say(
            f"lost with their conductors: {len(lost)} without a row, {len(failed)} that failed"
        )
        self.storm.see_through(f"{len(names)} created, both conductors killed", before)
        self.storm.delete(names)
        self.cluster.complete(limit=LIMIT)

    @ending
    def delete(self) -> None:
        """Nothing is left of any of them."""
        self.customer.delete()
        self.customer.leave()

    def _show_conductors(self) -> None:
        """Threads of each process, how long eventlet's hub was blocked, if there is one."""
        state = setting.state()
        layout = Layout.of(state)
        for name in layout.names:
            self.say(f"{name}: threads of its processes: {conductors.threads(state, name)}")
            if layout.runs_programs:
                log = state.log(name).read_text(encoding="utf-8", errors="replace")
                for line in watched_conductor.summary(log):
                    self.say(f"{name}: {line}")

    def _kill(self, name: str, groups: set[str]) -> None:
        """Once the first few of the groups have a row."""
        self.cluster.until(lambda rows: len(groups & set(rows.groups)) > 4, "five rows", LIMIT)
        pids = conductors.kill(setting.state(), name)
        self.say(f"{name} killed, {len(pids)} processes")
        cloud.restart(setting.state(), name)
        self.say(f"{name} is back")


class Early(Life):
    """Groups are asked for while the cluster is being made, and while it is being deleted."""

    name = "early"

    @step
    def during_create(self) -> None:
        """As soon as Magnum lets them through; a cluster without them is not complete."""
        self.customer.create()
        for name in ("early-0", "early-1", "early-2"):
            Storm(self.customer, self.say).insist(name)
        rows = self.cluster.until(self._all_there, "all groups", LIMIT)
        self.cluster.complete(rows.status.partition("_")[0], limit=LIMIT)
        self.cluster.check_release()

    @step
    def during_delete(self) -> None:
        """They do not keep it; with it they are gone."""
        self.customer.magnum.delete(self.cluster.uuid)
        for name in ("late-0", "late-1"):
            try:
                self.customer.magnum.create_group(self.cluster.uuid, name, 0)
                self.customer.magnum.delete_group(self.cluster.uuid, "early-0")
            except Refused as refusal:
                self.say(str(refusal))
        self.cluster.gone()

    @ending
    def leave(self) -> None:
        """The project is empty."""
        if self.customer.magnum.rows(self.cluster.uuid) is not None:
            self.customer.delete()
        self.customer.leave()

    def _all_there(self, rows: Rows) -> bool:
        there = set(rows.groups) == set(self.cluster.intent.counts)
        return there and rows.status.endswith("_COMPLETE")


class TestStorms(LifeCase, life=Storms):
    """create, twenty, mixed, killed, delete."""


class TestEarly(LifeCase, life=Early):
    """during create, during delete, leave."""
