# SPDX-License-Identifier: Apache-2.0
"""Magnum's database of the tests: SQLite in memory, or the MariaDB that an environment names.

``K8S_CAPI_HELM_DATABASE`` is SQLAlchemy's URL of a database that Magnum's migrations have made
(``tox -e mariadb``). Each test process has one of its own beside it, with copies of its tables, as
several run side by side; between two tests the rows go and the tables stay.
"""

from __future__ import annotations

import os
import pickle
from typing import Any
import unittest

import fixtures
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy

import magnum.conf
from magnum.tests.unit.db import base

CONF = magnum.conf.CONF
URL = os.environ.get("K8S_CAPI_HELM_DATABASE", "")
_VERSION = "alembic_version"
#: Of SQLite itself.
_SEQUENCE = "sqlite_sequence"


def use() -> None:
    """Let Magnum's own tests of the database use the chosen one; before their ``setUp``."""
    if URL and not isinstance(base._DB_CACHE, MariaDB):
        base._DB_CACHE = MariaDB(URL)


def on_mariadb(test: Any) -> Any:
    """Mark what only a real server can show."""
    return unittest.skipUnless(URL, "needs MariaDB: tox -e mariadb")(test)


class Rows:
    """Photographs of all rows, of tests that go back to a moment."""

    _tables: list[str]

    def photograph(self) -> bytes:
        """All rows of all tables."""
        with enginefacade.writer.get_engine().connect() as connection:
            rows = {
                table: [dict(row) for row in self._rows(connection, table)]
                for table in self._tables
            }
        return pickle.dumps(rows)

    def restore(self, picture: bytes) -> None:
        """Have these rows and no others."""
        with enginefacade.writer.get_engine().begin() as connection:
            for table, rows in pickle.loads(picture).items():  # noqa: S301 - our own
                connection.exec_driver_sql(f"DELETE FROM `{table}`")  # noqa: S608
                for row in rows:
                    fields = ", ".join(f"`{key}`" for key in row)
                    values = ", ".join(f":{key}" for key in row)
                    text = f"INSERT INTO `{table}` ({fields}) VALUES ({values})"  # noqa: S608
                    connection.execute(sqlalchemy.text(text), row)

    @staticmethod
    def _rows(connection: Any, table: str) -> Any:
        return connection.exec_driver_sql(
            f"SELECT * FROM `{table}` ORDER BY id"  # noqa: S608 - our own names
        ).mappings()


class MariaDB(Rows, fixtures.Fixture):
    """Empty tables of Magnum for one test."""

    def __init__(self, url: str) -> None:
        fixtures.Fixture.__init__(self)
        whole = sqlalchemy.make_url(url)
        self._template = whole.database
        self.url = whole.set(database=f"{whole.database}_{os.getpid()}")
        self._admin = whole
        self._tables: list[str] = []

    def _setUp(self) -> None:
        # Magnum's fixture names SQLite again for each test; an engine is made at the first use.
        text = self.url.render_as_string(hide_password=False)
        CONF.set_override("connection", text, "database")
        if not self._tables:
            self._copy_tables()
        with enginefacade.writer.get_engine().begin() as connection:
            for table in self._tables:
                connection.exec_driver_sql(f"DELETE FROM `{table}`")  # noqa: S608

    def _copy_tables(self) -> None:
        engine = sqlalchemy.create_engine(self._admin)
        with engine.begin() as connection:
            listed = connection.exec_driver_sql("SHOW TABLES").scalars().all()
            self._tables = sorted(one for one in listed if one != _VERSION)
            name = self.url.database
            connection.exec_driver_sql(f"DROP DATABASE IF EXISTS `{name}`")
            connection.exec_driver_sql(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb3")
            for table in self._tables:
                connection.exec_driver_sql(
                    f"CREATE TABLE `{name}`.`{table}` LIKE `{self._template}`.`{table}`"
                )
        engine.dispose()


class SQLite(Rows):
    """The one in memory, for the same."""

    def __init__(self) -> None:
        with enginefacade.writer.get_engine().connect() as connection:
            self._connection = connection.connection.dbapi_connection
        listed = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._tables = sorted(name for (name,) in listed if name not in (_VERSION, _SEQUENCE))

    def photograph(self) -> bytes:
        """The whole file; of rows where Python (before 3.11) cannot write it."""
        if not hasattr(self._connection, "serialize"):
            return super().photograph()
        return bytes(self._connection.serialize())

    def restore(self, picture: bytes) -> None:
        """Have that file."""
        if not hasattr(self._connection, "deserialize"):
            super().restore(picture)
        else:
            self._connection.deserialize(picture)


def current() -> Any:
    """The database of the running test."""
    return base._DB_CACHE if URL else SQLite()
