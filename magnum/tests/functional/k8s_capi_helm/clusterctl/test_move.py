# SPDX-License-Identifier: Apache-2.0
"""``clusterctl move`` to a second management cluster and back, with conductors that go on running.

An operator stops them. Here they see all that a conductor can see: Clusters that are paused, that
are gone, and that are somewhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
import json

from magnum.tests.functional.k8s_capi_helm.clusterctl import program
from magnum.tests.functional.k8s_capi_helm.sandbox import management as looked_at
from magnum.tests.functional.k8s_capi_helm.sandbox import operator_command, setting
from magnum.tests.functional.k8s_capi_helm.sandbox.cluster import Cluster
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows
from magnum.tests.functional.k8s_capi_helm.sandbox.management import Json, Management, management
from sandbox.management import clusterctl, kubeconfig, second
from sandbox.management.releases import Providers
from sandbox.state import State

_SCALED = {"auto_scaling_enabled": "true", "min_node_count": "1", "max_node_count": "3"}
#: Magnum's health poll comes once a minute.
_HEALTH = 150.0
#: Seconds for which nobody may say or do anything wrong while Clusters are somewhere else.
_ABSENT = 75.0
_RECORD = "k8s-capi-helm.magnum.openstack.org/"
#: What each pass of a conductor writes anew.
_PASSING = {"first-look", "first-looks-of-groups", "written", "writer"}
#: What a pending operation changes as soon as the release is there.
_ADVANCING = {"operations", "revisions"}


class Moved(Life):
    """Three clusters: one is resized, one has an autoscaler, one is deleted while it is away."""

    name = "moved"
    scaled: Customer
    leaving: Customer
    other: State
    servers: dict[str, set[str]]
    records: dict[str, dict[str, str]]

    @classmethod
    def missing(cls) -> str:
        return program.missing(clusterctl.program())

    def each(self) -> Iterator[Customer]:
        yield from (self.customer, self.scaled, self.leaving)

    @step
    def create(self) -> None:
        self.servers, self.records = {}, {}
        self.scaled, self.leaving = Customer.new("scaled"), Customer.new("leaving")
        self.customer.create(workers=2)
        self.scaled.create(template=self.scaled.template(labels=_SCALED))
        self.leaving.create()
        for one in self.each():
            one.cluster.complete("CREATE")
        for one in self.each():
            one.cluster.until(lambda rows: rows.health == "HEALTHY", "health", _HEALTH)

    @step
    def second_cluster(self) -> None:
        """Another management cluster, with the same providers by clusterctl."""
        state = setting.state()
        self.other = second.start(state)
        for one in (state, self.other):
            clusterctl.initialize(one, Providers.of(one))

    @step
    def move(self) -> None:
        """clusterctl takes the namespaces; then the Clusters are not here any more."""
        for one in self.each():
            tenant = one.tenant
            self.servers[tenant.namespace] = set(tenant.servers())
            self.records[tenant.namespace] = _record(one.cluster)
        for one in self.each():
            clusterctl.move(setting.state(), self.other, one.tenant.namespace)
        for one in self.each():
            assert management().objects("Cluster", one.tenant.namespace) == []
            left = management().left(one.tenant.namespace)
            self.say(f"left behind in {one.tenant.namespace}: {left}")

    @step
    def absent(self) -> None:
        """Nothing is called deleted, failed or complete that is not; nothing is made anew."""
        self.customer.resize(3)
        self.leaving.magnum.delete(self.leaving.cluster.uuid)
        said: dict[str, str] = {}

        def honest(rows: Rows) -> bool:
            for one in self.each():
                found = one.cluster.rows()
                text = f"{found} / {found.health} {found.cluster.get('health_status_reason')}"
                if said.get(one.cluster.uuid) != text:
                    said[one.cluster.uuid] = text
                    self.say(text)
                assert management().objects("Cluster", one.tenant.namespace) == []
                assert set(one.tenant.servers()) == self.servers[one.tenant.namespace]
            assert not rows.status.endswith(("_FAILED", "DELETE_COMPLETE")), rows
            assert rows.status != "UPDATE_COMPLETE", rows
            return True

        self.cluster.steady(honest, _ABSENT)
        assert self.scaled.cluster.rows().status == "CREATE_COMPLETE", self.scaled.cluster.rows()

    @step
    def complete_move(self) -> None:
        """The kubeconfig is switched, and the command brings what clusterctl has left."""
        self._switch(self.other)
        for one in (self.scaled, self.customer):
            self._is_whole(one)

    @step
    def there(self) -> None:
        """What was asked for meanwhile is carried out there; what was deleted is gone."""
        self.cluster.complete()
        before = self.servers[self.customer.tenant.namespace]
        assert before < set(self.customer.tenant.servers()), before
        self.scaled.cluster.complete("CREATE")
        self._unrolled(self.scaled)
        self.leaving.cluster.gone()
        for one in (self.customer, self.scaled):
            one.cluster.until(lambda rows: rows.health == "HEALTHY", "health", _HEALTH)

    @step
    def resize(self) -> None:
        """A resize there, and a repeated command that finds nothing to do."""
        assert self._run_command(setting.state()) == []
        self.customer.resize(2)
        self.cluster.complete()
        self.cluster.check_release()

    @step
    def back(self) -> None:
        """The same way back."""
        kept = (self.customer, self.scaled)
        for one in kept:
            self.servers[one.tenant.namespace] = set(one.tenant.servers())
            self.records[one.tenant.namespace] = _record(one.cluster)
        for one in kept:
            clusterctl.move(self.other, setting.state(), one.tenant.namespace)
        self._switch(None)
        for one in kept:
            self._is_whole(one)
            one.cluster.until(lambda rows: rows.health == "HEALTHY", "health", _HEALTH)
            self._unrolled(one)
        self.customer.resize(1)
        self.cluster.complete()

    @ending
    def delete(self) -> None:
        second.choose(setting.state(), None)
        looked_at.choose(None)
        for one in self.each():
            if one.magnum.rows(one.cluster.uuid) is not None:
                one.delete()
            one.leave()
        second.end(setting.state())

    def _switch(self, other: State | None) -> None:
        """Let Magnum and this test look at another management cluster, and complete the move."""
        state = setting.state()
        former = state if other else self.other
        second.choose(state, other)
        looked_at.choose(kubeconfig(other) if other else None)
        rows = self._run_command(former)
        for row in rows:
            self.say(f"{row['Cluster']}: {row['Object']} {row['Change']}")
        assert rows, "nothing was left to do"
        there = Management(kubeconfig(former))
        for one in self.each():
            there.gone(one.tenant.namespace)

    def _run_command(self, former: State) -> list[Json]:
        """The command, with the driver's own kubeconfig of the former management cluster."""
        path = second.former_kubeconfig(former)
        return operator_command.rows("complete-move", "--from-kubeconfig", str(path))

    def _is_whole(self, one: Customer) -> None:
        """The record is what it was, but for what the conductor carries out at once."""
        before = self.records[one.tenant.namespace]
        now = _record(one.cluster)
        lost = {key for key in before if before[key] != now.get(key)} - _PASSING - _ADVANCING
        assert not lost, {key: (before[key], now.get(key)) for key in lost}
        known, newest = (json.loads(text["revisions"])["newest"] for text in (before, now))
        assert known <= newest, (known, newest)

    def _unrolled(self, one: Customer) -> None:
        assert set(one.tenant.servers()) == self.servers[one.tenant.namespace], one.tenant.servers()


def _record(cluster: Cluster) -> dict[str, str]:
    """What the driver's Lease says."""
    lease = management().named("Lease", cluster.tenant.namespace, f"{cluster.release}-magnum")
    notes = lease["metadata"]["annotations"]
    return {
        key.removeprefix(_RECORD): text for key, text in notes.items() if key.startswith(_RECORD)
    }


class TestMoved(LifeCase, life=Moved):
    """create, second cluster, move, absent, complete move, there, resize, back, delete."""
