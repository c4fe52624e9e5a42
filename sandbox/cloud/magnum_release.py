# SPDX-License-Identifier: Apache-2.0
"""Which release of Magnum a sandbox runs, and where its programs are.

Releases that the driver supports besides the sandbox's own have an environment of tox each, with
the upper constraints of their release of OpenStack. There Magnum's own programs are started, as on
a host of a cloud; until Magnum 22 they patch Python's library with eventlet.
"""

import dataclasses
import functools
import importlib.metadata
import os
from pathlib import Path
import re
import subprocess
import sys

from sandbox import progress
from sandbox.state import file_lock, SandboxError

ROOT = Path(__file__).resolve().parents[2]
#: The driver whose clusters this project's driver adopts, in environments of its own.
PREDECESSOR = "magnum-capi-helm"
#: Seconds; more than the stage itself takes before it ends what it has started.
INSTALL_TIMEOUT = 1000.0
_PIN = re.compile(r"^magnum==(\S+)$", re.M)
_SAID = 600


@dataclasses.dataclass(frozen=True)
class Release:
    """A version of Magnum.

    :ivar version: as its package has it, such as ``20.0.2``.
    :ivar prefix: of its virtual environment; the sandbox's own for its own version.
    """

    version: str
    prefix: Path

    @property
    def is_own(self) -> bool:
        """Whether it is installed beside the other services."""
        return self.prefix == Path(sys.prefix)

    @property
    def major(self) -> int:
        """Magnum has one major version for each release of OpenStack."""
        return int(self.version.split(".")[0])

    def with_driver(self, driver: str) -> "Release":
        """The same release with another driver instead of this project's.

        :raises SandboxError: there is no environment with both.
        """
        name = f"predecessor-{self.major}"
        if driver != PREDECESSOR or f"[testenv:{name}]" not in (ROOT / "tox.ini").read_text():
            raise SandboxError(
                f"--driver {driver}: no environment has it with Magnum {self.version}; "
                f"{PREDECESSOR} is there with --magnum 20"
            )
        return dataclasses.replace(self, prefix=ROOT / ".tox" / name)

    def program(self, name: str) -> str:
        """Path of one of its console scripts, or of ``python``."""
        return str(self.prefix / "bin" / name)

    def packaged(self, file: str) -> Path:
        """A file that Magnum's package installs below etc."""
        return self.prefix / "etc" / "magnum" / file


@functools.cache
def known() -> dict[str, Release]:
    """All releases that can be run, by version, the oldest first."""
    found = [Release(importlib.metadata.version("magnum"), Path(sys.prefix))]
    for path in (ROOT / "constraints").glob("magnum-*.txt"):
        pins = _PIN.findall(path.read_text())
        found += [Release(version, ROOT / ".tox" / path.stem) for version in pins]
    return {one.version: one for one in sorted(found, key=lambda one: one.major)}


def choose(text: str) -> Release:
    """The release that a person names by its version or its first number.

    :raises SandboxError: there is none.
    """
    releases = known()
    for version, release in releases.items():
        if text in (version, str(release.major)):
            return release
    raise SandboxError(f"--magnum {text}: choose one of {', '.join(releases)}")


def install(release: Release) -> None:
    """Create its environment, or bring it up to date.

    :raises SandboxError: tox is missing or fails; the text has the end of its output.
    """
    if release.is_own:
        return
    stage = f"{release.prefix.name}-env"
    with progress.step(f"install Magnum {release.version}") as step:
        with file_lock(ROOT / ".tox" / f".{stage}.lock"):
            _run_stage(stage)
        step.size(release.prefix)


def _run_stage(stage: str) -> None:
    runner = ROOT / ".tox-bootstrap" / "bin"
    python = runner / "python"
    if not python.exists():
        raise SandboxError(f"tox is not in {runner}; run `make demo` or tools/bootstrap.sh first")
    try:
        done = subprocess.run(
            [str(python), str(ROOT / "tools" / "stages.py"), stage],
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SandboxError(f"{stage} did not end within {INSTALL_TIMEOUT:.0f} s") from error
    if done.returncode != 0:
        raise SandboxError(f"{stage} failed: {(done.stdout + done.stderr)[-_SAID:]}")


def _environment() -> dict[str, str]:
    """Without what the tox that started this process said about its own environment."""
    ours = ("TOX_", "UV_CONSTRAINT", "PIP_CONSTRAINT", "VIRTUAL_ENV", "PYTHON")
    return {key: value for key, value in os.environ.items() if not key.startswith(ours)}
