# SPDX-License-Identifier: Apache-2.0
"""SQLite settings for the threads of an OpenStack service.

oslo.db opens every transaction with a plain BEGIN. Two of them that read first and write later
both hold a read lock, neither can upgrade, and one fails at once with "database is locked",
whatever the time-out. Here a transaction begins at its first write, with BEGIN IMMEDIATE, which
waits its turn (https://www.sqlite.org/lang_transaction.html). Write-ahead logging lets readers
go on meanwhile (https://www.sqlite.org/wal.html).
"""

from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

LOCK_WAIT_MS = 30_000
_READS = ("SELECT", "PRAGMA", "WITH", "BEGIN", "RELEASE", "ROLLBACK")


def tune() -> None:
    """Make every SQLite engine of this process behave so; call before the first one is made."""
    event.listen(Engine, "connect", _set_up)
    event.listen(Engine, "before_cursor_execute", _begin_late, retval=True)


def _set_up(connection: Any, _record: Any) -> None:
    if type(connection).__module__.startswith("sqlite3"):
        connection.execute(f"PRAGMA busy_timeout={LOCK_WAIT_MS}")
        connection.execute("PRAGMA journal_mode=WAL")


def _begin_late(
    connection: Connection,
    _cursor: Any,
    statement: str,
    parameters: Any,
    _context: Any,
    _executemany: bool,
) -> tuple[str, Any]:
    if connection.dialect.name != "sqlite":
        return statement, parameters
    if statement == "BEGIN":
        return "SELECT 1", ()
    raw: Any = connection.connection.dbapi_connection
    if not raw.in_transaction and not statement.lstrip("( \n").upper().startswith(_READS):
        raw.execute("BEGIN IMMEDIATE")
    return statement, parameters
