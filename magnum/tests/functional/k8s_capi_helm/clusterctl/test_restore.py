# SPDX-License-Identifier: Apache-2.0
"""A backup of etcd is restored under clusters that have gone on since: one was resized, one was
created, one was deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from magnum.tests.functional.k8s_capi_helm.clusterctl import program
from magnum.tests.functional.k8s_capi_helm.sandbox import operator_command, rolls, setting
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows
from sandbox.management import backup

#: Magnum's health poll comes once a minute.
_HEALTH = 150.0
_REPLACED = 600.0
#: Seconds for which nobody may say or do anything wrong before controllers run again.
_QUIET = 75.0


class Restored(Life):
    """Four clusters: at rest, resized after the backup, deleted after it, created after it."""

    name = "restored"
    resting: Customer
    deleted: Customer
    later: Customer
    backup: Path
    machines: rolls.Machines

    @classmethod
    def missing(cls) -> str:
        return program.missing(backup.ETCDCTL, backup.ETCDUTL)

    def each(self) -> Iterator[Customer]:
        yield from (self.customer, self.resting, self.later)

    @step
    def create(self) -> None:
        self.resting, self.deleted = Customer.new("resting"), Customer.new("deleted")
        for one in (self.customer, self.resting, self.deleted):
            one.create()
        for one in (self.customer, self.resting, self.deleted):
            one.cluster.complete("CREATE")
            one.cluster.until(lambda rows: rows.health == "HEALTHY", "health", _HEALTH)

    @step
    def save(self) -> None:
        self.machines = rolls.machines(self.resting.cluster)
        self.backup = backup.save(setting.state())

    @step
    def change(self) -> None:
        """What the backup does not have."""
        self.customer.resize(3)
        self.later = Customer.new("later")
        self.later.create()
        self.cluster.complete()
        self.later.cluster.complete("CREATE")
        self.deleted.delete()

    @step
    def restore(self) -> None:
        """Without controllers: nothing is called deleted, and Magnum's rows say what they know."""
        before = {one.cluster.uuid: set(one.tenant.servers()) for one in self.each()}
        backup.restore(setting.state(), self.backup)
        said: dict[str, str] = {}

        def honest(rows: Rows) -> bool:
            for one in self.each():
                found = one.cluster.rows()
                text = f"{found} / {found.health} {found.cluster.get('health_status_reason')}"
                if said.get(one.cluster.uuid) != text:
                    said[one.cluster.uuid] = text
                    self.say(text)
                assert set(one.tenant.servers()) == before[one.cluster.uuid]
                assert not found.status.startswith("DELETE"), found
            return True

        self.cluster.steady(honest, _QUIET)

    @step
    def controllers(self) -> None:
        """Controllers work on what the backup has; nothing rolls."""
        backup.start_controllers(setting.state())
        self.resting.cluster.until(lambda rows: rows.health == "HEALTHY", "health", _HEALTH)
        assert rolls.machines(self.resting.cluster) == self.machines
        for one in self.each():
            answer = operator_command.run("why", one.cluster.uuid)
            self.say(f"why: {answer.status} {answer.out[:300]}")

    @step
    def converge(self) -> None:
        """A resize to the size that Magnum shows brings the machines back.

        The servers that the backup does not know are deleted as the page says, and their nodes, as
        far as these are there.
        """
        self.customer.resize(3)
        self.cluster.until(lambda rows: rows.status == "UPDATE_COMPLETE", "the resize", _REPLACED)
        for row in operator_command.rows("orphans", self.cluster.uuid, status=1):
            self.say(f"orphan: {row}")
            self.customer.tenant.connection.compute.delete_server(row["ID"])
            name = row["Resource"].rpartition(" ")[2]
            workload = self.cluster.workload()
            if name in {one["metadata"]["name"] for one in workload.nodes()}:
                workload.take_away(f"/api/v1/nodes/{name}")
        self.cluster.complete()
        self.resting.resize(2)
        self.resting.cluster.complete()

    @ending
    def delete(self) -> None:
        backup.start_controllers(setting.state())
        for one in (self.customer, self.resting):
            one.delete()
            one.leave()


class TestRestored(LifeCase, life=Restored):
    """create, save, change, restore, controllers, converge, delete."""
