# SPDX-License-Identifier: Apache-2.0
"""Go modules, ours and those that are built where they are: dependencies, and one patch.

A module is named by its directory below sandbox/go, or by the absolute path of another one.

Controller managers built on controller-runtime open their webhook port on every address of the
machine and have no option for it. A sandbox keeps to loopback, so they are compiled with a copy of
controller-runtime in which that one line says 127.0.0.1; nothing else of them is changed.
"""

from collections.abc import Sequence
import dataclasses
import hashlib
import json
import os
from pathlib import Path
import re
import shutil
import subprocess

from sandbox.state import SandboxError

GO = Path(__file__).parent.parent / "go"
OLDEST = (1, 26)
# From here on Go fetches the version that go.mod asks for by itself.
OLDEST_SELF_UPDATING = (1, 21)
LIST_TIMEOUT = 600.0
TRIES = 3
NETWORK_TROUBLE = re.compile(
    r"dial tcp|i/o timeout|TLS handshake timeout|connection reset|unexpected EOF"
    r"|: 5\d\d (Bad Gateway|Service Unavailable|Gateway Timeout)"
)


@dataclasses.dataclass(frozen=True)
class Change:
    """One line of one file of a module, and what stands there instead."""

    module: str
    file: str
    line: str
    replacement: str

    def apply(self, root: Path) -> None:
        """Change the file below ``root``.

        :raises SandboxError: the line is not there exactly once, so this is another version.
        """
        path = root / self.file
        text = path.read_text()
        if text.count(self.line) != 1:
            raise SandboxError(
                f"{self.module}: {self.file} has {text.count(self.line)} times the line that is "
                f"to be changed ({self.line!r}); adapt sandbox/management/gomodules.py to this "
                "version of the module"
            )
        path.write_text(text.replace(self.line, self.replacement))


_LISTEN = (
    'listener, err := tls.Listen("tcp", net.JoinHostPort({}, strconv.Itoa(s.Options.Port)), cfg)'
)
LOOPBACK = Change(
    module="sigs.k8s.io/controller-runtime",
    file="pkg/webhook/server.go",
    line=_LISTEN.format("s.Options.Host"),
    replacement=_LISTEN.format('"127.0.0.1"'),
)


def contents(module: str, *, sources: str = "") -> list[str]:
    """Text of everything in a module of ours that decides what is built from it.

    :param sources: directory of a program that is ours: what its code says decides too.
    """
    files = [GO / module / "go.mod", GO / module / "go.sum"]
    if sources:
        found = (GO / module / sources).rglob("*.go")
        files += sorted(path for path in found if not path.name.endswith("_test.go"))
    return [f"{path.relative_to(GO)}\0{path.read_text()}" for path in files]


def require_go() -> None:
    """Check that a Go compiler is there that can build the modules.

    :raises SandboxError: there is none, or it is too old; the text says what to install.
    """
    wanted = f"install Go {OLDEST[0]}.{OLDEST[1]} or newer from https://go.dev/dl/"
    if shutil.which("go") is None:
        raise SandboxError(
            f"Go is needed to build the management cluster and is not in PATH: {wanted}"
        )
    answer = _go(["go", "env", "GOVERSION", "GOTOOLCHAIN"], Path("/"), 30.0)
    version, _, toolchain = answer.strip().partition("\n")
    judge_go(version, toolchain)


def judge_go(version: str, toolchain: str) -> None:
    """Refuse a Go that can neither build the modules nor fetch one that can.

    :param version: as ``go env GOVERSION`` prints it, like ``go1.26.1``.
    :param toolchain: as ``go env GOTOOLCHAIN`` prints it, like ``auto``.
    :raises SandboxError: it is too old.
    """
    found = re.match(r"go(\d+)\.(\d+)", version)
    number = (int(found[1]), int(found[2])) if found else (0, 0)
    oldest = OLDEST if toolchain.startswith("local") else OLDEST_SELF_UPDATING
    if number < oldest:
        raise SandboxError(
            f"{version or 'Go of an unknown version'} is too old to build the management cluster: "
            f"install Go {OLDEST[0]}.{OLDEST[1]} or newer from https://go.dev/dl/"
        )


