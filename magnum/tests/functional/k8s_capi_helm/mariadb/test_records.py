# SPDX-License-Identifier: Apache-2.0
"""Whatever stands in a reason, and however the database is in its own way, a record is saved.

The server is real, strict, and has the tables that Magnum's migrations make, in utf8mb3: 65,535
bytes to a text, three bytes to a character (https://mariadb.com/kb/en/text/, .../unicode/).
"""

from __future__ import annotations

import types
from typing import Any

import fixtures
from oslo_db import exception as db_exception
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy

from magnum.common import exception
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import saving
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import builders, driver_case, test_database

EMOJI = "\U0001f600"
TEXTS = (
    f"Ready {EMOJI}\U00020bb7 for use",
    "half \ud83d and half \ude00 a character",
    "a \x00 and a \x1b",
    "größer " * 20_000,
    "界" * 30_000,
    EMOJI * 70_000,
    "no space" * 20_000,
)


class Case(driver_case.DriverCase):
    def sql(self, text: str, **values: Any) -> Any:
        """Run one statement of the test's own, on a connection of its own."""
        with enginefacade.writer.get_engine().begin() as connection:
            found = connection.execute(sqlalchemy.text(text), values)
            return found.all() if found.returns_rows else None

    def refuse_writes(self, table: str, times: int, number: int, words: str) -> None:
        """Have the next updates of a table end as the server's own errors do."""
        self.sql("DROP TABLE IF EXISTS refusals")
        # Not in the transaction that is rolled back.
        self.sql("CREATE TABLE refusals (left_over INT) ENGINE=MyISAM")
        self.sql("INSERT INTO refusals VALUES (:times)", times=times)
        self.sql(
            f"CREATE OR REPLACE TRIGGER refusing BEFORE UPDATE ON `{table}` "  # noqa: S608
            "FOR EACH ROW "
            "IF (SELECT left_over FROM refusals) > 0 THEN "
            "UPDATE refusals SET left_over = left_over - 1; "
            f"SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = '{words}'; "
            "END IF"
        )
        self.addCleanup(self.sql, "DROP TABLE IF EXISTS refusals")
        self.addCleanup(self.sql, "DROP TRIGGER IF EXISTS refusing")

    def left_over(self) -> int:
        return int(self.sql("SELECT left_over FROM refusals")[0][0])


@test_database.on_mariadb
class TestTheServer(Case):
    """The premises: without them the other tests prove nothing."""

    def test_it_is_as_strict_as_operators_have_it(self):
        modes = self.sql("SELECT @@sql_mode, @@tx_isolation")[0]
        self.assertIn("STRICT_ALL_TABLES", modes[0])
        self.assertEqual("REPEATABLE-READ", modes[1])
        listed = self.sql(
            "SELECT table_name, engine, table_collation FROM information_schema.tables "
            "WHERE table_schema = DATABASE() AND table_name IN ('cluster', 'nodegroup')"
        )
        wanted = [(name, "InnoDB", "utf8mb3_general_ci") for name in ("cluster", "nodegroup")]
        self.assertEqual(wanted, sorted(tuple(one) for one in listed))

    def test_it_refuses_what_does_not_fit(self):
        cluster = self.made()
        for text in (EMOJI, "x" * 65_536):
            cluster.status_reason = text
            self.assertRaises(db_exception.DBError, cluster.save)

    def test_magnum_does_not_try_an_update_again(self):
        """Its decorator stands behind the call that oslo.db looks at."""
        cluster = self.made()
        self.refuse_writes("cluster", 1, 1213, "Deadlock found when trying to get lock")
        cluster.status_reason = "new"
        self.assertRaises(db_exception.DBDeadlock, cluster.save)

    def test_names_that_differ_in_case_are_one_to_it(self):
        """Magnum refuses the second nodegroup before the driver sees it."""
        self.made()
        self.add_group("extra")
        before = self.helm.live(driver_case.NAMESPACE, driver_case.RELEASE).values
        group = self.new_group("Extra")
        self.assertRaises(exception.NodeGroupAlreadyExists, group.create)
        self.status_task()
        self.assertEqual(before, self.helm.live(driver_case.NAMESPACE, driver_case.RELEASE).values)


