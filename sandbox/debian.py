# SPDX-License-Identifier: Apache-2.0
"""Programs of Debian packages: downloaded and unpacked below the cache, not installed.

apt-get works on lists and archives of its own there, so that neither root nor a fresh
``apt-get update`` of the machine is needed, and nothing of the machine changes
(https://manpages.debian.org/bookworm/apt/apt-get.8.en.html: ``-s``, ``download``, ``-o``).
"""

import os
from pathlib import Path
import platform
import shutil
import subprocess

from sandbox import progress
from sandbox.state import cache_root, file_lock, SandboxError

APT_TIMEOUT = 600.0
_TOOLS = ("apt-get", "dpkg-deb")
_SAID = 600


def tree(package: str, proof: str, *, instead: str = "without it (--transport memory)") -> Path:
    """Where the files of a package, and of all that it needs and the machine lacks, lie as below /.

    :param proof: path of one of its files without the leading ``/``; a machine that has it has
        the package installed, and then that is taken.
    :param instead: how to do where it cannot be had, for the person who reads the refusal.
    :raises SandboxError: it is neither installed nor can it be downloaded.
    """
    if Path("/", proof).exists():
        return Path("/")
    place = cache_root() / "debian" / f"{package}-{_release()}"
    with file_lock(place.with_name(".lock")):
        if not (place / proof).exists():
            _require_tools(package, instead)
            with progress.step(f"unpack {package} of {_release()}, once") as step:
                _fill(package, place, instead)
                step.size(place)
    return place


def libraries(place: Path) -> list[Path]:
    """Directories below a tree that hold shared libraries, for ``LD_LIBRARY_PATH``.

    None when the package is installed: the system's linker knows its own.
    """
    if place == Path("/"):
        return []
    return [path for part in ("lib", "usr/lib") for path in sorted(place.glob(f"{part}/*-linux-*"))]


def needed(simulation: str) -> list[str]:
    """Names of the packages that ``apt-get -s install`` says it would install.

    They stand in lines like ``Inst socat (1.7.4.4-2 Debian:12.15/oldstable [amd64])``.
    """
    lines = [line.split() for line in simulation.splitlines()]
    return [words[1] for words in lines if words[:1] == ["Inst"]]


def _release() -> str:
    """Like ``debian-12``: packages of one release do not run on another."""
    try:
        said = platform.freedesktop_os_release()
    except OSError:
        said = {}
    return f"{said.get('ID', 'unknown')}-{said.get('VERSION_ID', '0')}"


def _require_tools(package: str, instead: str) -> None:
    missing = [name for name in _TOOLS if shutil.which(name) is None]
    if missing:
        raise SandboxError(
            f"{package} is not installed here, and without {' and '.join(missing)} it cannot be "
            f"downloaded from Debian; install {package}, or continue {instead}"
        )


def _fill(package: str, place: Path, instead: str) -> None:
    work = place.with_name(f".{place.name}.{os.getpid()}")
    shutil.rmtree(work, ignore_errors=True)
    for folder in ("lists/partial", "cache/archives/partial", "debs", "root"):
        (work / folder).mkdir(parents=True)
    try:
        _apt(package, work, "update")
        _apt(package, work, "download", *_lacking(package, work))
        for archive in sorted((work / "debs").glob("*.deb")):
            _run(package, ["dpkg-deb", "-x", str(archive), str(work / "root")], work)
        shutil.rmtree(place, ignore_errors=True)
        (work / "root").rename(place)
    except SandboxError as error:
        raise SandboxError(f"{error}, or continue {instead}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _lacking(package: str, work: Path) -> list[str]:
    options = ("--no-install-recommends", "-s", "install")
    return needed(_apt(package, work, *options, package)) or [package]


def _apt(package: str, work: Path, *arguments: str) -> str:
    options = {
        "Dir::State::lists": work / "lists",
        "Dir::Cache": work / "cache",
        "APT::Sandbox::User": "root",  # the user _apt may not write there
        "Debug::NoLocking": "1",
    }
    pairs = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
    return _run(package, ["apt-get", "-q", *pairs, *arguments], work / "debs")


def _run(package: str, argv: list[str], folder: Path) -> str:
    done = subprocess.run(
        argv,
        cwd=folder,
        env={**os.environ, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        timeout=APT_TIMEOUT,
    )
    if done.returncode:
        raise SandboxError(
            f"{package} cannot be downloaded from Debian: {argv[0]} exited with {done.returncode}: "
            f"{done.stdout[-_SAID:].strip()}\nCheck the machine's apt sources and network, "
            f"install {package} yourself"
        )
    return done.stdout
