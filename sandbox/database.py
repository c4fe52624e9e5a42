# SPDX-License-Identifier: Apache-2.0
"""MariaDB: one server on loopback with its own data directory, for tests of records.

It is the database with which operators run Magnum, configured as strictly as they have it: InnoDB,
REPEATABLE READ, and tables in utf8mb3, which is what Magnum's migrations ask for. Whether a commit
has reached the disk is nobody's business here.
"""

import functools
import os
from pathlib import Path
import secrets
import shutil
import time

from sandbox import debian, processes, progress
from sandbox.cloud.ini import write_private
from sandbox.state import State

NAME = "mariadb"
USER = "magnum"
#: Magnum's own database, made by its migrations; each test process copies the tables of it.
SCHEMA = "magnum"
START_TIMEOUT = 90.0
_HOST = "127.0.0.1"
_SERVER = "usr/sbin/mariadbd"
_INSTALLER = "usr/bin/mariadb-install-db"
_PASSWORD = "password"  # noqa: S105


def fetch() -> Path:
    """Where the program is; downloaded at the first time.

    :raises SandboxError: it is neither installed nor can it be downloaded.
    """
    return debian.tree("mariadb-server", _SERVER, instead="without tests on MariaDB")


def start(state: State) -> str:
    """Start a server with an empty database of Magnum; returns the URL for SQLAlchemy.

    :raises SandboxError: it cannot be had, or does not come up.
    """
    stop(state)
    shutil.rmtree(state.root / NAME, ignore_errors=True)
    return resume(state)


def resume(state: State) -> str:
    """Start a server, unless it runs, with the database that is there; an empty one at first.

    :raises SandboxError: as :func:`start`.
    """
    place = fetch()
    home = state.path(NAME, "x").parent
    data, first = home / "data", home / "first.sql"
    with progress.step("start MariaDB") as step:
        password, port = _password(state), state.port(NAME)
        if not first.exists():
            _install(state, place, data)
            write_private(first, _first_statements(password))
        processes.start(
            state,
            NAME,
            [str(place / _SERVER), *_common(place, data), *_options(place, port, first)],
            env=_environment(place),
            cwd=data,
            ready=functools.partial(answers, port, password),
            timeout=START_TIMEOUT,
        )
        step.note(f"{processes.memory_mib(processes.members(state, NAME)):.0f} MiB of memory")
    return url(state)


def url(state: State) -> str:
    """Where SQLAlchemy finds Magnum's database."""
    return f"mysql+pymysql://{USER}:{_password(state)}@{_HOST}:{state.port(NAME)}/{SCHEMA}"


def _password(state: State) -> str:
    """Chosen once for each database."""
    path = state.path(NAME, _PASSWORD)
    if not path.exists():
        write_private(path, secrets.token_hex(16))
    return path.read_text()


def _install(state: State, place: Path, data: Path) -> None:
    shutil.rmtree(data, ignore_errors=True)
    processes.run(
        state,
        f"{NAME}-install",
        [str(place / _INSTALLER), *_common(place, data), *_NO_LOGINS],
        env=_environment(place),
        timeout=START_TIMEOUT,
    )


def stop(state: State) -> None:
    """End it."""
    processes.stop(state, NAME, timeout=30.0)


def answers(port: int, password: str) -> bool:
    """Whether the user can log in."""
    import pymysql

    try:
        pymysql.connect(
            host=_HOST,
            port=port,
            user=USER,
            password=password,
            database=SCHEMA,
            connect_timeout=2,
        ).close()
    except pymysql.MySQLError:
        time.sleep(0.1)
        return False
    return True


_NO_LOGINS = ("--skip-test-db", "--auth-root-authentication-method=normal")


def _common(place: Path, data: Path) -> list[str]:
    """See https://mariadb.com/kb/en/mariadbd-options/; no file of the machine is read."""
    found = ["--no-defaults", f"--basedir={place / 'usr'}", f"--datadir={data}"]
    # It refuses to run as root unless it is told to.
    return [*found, "--user=root"] if os.geteuid() == 0 else found


def _options(place: Path, port: int, first: Path) -> list[str]:
    return [
        "--socket=mariadb.sock",  # below the data directory: a longer path would not do
        f"--bind-address={_HOST}",
        f"--port={port}",
        f"--init-file={first}",
        f"--lc-messages-dir={place / 'usr/share/mysql'}",
        f"--plugin-dir={place / 'usr/lib/mysql/plugin'}",
        "--skip-name-resolve",
        "--skip-log-bin",
        "--transaction-isolation=REPEATABLE-READ",
        "--character-set-server=utf8mb3",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-doublewrite=0",
        "--innodb-buffer-pool-size=64M",
    ]


def _first_statements(password: str) -> str:
    """One statement a line: what the server does at each start, before anybody can log in."""
    return (
        f"CREATE DATABASE IF NOT EXISTS {SCHEMA} CHARACTER SET utf8mb3;\n"
        f"CREATE USER IF NOT EXISTS {USER}@'{_HOST}' IDENTIFIED BY '{password}';\n"
        f"GRANT ALL ON *.* TO {USER}@'{_HOST}';\n"
    )


def _environment(place: Path) -> dict[str, str]:
    found = dict(os.environ)
    own = [str(path) for path in debian.libraries(place)]
    if own:
        others = found.get("LD_LIBRARY_PATH")
        found["LD_LIBRARY_PATH"] = os.pathsep.join([*own, *([others] if others else [])])
    return found
