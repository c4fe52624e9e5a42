# SPDX-License-Identifier: Apache-2.0
"""A backup of Magnum's database, which is SQLite in these sandboxes, and restoring it."""

from __future__ import annotations

import contextlib
import datetime
from pathlib import Path
import sqlite3
import tempfile

from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from sandbox.cloud.config import Paths

#: Seconds to wait for a lock that Magnum has.
_PATIENCE = 30.0


def save(age: datetime.timedelta = datetime.timedelta()) -> Path:
    """Save the database while Magnum runs; returns the file.

    :param age: by which all nodegroups of the backup look older than they are.
    """
    path = Path(tempfile.mkdtemp()) / "backup.sqlite"
    with contextlib.closing(_connection(path)) as saved:
        with contextlib.closing(_connection(_database())) as live:
            live.backup(saved)
        if age:
            then = (datetime.datetime.now(datetime.UTC) - age).strftime("%Y-%m-%d %H:%M:%S.%f")
            saved.execute("UPDATE nodegroup SET created_at = ?, updated_at = ?", (then, then))
            saved.commit()
    return path


def restore(path: Path) -> None:
    """Put a backup in place of the database; Magnum is started anew after it."""
    with contextlib.closing(_connection(path)) as saved:
        with contextlib.closing(_connection(_database())) as live:
            saved.backup(live)


def _database() -> Path:
    return Path(Paths.of(setting.state()).databases / "magnum.sqlite")


def _connection(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_PATIENCE)
