# SPDX-License-Identifier: Apache-2.0
"""Magnum's own programs, from the environment of its release: API, conductors, migrations."""

import os
from pathlib import Path

from sandbox import database, processes, progress
from sandbox.cloud.conductor_layout import Layout
from sandbox.cloud.config import Paths
from sandbox.cloud.magnum_release import Release
from sandbox.state import State

API = "magnum"
_MIGRATION_TIMEOUT = 300.0
_MIGRATIONS = "magnum-db-manage"


def migrate(state: State, release: Release, env: dict[str, str]) -> None:
    """Start the database and bring its tables to those of a release, as operators do.

    :raises SandboxError: MariaDB cannot be had, or the migrations fail.
    """
    database.resume(state)
    with progress.step(f"cloud: {_MIGRATIONS} upgrade of Magnum {release.version}"):
        config = ["--config-file", str(Paths.of(state).conf(API))]
        processes.run(
            state,
            _MIGRATIONS,
            [release.program(_MIGRATIONS), *config, "upgrade"],
            env=env,
            timeout=_MIGRATION_TIMEOUT,
        )


def start(state: State, name: str, env: dict[str, str]) -> None:
    """Start the API or a conductor; it need not answer yet."""
    release = Layout.of(state).release
    assert release is not None
    path = os.pathsep.join([str(Path(release.program("python")).parent), env["PATH"]])
    files = [str(Paths.of(state).conf(conf)) for conf in dict.fromkeys((API, name))]
    arguments = [f"--config-file={file}" for file in files]
    if name == API:
        command = [release.program("magnum-api")]
    else:
        # As its own console script does, on eventlet.
        script = Path(__file__).with_name("watched_conductor.py")
        command = [release.program("python"), "-W", "ignore", str(script)]
    processes.start(state, name, [*command, *arguments], env={**env, "PATH": path})
