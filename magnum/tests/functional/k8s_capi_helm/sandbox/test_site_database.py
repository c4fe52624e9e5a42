# SPDX-License-Identifier: Apache-2.0
"""Magnum's database is restored from a backup under clusters that have changed since.

The database is SQLite here; the backup is aged by two hours, because a release counts as newer than
a nodegroup only if it is so by minutes.
"""

from __future__ import annotations

import datetime
from pathlib import Path

from magnum.tests.functional.k8s_capi_helm.sandbox import (
    database_backup,
    operator_command,
    rolls,
    setting,
)
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows
from sandbox import cloud

_AGE = datetime.timedelta(hours=2)
_GROUP = "extra"
#: Seconds: the health task visits each cluster once a minute.
_FOUND = 180.0


class Restored(Life):
    """Two clusters: one is resized after the backup, the other one loses a nodegroup."""

    name = "database"
    other: Customer
    later: Customer
    backup: Path
    machines: tuple[rolls.Machines, rolls.Machines]

    @step
    def create(self) -> None:
        self.other = Customer.new("database-other")
        self.customer.create()
        self.other.create()
        self.cluster.complete("CREATE")
        self.other.cluster.complete("CREATE")
        self.other.create_group(_GROUP, 1)
        self.other.cluster.complete()

    @step
    def save(self) -> None:
        self.backup = database_backup.save(_AGE)

    @step
    def change(self) -> None:
        """What the backup does not have: machines, a nodegroup less, a cluster more."""
        self.customer.resize(2)
        self.other.delete_group(_GROUP)
        self.later = Customer.new("database-later")
        self.later.create()
        self.cluster.complete()
        self.other.cluster.complete()
        self.later.cluster.complete("CREATE")
        self.machines = self._machines()

    @step
    def restore(self) -> None:
        """The sizes of the release are in Magnum again, and no machine has changed."""
        database_backup.restore(self.backup)
        cloud.restart(setting.state(), "magnum")
        assert self.customer.magnum.group(self.cluster.uuid, "default-worker")["node_count"] == 1
        self.cluster.until(lambda rows: self._counts(rows) == 2, "the size of the release", _FOUND)
        self.cluster.complete()
        assert self._machines() == self.machines

    @step
    def deleted(self) -> None:
        """The nodegroup that does not exist says so, and can be deleted."""

        def failed(rows: Rows) -> bool:
            return rows.has_failed(_GROUP)

        self.other.cluster.until(failed, "the nodegroup says so", _FOUND)
        reason = self.other.magnum.group(self.other.cluster.uuid, _GROUP)["status_reason"]
        self.say(reason)
        assert "was deleted after the backup" in reason, reason
        self.other.magnum.delete_group(self.other.cluster.uuid, _GROUP)
        self.other.cluster.until(lambda rows: _GROUP not in rows.groups, "its deletion", _FOUND)
        self.other.cluster.complete()
        assert self._machines() == self.machines

    @step
    def created(self) -> None:
        """A command names the cluster that Magnum does not have."""
        answer = operator_command.run("orphans")
        self.say(answer.out)
        assert self.later.cluster.release in answer.out, answer.out

    @ending
    def delete(self) -> None:
        for one in (self.customer, self.other):
            one.delete()
            one.leave()

    def _machines(self) -> tuple[rolls.Machines, rolls.Machines]:
        return rolls.machines(self.cluster), rolls.machines(self.other.cluster)

    @staticmethod
    def _counts(rows: Rows) -> int:
        return int(rows.groups["default-worker"]["node_count"])


class TestRestored(LifeCase, life=Restored):
    """create, save, change, restore, deleted, created, delete."""
