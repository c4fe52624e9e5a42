# SPDX-License-Identifier: Apache-2.0
"""A snapshot of the initialised cloud, restored by later starts.

Initialising takes most of the time of a first start and always ends in the same. The copy is
good for any directory and any ports: the few places where services keep a path or a URL of
their own in their database are rewritten.
"""

import contextlib
import hashlib
import importlib.metadata
import json
import os
from pathlib import Path
import shutil
import sqlite3
import sys

from sandbox.cloud.config import Paths
from sandbox.cloud.services import SERVICES
from sandbox.state import cache_root, State

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
# The code that decides what is in the databases of a fresh cloud.
CODE = [Path(__file__).with_name(f"{name}.py") for name in ("schema", "seed", "services")]
KEPT_FOLDERS = ("db", "data", "keys")
SECRETS_FILE = "secrets.json"
ORIGIN_FILE = "origin.json"

# database, table, column of each text that contains the sandbox's directory or a port.
PLACES = (
    ("keystone", "endpoint", "url"),
    ("glance", "image_locations", "value"),
    ("nova_api", "cell_mappings", "database_connection"),
)


def folder() -> Path:
    """Where the snapshot of this code and these versions is or would be.

    Two checkouts with the same sandbox code share it; any change of that code, of the
    pinned versions or of what is really installed makes another.
    """
    digest = hashlib.sha256(sys.version.encode())
    for path in [CONSTRAINTS, *CODE]:
        digest.update(path.read_bytes())
    for name in SERVICES:
        package = "openstack-placement" if name == "placement" else name
        digest.update(f"{package}=={importlib.metadata.version(package)}".encode())
    return cache_root() / "cloud" / digest.hexdigest()[:16]


def exists() -> bool:
    """Whether a snapshot can be restored."""
    return (folder() / ORIGIN_FILE).exists()


def keep(state: State) -> Path:
    """Copy the databases, keys and data of a cloud that runs, seeded and idle.

    The databases are copied with SQLite's backup, which is consistent under running services.
    """
    target, source = folder(), Paths.of(state).root
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True, mode=0o700)
    for name in KEPT_FOLDERS:
        if name != "db":
            shutil.copytree(source / name, draft / name)
    (draft / "db").mkdir()
    for database in sorted((source / "db").glob("*.sqlite*")):  # Nova's cell0 ends in _cell0
        if not database.name.endswith(("-wal", "-shm")):
            _copy_database(database, draft / "db" / database.name)
    shutil.copy2(source / SECRETS_FILE, draft)
    origin = {"root": str(source), "ports": {name: state.port(name) for name in SERVICES}}
    (draft / ORIGIN_FILE).write_text(json.dumps(origin))
    with contextlib.suppress(OSError):  # another sandbox was faster; its copy is as good
        draft.rename(target)
    shutil.rmtree(draft, ignore_errors=True)
    return target


def restore(state: State) -> Path:
    """Put the snapshot in place of the cloud's databases, keys and data.

    The cloud must not run.
    """
    source, target = folder(), Paths.of(state).root
    for name in KEPT_FOLDERS:
        shutil.rmtree(target / name, ignore_errors=True)
        shutil.copytree(source / name, target / name)
    shutil.copy2(source / SECRETS_FILE, target)
    origin = json.loads((source / ORIGIN_FILE).read_text())
    changes = [(origin["root"], str(target))]
    changes += [(f":{port}/", f":{state.port(name)}/") for name, port in origin["ports"].items()]
    for database, table, column in PLACES:
        _replace(target / "db" / f"{database}.sqlite", table, column, changes)
    return source


def _copy_database(source: Path, target: Path) -> None:
    with (
        contextlib.closing(sqlite3.connect(source)) as original,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        original.backup(copy)


def _replace(path: Path, table: str, column: str, changes: list[tuple[str, str]]) -> None:
    """Replace in one pass: the new port of one service may be the old one of another."""
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        rows = database.execute(f"SELECT rowid, {column} FROM {table}").fetchall()  # noqa: S608
        for row, text in rows:
            database.execute(
                f"UPDATE {table} SET {column} = ? WHERE rowid = ?",  # noqa: S608
                (replaced_once(text or "", changes), row),
            )


def replaced_once(text: str, changes: list[tuple[str, str]]) -> str:
    """The text with the first of the changes that applies to it; an end counts as a ``/``."""
    for old, new in changes:
        if old in f"{text}/":
            return f"{text}/".replace(old, new)[:-1]
    return text
