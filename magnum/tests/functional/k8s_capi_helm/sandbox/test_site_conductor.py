# SPDX-License-Identifier: Apache-2.0
"""The conductor's host is lost while it works; another host takes its place, with nothing of it.

Magnum keeps a conductor's requests in its memory here, as the transport has one process only: what
was asked and not begun is lost with it. What has begun is in Magnum's database, in the Lease and in
Helm's release.
"""

from __future__ import annotations

import os
import shutil
import signal

from magnum.tests.functional.k8s_capi_helm.sandbox import (
    operator_command,
    provider,
    rolls,
    setting,
)
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from sandbox import processes
from sandbox.cloud.config import Paths

_MAGNUM = "magnum"
_OLD = "v1.33.8"
#: Seconds: the health task visits each cluster once a minute.
_HEALTH = 150.0


class Lost(Life):
    """Three clusters: one is upgraded, one resized, one created when the host goes."""

    name = "conductor"
    resized: Customer
    created: Customer
    watch: rolls.Watch
    machines: rolls.Machines

    @step
    def create(self) -> None:
        self.resized = Customer.new("conductor-resized")
        self.customer.create(version=_OLD)
        self.resized.create()
        self.cluster.complete("CREATE")
        self.resized.cluster.complete("CREATE")

    @step
    def lose(self) -> None:
        """SIGKILL to everything, and no file of it is left; the new host has another name."""
        self.created = Customer.new("conductor-created")
        self.machines = rolls.machines(self.resized.cluster)
        self.watch = rolls.Watch(self.cluster)
        self.created.create()
        self.customer.upgrade()
        self.resized.resize(3)
        self.created.cluster.begun()
        for one in (self.customer, self.resized):
            one.cluster.until(lambda rows: rows.status == "UPDATE_IN_PROGRESS", "a request begun")
        state = setting.state()
        for pid in processes.members(state, _MAGNUM):
            os.kill(pid, signal.SIGKILL)
        scratch = Paths.of(state).scratch / _MAGNUM
        shutil.rmtree(scratch)
        (scratch / "locks").mkdir(parents=True)
        provider.reconfigure({"DEFAULT": {"host": "another-host"}})

    @step
    def complete(self) -> None:
        """Everything that had begun comes to its end; machines roll once, and only those."""
        self.created.cluster.complete("CREATE")
        self.resized.cluster.complete()
        self.watch.complete()
        self.watch.check(rolls.MASTERS, "default-worker")
        now = rolls.machines(self.resized.cluster)
        for group, before in self.machines.groups.items():
            assert before <= now.groups[group], f"{group}: {before - now.groups[group]} went"

    @step
    def look(self) -> None:
        """The operator's command finds nothing left behind."""
        for one in self._each():
            one.cluster.until(lambda rows: rows.health == "HEALTHY", "health", _HEALTH)
            assert operator_command.run("why", one.cluster.uuid).status == 0
        answer = operator_command.run("orphans")
        self.say(f"orphans: {answer.status} {answer.out}")
        assert answer.status == 0, answer

    @step
    def go_on(self) -> None:
        """The next request of each cluster is carried out by the new host."""
        for one in self._each():
            one.resize(2)
        for one in self._each():
            one.cluster.complete()

    @ending
    def delete(self) -> None:
        provider.reconfigure({})
        for one in self._each():
            one.delete()
            one.leave()

    def _each(self) -> tuple[Customer, ...]:
        return self.customer, self.resized, self.created


class TestLost(LifeCase, life=Lost):
    """create, lose, complete, look, go_on, delete."""