@test_database.on_mariadb
class TestTexts(Case):
    def test_any_text_is_saved_as_a_reason(self):
        cluster = self.made()
        for text in TEXTS:
            for row in (cluster, *cluster.nodegroups):
                saving.save(row, status_reason=text)
            saved = self.cluster().status_reason
            self.assertLessEqual(len(saved.encode()), 65_535)
            pairs = zip(text[:100], saved[:100], strict=False)
            self.assertTrue(all(new in (old, "\ufffd") for old, new in pairs), text[:20])

    def test_what_was_saved_is_not_saved_again(self):
        cluster = self.made()
        for text in TEXTS:
            saving.save(cluster, status_reason=text)
            self.refuse_writes("cluster", 1, 1644, "a save too many")
            saving.save(self.cluster(), status_reason=text)
            self.assertEqual(1, self.left_over())
            self.sql("DROP TRIGGER refusing")

    def test_a_tenants_emoji_in_a_condition_breaks_no_pass(self):
        """What somebody has written into an object on the way to a reason."""
        self.create()
        self.capi_converges()
        for one in self.kube.list(names.OPENSTACK_CLUSTER, driver_case.NAMESPACE):
            builders.say(one, "Ready", "False", f"network {EMOJI}\U00020bb7 is gone", "Failed")
            one["status"]["ready"] = False
            self.kube.put(names.OPENSTACK_CLUSTER, one)
        self.status_task()
        self.health_task()
        cluster = self.cluster()
        self.assertEqual("CREATE_IN_PROGRESS", cluster.status)
        self.assertIn("network \ufffd\ufffd is gone", cluster.status_reason)
        self.assertIn(EMOJI, str(cluster.health_status_reason))

    def test_what_a_request_raises_can_be_saved_by_magnum(self):
        """Magnum's conductor writes the sentence itself."""
        self.create(labels={"kube_tag": f"v1.{EMOJI}", "boot_volume_size": EMOJI * 5_000})
        cluster = self.cluster()
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn("label", cluster.status_reason.lower())

    def test_many_addresses_are_saved(self):
        cluster = self.made()
        group = next(row for row in cluster.nodegroups if row.role == "worker")
        many = [f"fd00:1234:5678:9abc:def0:1234:{number:04x}:1" for number in range(3000)]
        saving.save(group, node_addresses=many)
        saved = self.group().node_addresses
        self.assertEqual(many[: len(saved)], saved)
        self.assertGreater(len(saved), 1000)


@test_database.on_mariadb
class TestWrites(Case):
    def test_a_write_that_galera_took_back_is_made_again(self):
        """https://mariadb.com/kb/en/galera-cluster-known-limitations/: deadlock, at the commit."""
        cluster = self.made()
        self.refuse_writes("cluster", 3, 1213, "Deadlock found when trying to get lock")
        saving.save(cluster, status_reason="new")
        self.assertEqual("new", self.cluster().status_reason)
        self.assertEqual(0, self.left_over())

    def test_a_lock_that_somebody_holds_is_waited_for(self):
        cluster = self.made()
        before = self.sql("SELECT @@GLOBAL.innodb_lock_wait_timeout")[0][0]
        self.sql("SET GLOBAL innodb_lock_wait_timeout = 1")
        self.addCleanup(self.sql, f"SET GLOBAL innodb_lock_wait_timeout = {before}")
        enginefacade.writer.get_engine().dispose()  # the setting is of new connections
        with enginefacade.writer.get_engine().connect() as other:
            other.exec_driver_sql("UPDATE cluster SET coe_version = 'theirs'")
            # Whoever was refused pauses, and meanwhile the other one is through.
            pauses = types.SimpleNamespace(sleep=lambda seconds: other.commit())
            self.useFixture(fixtures.MonkeyPatch("oslo_db.api.time", pauses))
            saving.save(cluster, status_reason="new")
        found = self.cluster()
        self.assertEqual(("new", "theirs"), (found.status_reason, found.coe_version))

    def test_connections_that_are_gone_are_no_event(self):
        """The server was restarted, or it has closed what was idle."""
        self.create()
        self.capi_converges()
        verbs = (
            self.status_task,
            self.status_task,
            self.health_task,
            lambda: self.resize(2),
            self.status_task,
            self.capi_converges,
        )
        for verb in (*verbs, self.status_task, self.status_task):
            self._close_all()
            verb()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def _close_all(self) -> None:
        """End every connection of this process, as the server sees them."""
        engine = sqlalchemy.create_engine(
            test_database.current().url, poolclass=sqlalchemy.NullPool
        )
        with engine.connect() as connection:
            own = connection.exec_driver_sql("SELECT CONNECTION_ID()").scalar()
            listed = connection.exec_driver_sql(
                "SELECT id FROM information_schema.processlist WHERE db = DATABASE()"
            ).scalars()
            for one in [one for one in listed if one != own]:
                connection.exec_driver_sql(f"KILL {one}")

    def test_two_conductors_lose_no_write_of_each_other(self):
        """Each saves what it has changed: an older object of the other takes nothing back."""
        first, second = self.made(), self.cluster()
        saving.save(first, status_reason="of the first")
        saving.save(second, coe_version="v1.99.0")
        found = self.cluster()
        self.assertEqual(("of the first", "v1.99.0"), (found.status_reason, found.coe_version))
