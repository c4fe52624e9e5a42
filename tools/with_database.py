# SPDX-License-Identifier: Apache-2.0
"""Run a command with a temporary MariaDB: with_database DIRECTORY COMMAND...

The command finds Magnum's database, made by Magnum's own migrations, in ``K8S_CAPI_HELM_DATABASE``.
Where MariaDB cannot be had this says why, counts one skipped test, and is no failure.
"""

from __future__ import annotations

import os
from pathlib import Path
import subprocess
import sys

from sandbox import database, processes
from sandbox.cloud.ini import ini, write_private
from sandbox.state import SandboxError, State

#: Seconds for Magnum's migrations.
_MIGRATION = 300
VARIABLE = "K8S_CAPI_HELM_DATABASE"


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print("usage: with_database DIRECTORY COMMAND...", file=sys.stderr)
        return 2
    try:
        database.fetch()
    except SandboxError as error:
        # The form in which stestr counts, for the sum of a whole run (tools/stages.py).
        print(f"Not tested on MariaDB: {' '.join(str(error).split())}\n - Skipped: 1")
        return 0
    try:
        with processes.throw_away(Path(arguments[0])) as state:
            url = database.start(state)
            migrate(state, url)
            environment = {**os.environ, VARIABLE: url}
            return subprocess.run(arguments[1:], env=environment, check=False).returncode
    except SandboxError as error:
        print(f"with_database: {error}", file=sys.stderr)
        return 1


def migrate(state: State, url: str) -> None:
    """Make Magnum's tables as its operators do.

    :raises SandboxError: Magnum's migrations fail.
    """
    config = state.path(database.NAME, "magnum.conf")
    write_private(config, ini({"database": {"connection": url}}))
    program = str(Path(sys.executable).with_name("magnum-db-manage"))
    processes.run(
        state,
        "magnum-db-manage",
        [program, "--config-file", str(config), "upgrade"],
        env=os.environ,
        timeout=_MIGRATION,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
