# SPDX-License-Identifier: Apache-2.0
"""Databases of Magnum for benchmarks with several threads or processes: MariaDB, else SQLite.

SQLite takes one who writes at a time, so what waits for it is not the driver's delay.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
from pathlib import Path

import sqlalchemy

from sandbox import database, processes
from sandbox.state import SandboxError

MARIADB, SQLITE = "MariaDB", "SQLite"


class Databases:
    """Makes databases.

    :ivar kind: :data:`MARIADB`, or :data:`SQLITE`.
    """

    def __init__(self, place: Path, server: str = "") -> None:
        self.kind = MARIADB if server else SQLITE
        self._place = place
        self._server = server
        self._made = 0

    def new(self) -> str:
        """SQLAlchemy's URL of a database that is empty."""
        self._made += 1
        name = f"magnum_{self._made}"
        if not self._server:
            return f"sqlite:///{self._place / name}.sqlite?timeout=60"
        server = sqlalchemy.make_url(self._server)
        engine = sqlalchemy.create_engine(server)
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text(f"CREATE DATABASE {name} CHARACTER SET utf8mb3"))
        engine.dispose()
        return server.set(database=name).render_as_string(hide_password=False)


@contextlib.contextmanager
def databases(place: Path) -> Iterator[Databases]:
    """They go with the block; where MariaDB cannot be had this says why."""
    try:
        database.fetch()
    except SandboxError as error:
        print(f"Not on MariaDB: {' '.join(str(error).split())}")
        yield Databases(place)
        return
    with processes.throw_away(place / "mariadb") as state:
        yield Databases(place, database.start(state))


class Reasons:
    """What Magnum's rows say, for one who looks at them all the time from another process."""

    def __init__(self, url: str) -> None:
        engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
        self._connection = engine.connect()

    def close(self) -> None:
        """Look no more."""
        self._connection.close()
        self._connection.engine.dispose()

    def of(self, releases: list[str]) -> dict[str, str]:
        """The reasons of clusters, by the names of their releases."""
        text = "SELECT stack_id, status_reason FROM cluster WHERE stack_id IN :releases"
        found = sqlalchemy.text(text).bindparams(
            sqlalchemy.bindparam("releases", releases, expanding=True)
        )
        return {row[0]: row[1] or "" for row in self._connection.execute(found)}
