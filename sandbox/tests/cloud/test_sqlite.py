# SPDX-License-Identifier: Apache-2.0
"""Threads that read first and write later do not fail at each other."""

import threading

import sqlalchemy
from sqlalchemy import event, exc
from sqlalchemy.engine import Engine

from sandbox.cloud import sqlite
from sandbox.tests.test_state import StateCase


class TestConcurrentTransactions(StateCase):
    def setUp(self) -> None:
        super().setUp()
        self.engine = sqlalchemy.create_engine(f"sqlite:///{self.place / 'one.sqlite'}")
        self.addCleanup(self.engine.dispose)

    def tune(self) -> None:
        sqlite.tune()
        self.addCleanup(event.remove, Engine, "connect", sqlite._set_up)
        self.addCleanup(event.remove, Engine, "before_cursor_execute", sqlite._begin_late)

    def begin_like_oslo_db(self) -> None:
        """oslo.db opens transactions itself, with the first statement."""

        @event.listens_for(self.engine, "connect")
        def connect(connection: object, _: object) -> None:
            connection.isolation_level = None  # type: ignore[attr-defined]

        @event.listens_for(self.engine, "begin")
        def begin(connection: sqlalchemy.Connection) -> None:
            connection.exec_driver_sql("BEGIN")

    def count_to(self, total: int) -> list[Exception]:
        """Two threads read and write one row, both having read before one writes."""
        with self.engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE counter (n INTEGER)")
            connection.exec_driver_sql("INSERT INTO counter VALUES (0)")
        failures: list[Exception] = []
        both_have_read = threading.Barrier(2)

        def work() -> None:
            for _ in range(total):
                both_have_read.wait(timeout=60)
                try:
                    with self.engine.begin() as connection:
                        connection.exec_driver_sql("SELECT n FROM counter").fetchall()
                        both_have_read.wait(timeout=60)
                        connection.exec_driver_sql("UPDATE counter SET n = n + 1")
                except exc.OperationalError as error:
                    failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return failures

    def test_without_tuning_one_of_two_fails(self) -> None:
        self.begin_like_oslo_db()
        self.assertIn("database is locked", str(self.count_to(1)))

    def test_with_tuning_both_write(self) -> None:
        self.tune()
        self.begin_like_oslo_db()
        self.assertEqual([], self.count_to(10))
        with self.engine.connect() as connection:
            self.assertEqual(20, connection.exec_driver_sql("SELECT n FROM counter").scalar())
