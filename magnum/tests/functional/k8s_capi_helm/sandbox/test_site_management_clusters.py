# SPDX-License-Identifier: Apache-2.0
"""Two management clusters with controllers of their own, one Magnum, one cloud.

One of them is frozen: it takes connections and answers nothing. The clusters of the other one are
changed as fast as before.
"""

from __future__ import annotations

from collections.abc import Callable
import os
from pathlib import Path
import shutil
import signal
import time

from magnum.tests.functional.k8s_capi_helm.sandbox import operator_command, provider, setting
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows
from magnum.tests.functional.k8s_capi_helm.sandbox.management import Management, management
from sandbox import processes
from sandbox.management import driver_kubeconfig, kubeconfig, lifecycle
from sandbox.management.releases import Providers
from sandbox.state import State

_NAME = "hall2"
_DIRECTORY = "hall2-management"
#: By this label a cluster goes to the other management cluster.
_LABELS = {"auto_healing_enabled": "false"}
#: Magnum's health poll comes once a minute.
_HEALTH = 150.0
#: How often a cluster is resized for a comparison.
_RESIZES = 3


class Halls(Life):
    """A cluster on each management cluster."""

    name = "halls"
    there: Customer
    moved: Customer | None = None
    other: State
    alone: list[float]

    @step
    def second(self) -> None:
        """Another management cluster, and Magnum with both."""
        self.other = State(setting.state().path(_DIRECTORY, "x").parent)
        Providers.of(setting.state()).record(self.other)
        lifecycle.up(self.other)
        self._configure(draining=False)

    @step
    def create(self) -> None:
        """Each cluster is where its row says, with all that it has."""
        self.there = Customer.new("there")
        self.customer.create()
        self.there.create(template=self.there.template(labels=_LABELS))
        self.cluster.complete("CREATE")
        self._until(self.there, "CREATE_COMPLETE")
        assert "@" not in self.cluster.release, self.cluster.release
        assert self._stack_id(self.there).endswith(f"@{_NAME}"), self._stack_id(self.there)
        here, other = management(), Management(kubeconfig(self.other))
        assert len(other.objects("Cluster", self.there.tenant.namespace)) == 1
        assert here.left(self.there.tenant.namespace) == []
        assert other.left(self.customer.tenant.namespace) == []
        for one in (self.customer, self.there):
            self._healthy(one)

    @step
    def commands(self) -> None:
        """The command says which, and asks the right one."""
        rows = operator_command.rows("list")
        shown = {row["UUID"]: row["Management cluster"] for row in rows}
        assert shown[self.cluster.uuid] == "default", shown
        assert shown[self.there.cluster.uuid] == _NAME, shown
        findings = [row["Finding"] for row in operator_command.run("check", "-f", "json").rows]
        for name in ("default", _NAME):
            assert any(text.startswith(f"Management cluster {name}: ") for text in findings)
        why = operator_command.run("why", self.there.cluster.uuid)
        assert why.status == 0, why

    @step
    def compare(self) -> None:
        """How long a resize takes while both answer."""
        self.alone = self._resizes()
        self.say(f"resizes while both answer: {_text(self.alone)}")

    @step
    def frozen(self) -> None:
        """One takes connections and answers nothing; the clusters of the other do not notice."""
        pids = processes.members(self.other, "kube-apiserver")
        assert pids
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            self.there.cluster.until(_is("UNKNOWN"), "health", _HEALTH)
            beside = self._resizes()
            self.say(f"resizes while {_NAME} is frozen: {_text(beside)}")
            assert min(beside) < 1.3 * max(self.alone), (beside, self.alone)
            # What the last poll has written is perhaps of the middle of a resize.
            self.cluster.until(_is("HEALTHY"), "health", _HEALTH)
            answer = operator_command.run("list", "-f", "json")
            assert answer.status == 3, answer
            charts = {row["UUID"]: row["Chart"] for row in answer.rows}
            assert charts[self.cluster.uuid], charts
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    @step
    def thawed(self) -> None:
        """All goes on by itself."""
        self._healthy(self.there)
        self.there.resize(2)
        self._until(self.there, "UPDATE_COMPLETE")
        other = Management(kubeconfig(self.other))
        [group] = other.objects("MachineDeployment", self.there.tenant.namespace)
        assert group["spec"]["replicas"] == 2, group

    @step
    def drained(self) -> None:
        """A new cluster with the same labels goes to the other one; this one is still changed."""
        self._configure(draining=True)
        self.moved = moved = Customer.new("drained")
        moved.create(template=moved.template(labels=_LABELS))
        moved.cluster.complete("CREATE")
        assert "@" not in self._stack_id(moved)
        self.there.resize(1)
        self._until(self.there, "UPDATE_COMPLETE")

    @ending
    def leave(self) -> None:
        """Nothing is left on either."""
        customers = [one for one in (self.there, self.moved, self.customer) if one]
        for one in customers:
            one.magnum.delete(one.cluster.uuid)
        for one in customers:
            one.cluster.forgotten()
        assert Management(kubeconfig(self.other)).left(self.there.tenant.namespace) == []
        assert self.there.tenant.left() == []

    @ending
    def end(self) -> None:
        """Magnum is as it was, and the second management cluster is gone."""
        provider.reconfigure({})
        lifecycle.down(self.other)
        processes.stop_all(self.other)
        shutil.rmtree(self.other.root)

    def _configure(self, *, draining: bool) -> None:
        section = {
            "kubeconfig_file": Path(driver_kubeconfig(self.other)),
            "labels": "auto_healing_enabled=false",
            "draining": draining,
        }
        names = {"management_clusters": f"default,{_NAME}"}
        provider.reconfigure({"capi_helm": names, f"capi_helm_management_{_NAME}": section})

    def _resizes(self) -> list[float]:
        """Seconds of resizes of the cluster on the default management cluster."""
        seconds = []
        for number in range(_RESIZES):
            began = time.monotonic()
            self.customer.resize(2 - number % 2)
            self.cluster.complete()
            seconds.append(time.monotonic() - began)
        self.customer.resize(1)
        self.cluster.complete()
        return seconds

    def _until(self, one: Customer, status: str) -> None:
        one.cluster.until(lambda rows: rows.status == status, status)

    def _healthy(self, one: Customer) -> None:
        one.cluster.until(_is("HEALTHY"), "health", _HEALTH)

    @staticmethod
    def _stack_id(one: Customer) -> str:
        return str(one.cluster.rows().release)


def _is(health: str) -> Callable[[Rows], bool]:
    return lambda rows: rows.health == health


def _text(seconds: list[float]) -> str:
    return ", ".join(f"{one:.1f} s" for one in seconds)


class TestHalls(LifeCase, life=Halls):
    """Two management clusters."""
