# SPDX-License-Identifier: Apache-2.0
"""A snapshot fits every directory and every port."""

import os
from pathlib import Path
import sqlite3
from unittest import mock

from sandbox.cloud import snapshot
from sandbox.cloud.config import Paths
from sandbox.state import State
from sandbox.tests.test_state import StateCase

TABLES = {
    "keystone": "CREATE TABLE endpoint (url TEXT)",
    "glance": "CREATE TABLE image_locations (value TEXT)",
    "nova_api": "CREATE TABLE cell_mappings (database_connection TEXT)",
}


class TestSnapshot(StateCase):
    def setUp(self) -> None:
        super().setUp()
        cache = mock.patch.dict(os.environ, K8S_CAPI_HELM_CACHE=str(self.place / "cache"))
        cache.start()
        self.addCleanup(cache.stop)

    def cloud(self, name: str) -> State:
        """A sandbox with as much of a cloud as the snapshot knows of."""
        box = self.sandbox(name)
        root = Paths.of(box).root
        for folder in ("db", "data", "keys"):
            (root / folder).mkdir(parents=True)
        for database, table in TABLES.items():
            with sqlite3.connect(root / "db" / f"{database}.sqlite") as connection:
                connection.execute(table)
        (root / snapshot.SECRETS_FILE).write_text("{}")
        return box

    def fill(self, box: State, database: str, table: str, texts: list[str]) -> None:
        with sqlite3.connect(self.database(box, database)) as connection:
            connection.executemany(
                f"INSERT INTO {table} VALUES (?)",  # noqa: S608
                [(text,) for text in texts],
            )

    def read(self, box: State, database: str, table: str) -> list[str]:
        with sqlite3.connect(self.database(box, database)) as connection:
            rows = connection.execute(f"SELECT * FROM {table}")  # noqa: S608
            return [row[0] for row in rows]

    def database(self, box: State, name: str) -> Path:
        return Paths.of(box).databases / f"{name}.sqlite"

    def test_urls_get_the_ports_of_the_other_sandbox(self) -> None:
        one, two = self.cloud("one"), self.sandbox("two")
        paths = {"keystone": "/v3", "glance": "", "cinder": "/v3/%(project_id)s"}

        def urls(box: State) -> list[str]:
            return [f"http://127.0.0.1:{box.port(name)}{end}" for name, end in paths.items()]

        self.fill(one, "keystone", "endpoint", urls(one))
        snapshot.keep(one)
        snapshot.restore(two)
        self.assertEqual(urls(two), self.read(two, "keystone", "endpoint"))

    def test_paths_get_the_directory_of_the_other_sandbox(self) -> None:
        one, two = self.cloud("one"), self.sandbox("two")
        self.fill(one, "glance", "image_locations", [f"file://{Paths.of(one).data}/images/1"])
        cell = f"sqlite:///{Paths.of(one).databases}/nova.sqlite"
        self.fill(one, "nova_api", "cell_mappings", [cell, "none:///"])
        snapshot.keep(one)
        snapshot.restore(two)
        self.assertEqual(
            [f"file://{Paths.of(two).data}/images/1"], self.read(two, "glance", "image_locations")
        )
        self.assertEqual(
            [f"sqlite:///{Paths.of(two).databases}/nova.sqlite", "none:///"],
            self.read(two, "nova_api", "cell_mappings"),
        )

    def test_all_databases_and_files_come_along(self) -> None:
        one, two = self.cloud("one"), self.sandbox("two")
        sqlite3.connect(Paths.of(one).databases / "nova.sqlite_cell0").close()
        (Paths.of(one).root / "keys" / "0").write_text("key")
        snapshot.keep(one)
        snapshot.restore(two)
        self.assertEqual(
            {"keystone.sqlite", "glance.sqlite", "nova_api.sqlite", "nova.sqlite_cell0"},
            {path.name for path in Paths.of(two).databases.iterdir()},
        )
        self.assertEqual("key", (Paths.of(two).root / "keys" / "0").read_text())

    def test_what_came_after_is_gone_after_a_restore(self) -> None:
        one = self.cloud("one")
        snapshot.keep(one)
        (Paths.of(one).data / "volume").write_text("x")
        snapshot.restore(one)
        self.assertFalse((Paths.of(one).data / "volume").exists())

    def test_there_is_one_only_after_it_was_kept(self) -> None:
        one = self.cloud("one")
        self.assertFalse(snapshot.exists())
        snapshot.keep(one)
        self.assertTrue(snapshot.exists())
        self.assertEqual(0o700, snapshot.folder().stat().st_mode & 0o777)

    def test_a_port_is_not_replaced_twice(self) -> None:
        swap = [(":1/", ":2/"), (":2/", ":1/")]
        self.assertEqual(
            ["http://a:2", "http://a:1/v3", "http://a:12"],
            [
                snapshot.replaced_once(url, swap)
                for url in ("http://a:1", "http://a:2/v3", "http://a:12")
            ],
        )
