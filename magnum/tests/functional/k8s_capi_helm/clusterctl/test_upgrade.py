# SPDX-License-Identifier: Apache-2.0
"""``clusterctl upgrade apply`` of Cluster API and its OpenStack provider under living clusters."""

from __future__ import annotations

from magnum.tests.functional.k8s_capi_helm.clusterctl import program
from magnum.tests.functional.k8s_capi_helm.sandbox import management as looked_at
from magnum.tests.functional.k8s_capi_helm.sandbox import rolls, setting
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows
from sandbox import stack
from sandbox.management import clusterctl, lifecycle
from sandbox.management.releases import Providers

#: Magnum's health poll comes once a minute.
_HEALTH = 180.0


class Upgraded(Life):
    """Two clusters: one at rest, and one that is resized while no manager runs."""

    name = "upgraded"
    resting: Customer
    machines: dict[str, rolls.Machines]
    servers: dict[str, set[str]]

    @classmethod
    def missing(cls) -> str:
        if Providers.of(setting.state()) == Providers():
            return (
                "the sandbox has the newest providers already: reset it with --capi and --capo of "
                "earlier ones, as tox -e functional-capi-upgrade does"
            )
        return program.missing(clusterctl.program())

    @step
    def create(self) -> None:
        self.resting = Customer.new("resting")
        both = (self.customer, self.resting)
        for one in both:
            one.create()
        for one in both:
            one.cluster.complete("CREATE")
            one.cluster.until(lambda rows: rows.health == "HEALTHY", "health", _HEALTH)
        self.machines = {one.cluster.uuid: rolls.machines(one.cluster) for one in both}
        self.servers = {one.cluster.uuid: set(one.tenant.servers()) for one in both}

    @step
    def initialize(self) -> None:
        """clusterctl knows the providers that run; its plan says what they can become."""
        state = setting.state()
        present = Providers.of(state)
        clusterctl.initialize(state, present)
        plan = clusterctl.run(state, Providers(), "upgrade", "plan")
        self.say(plan)
        assert f"v{Providers.capi.version}" in plan, plan

    @step
    def upgrade(self) -> None:
        """While no manager runs a resize is in progress, and nothing is failed or complete."""
        state, new = setting.state(), Providers()
        lifecycle.choose(state, new)
        self.customer.resize(2)
        seen: set[str] = set()

        def honest(rows: Rows) -> bool:
            for one in (self.customer, self.resting):
                found = one.cluster.rows()
                text = f"{one.cluster.name}: {found} / {found.health}"
                if text not in seen:
                    seen.add(text)
                    self.say(text)
                assert not found.status.endswith("_FAILED"), found
                assert found.health != "UNHEALTHY", found.cluster
                assert self.servers[one.cluster.uuid] <= set(one.tenant.servers())
            assert rows.status != "UPDATE_COMPLETE", rows
            return True

        self.cluster.steady(honest, 20.0)
        self.say(clusterctl.upgrade(state, new))
        self.cluster.steady(honest, 20.0)
        stack.up(state)

    @step
    def after(self) -> None:
        """What was asked for is carried out, and nothing has rolled."""
        looked_at.choose(None)
        self.cluster.complete()
        for one in (self.customer, self.resting):
            one.cluster.until(lambda rows: rows.health == "HEALTHY", "health", _HEALTH)
        self._unrolled()
        assert rolls.machines(self.resting.cluster) == self.machines[self.resting.cluster.uuid]

    @step
    def later_verbs(self) -> None:
        """A nodegroup, and a resize of the cluster that was at rest."""
        self.customer.create_group("second", 1)
        self.resting.resize(2)
        for one in (self.customer, self.resting):
            one.cluster.complete()
        self._unrolled()

    @ending
    def delete(self) -> None:
        for one in (self.customer, self.resting):
            one.delete()
            one.leave()

    def _unrolled(self) -> None:
        for one in (self.customer, self.resting):
            assert self.servers[one.cluster.uuid] <= set(one.tenant.servers())


class TestUpgraded(LifeCase, life=Upgraded):
    """create, initialize, upgrade, after, later verbs, delete."""