def run(module: str | Path, command: list[str], timeout: float) -> str:
    """Run a go command in a module and return its output.

    A download that the network broke off is tried again; Go keeps what it has got.

    :raises SandboxError: it failed or took longer than ``timeout`` seconds.
    """
    for _ in range(TRIES - 1):
        try:
            return _go(command, GO / module, timeout)
        except SandboxError as error:
            if not NETWORK_TROUBLE.search(str(error)):
                raise
    return _go(command, GO / module, timeout)


def directory(module: str | Path, dependency: str) -> Path:
    """Directory of a dependency in the module cache; it is downloaded when it is not there.

    :raises SandboxError: it cannot be downloaded.
    """
    answer = run(module, ["go", "mod", "download", "-json", dependency], LIST_TIMEOUT)
    return Path(json.loads(answer)["Dir"])


def local_modules(module: str | Path) -> list[str]:
    """The modules that a go.mod takes from directories below it.

    They are not part of the module's download; each is one of its own, of the same version.
    """
    found = json.loads(run(module, ["go", "mod", "edit", "-json"], LIST_TIMEOUT))
    return [
        replaced["Old"]["Path"]
        for replaced in found.get("Replace") or ()
        if replaced["New"]["Path"].startswith("./")
    ]


def loopback_modfile(module: str | Path, store: Path, pins: Sequence[str] = ()) -> Path:
    """A go.mod like the module's own, but with the changed copy of controller-runtime.

    :param store: directory below which the copy and the go.mod are kept.
    :param pins: lines of go.sum for the modules that it takes from directories below it.
    """
    source = directory(module, LOOPBACK.module)
    name = hashlib.sha256(f"{source.name}\0{LOOPBACK}".encode()).hexdigest()[:16]
    copy = store / "changed" / name / source.name
    if not copy.exists():
        draft = copy.with_name(f".{copy.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(source, draft, copy_function=shutil.copyfile)
        _make_writable(draft)
        LOOPBACK.apply(draft)
        draft.rename(copy)
    modfile = released_modfile(module, copy.parent, pins)
    run(module, ["go", "mod", "edit", f"-replace={LOOPBACK.module}={copy}", str(modfile)], 60.0)
    return modfile


def released_modfile(module: str | Path, folder: Path, pins: Sequence[str]) -> Path:
    """A go.mod like the module's own, but with releases of the modules in directories below it.

    One that is not pinned is left out: what is built must not need it.

    :param folder: where the go.mod is kept.
    :param pins: lines of go.sum for these modules.
    """
    folder.mkdir(parents=True, exist_ok=True)
    modfile = folder / f"{Path(module).name}.mod"
    sums = (GO / module / "go.sum").read_text().splitlines()
    modfile.with_suffix(".sum").write_text("\n".join([*sums, *pins]) + "\n")
    shutil.copyfile(GO / module / "go.mod", modfile)
    versions = dict(line.split()[:2] for line in pins if "/go.mod " not in line)
    edits = []
    for local in local_modules(module):
        edits += [f"-dropreplace={local}", f"-droprequire={local}"]
        edits += [f"-require={local}@{versions[local]}"] if local in versions else []
    if edits:
        run(module, ["go", "mod", "edit", *edits, str(modfile)], 60.0)
    return modfile


def _make_writable(tree: Path) -> None:
    """The module cache is read-only, and so would be a copy's directories."""
    for folder, _, names in os.walk(tree):
        os.chmod(folder, 0o700)
        for name in names:
            os.chmod(Path(folder, name), 0o600)


def _go(command: list[str], place: Path, timeout: float) -> str:
    environment = {**os.environ, "GOFLAGS": "-buildvcs=false", "GOWORK": "off"}
    try:
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, timeout=timeout
        )
    except subprocess.TimeoutExpired as error:
        raise SandboxError(
            f"`{' '.join(command)}` in {place} took longer than {timeout:.0f} s"
        ) from error
    except OSError as error:
        raise SandboxError(f"`{command[0]}` cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if "go: downloading" not in line]
        raise SandboxError("\n".join([f"`{' '.join(command)}` in {place} failed:", *said[-15:]]))
    return done.stdout
