# SPDX-License-Identifier: Apache-2.0
"""Magnum's database and the management cluster's etcd are restored, from backups of one time.

OpenStack has gone on: one cluster was resized after the backups, one was deleted, one was created.
Neither Magnum nor Cluster API knows of any of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from magnum.tests.functional.k8s_capi_helm.clusterctl import program
from magnum.tests.functional.k8s_capi_helm.sandbox import (
    database_backup,
    operator_command,
    rolls,
    setting,
)
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from sandbox import cloud
from sandbox.management import backup

#: Magnum's health poll comes once a minute.
_HEALTH = 150.0
#: Seconds for which nobody may say or do anything wrong before controllers run again.
_QUIET = 75.0
_REPLACED = 600.0


class Restored(Life):
    """Four clusters: at rest, resized after the backups, deleted after them, created after them."""

    name = "both"
    resting: Customer
    deleted: Customer
    later: Customer
    release: str
    backups: tuple[Path, Path]
    machines: rolls.Machines

    @classmethod
    def missing(cls) -> str:
        return program.missing(backup.ETCDCTL, backup.ETCDUTL)

    def each(self) -> Iterator[Customer]:
        """Those that both backups have, and that still have servers."""
        yield from (self.customer, self.resting)

    @step
    def create(self) -> None:
        self.resting, self.deleted = Customer.new("both-resting"), Customer.new("both-deleted")
        for one in (self.customer, self.resting, self.deleted):
            one.create()
        for one in (self.customer, self.resting, self.deleted):
            one.cluster.complete("CREATE")
            one.cluster.until(lambda rows: rows.health == "HEALTHY", "health", _HEALTH)

    @step
    def save(self) -> None:
        self.machines = rolls.machines(self.resting.cluster)
        self.backups = backup.save(setting.state()), database_backup.save()

    @step
    def change(self) -> None:
        """What the backups do not have."""
        self.customer.resize(2)
        self.later = Customer.new("both-later")
        self.later.create()
        self.cluster.complete()
        self.later.cluster.complete("CREATE")
        self.release = self.later.cluster.release
        self.deleted.delete()

    @step
    def restore(self) -> None:
        """Magnum is stopped meanwhile; with the old rows and objects nothing is called deleted."""
        state = setting.state()
        before = {one.cluster.uuid: set(one.tenant.servers()) for one in self.each()}
        cloud.stop_magnum(state)
        backup.restore(state, self.backups[0])
        database_backup.restore(self.backups[1])
        cloud.start_magnum(state, Path(state.get("bin_dir")))

        def honest(_: object) -> bool:
            for one in (*self.each(), self.deleted):
                found = one.cluster.rows()
                assert not found.status.startswith("DELETE"), found
            return all(set(one.tenant.servers()) == before[one.cluster.uuid] for one in self.each())

        self.cluster.steady(honest, _QUIET)

    @step
    def look(self) -> None:
        """What the page tells an operator to look at names the server and the two clusters."""
        rows = operator_command.rows("orphans", status=1)
        for row in rows:
            self.say(f"orphan: {row}")
        found = {row["UUID"]: row for row in rows}
        assert self.cluster.uuid in found, rows
        assert any(self.release in row["Resource"] for row in rows), (self.release, rows)

    @step
    def controllers(self) -> None:
        """Controllers work on what the backup has; nothing of the others rolls."""
        backup.start_controllers(setting.state())
        for one in self.each():
            one.cluster.until(lambda rows: rows.health == "HEALTHY", "health", _HEALTH)
        assert rolls.machines(self.resting.cluster) == self.machines
        self.deleted.cluster.until(
            lambda rows: rows.health == "UNHEALTHY", "the deleted cluster's health", _REPLACED
        )
        for one in (*self.each(), self.deleted):
            answer = operator_command.run("why", one.cluster.uuid)
            self.say(f"why: {answer.status} {answer.out[:400]}")

    @step
    def converge(self) -> None:
        """The surplus server goes by its id; both clusters are changed as before."""
        for row in operator_command.rows("orphans", self.cluster.uuid, status=1):
            self.customer.tenant.connection.compute.delete_server(row["ID"])
            name = row["Resource"].rpartition(" ")[2]
            workload = self.cluster.workload()
            if name in {node["metadata"]["name"] for node in workload.nodes()}:
                workload.take_away(f"/api/v1/nodes/{name}")
        for one in self.each():
            one.resize(3)
        for one in self.each():
            one.cluster.until(lambda rows: rows.status == "UPDATE_COMPLETE", "it", _REPLACED)
            one.cluster.complete()

    @step
    def delete_again(self) -> None:
        """The deleted cluster is deleted once more, by what the page says."""
        self.deleted.magnum.delete(self.deleted.cluster.uuid)
        self.deleted.cluster.until(
            lambda rows: rows.status.startswith("DELETE_"), "a deletion", fail=False
        )
        answer = operator_command.run(
            "force-delete", self.deleted.cluster.uuid, "--release-objects"
        )
        self.say(f"force-delete: {answer}")
        self.deleted.cluster.forgotten()

    @ending
    def delete(self) -> None:
        backup.start_controllers(setting.state())
        for one in self.each():
            one.delete()
            one.leave()


class TestRestored(LifeCase, life=Restored):
    """create, save, change, restore, look, controllers, converge, delete_again, delete."""
