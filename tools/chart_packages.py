# SPDX-License-Identifier: Apache-2.0
"""Create the packages of the charts and the index of a repository.

The charts have versions of their own and are released without the driver. Each package is what
``helm package`` makes of a chart in ``charts/`` without texts for readers of the repository
(``compact_chart``); its version is that of its Chart.yaml. With a key
of the operator it gets a provenance file, which ``helm verify`` and ``helm install --verify`` read.

Every file in a package has the time of the charts' last commit (or SOURCE_DATE_EPOCH), so that two
runs over the same sources make the same bytes. Helm 4 keeps the times that it finds; Helm 3 writes
the present one, so only what it signs is another each time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
import dataclasses
import gzip
import os
from pathlib import Path
import shutil
import subprocess
import sys
import tarfile
import tempfile

from tools import compact_chart

ROOT = Path(__file__).resolve().parent.parent
CHARTS = ROOT / "charts"
TIMEOUT = 120.0
#: Runs until Helm has put two charts in order; each has an even chance.
ATTEMPTS = 40

#: Of a checkout without its history. A time that every archive format knows.
NO_HISTORY = 315532800


class CannotPackage(Exception):
    """The packages cannot be made; the text says what to do."""


@dataclasses.dataclass(frozen=True)
class Key:
    """The key that packages are signed with, as Helm wants to hear of it."""

    name: str
    keyring: Path
    passphrase_file: Path | None = None

    def arguments(self) -> list[str]:
        """For ``helm package``."""
        found = ["--sign", f"--key={self.name}", f"--keyring={self.keyring}"]
        if self.passphrase_file:
            found.append(f"--passphrase-file={self.passphrase_file}")
        return found


def run(*command: str | Path) -> str:
    """What a program prints.

    :raises CannotPackage: it fails; the text is what it says.
    """
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise CannotPackage(f"{Path(command[0]).name} {command[1]} fails: {said}")
    return done.stdout


def epoch() -> int:
    """The time of every file in a package: SOURCE_DATE_EPOCH, or the last commit of the charts."""
    if said := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(said)
    try:
        found = run("git", "-C", ROOT, "log", "-1", "--format=%ct", "--", "charts").strip()
    except (CannotPackage, OSError):
        return NO_HISTORY
    return int(found) if found else NO_HISTORY


def package(helm: Path, chart: Path, target: Path, key: Key | None = None) -> Path:
    """Pack one chart; the package in *target*, with its ``.prov`` beside it if there is a key.

    :raises CannotPackage: Helm refuses the chart or the key.
    """
    time = epoch()
    with tempfile.TemporaryDirectory() as place:
        # A copy, whose times are set, and whose subchart is no link.
        copy = Path(place) / chart.name
        shutil.copytree(chart, copy)
        compact_chart.compact(copy)
        for found in copy.rglob("*"):
            os.utime(found, (time, time))
        made = Path(place) / "made"
        for _ in range(ATTEMPTS):
            run(helm, "package", copy, f"--destination={made}", *(key.arguments() if key else ()))
            (archive,) = made.glob("*.tgz")
            if is_sorted(archive):
                break
        else:
            raise CannotPackage(f"{archive.name}: the charts inside are in no order")
        if key is None:
            settle(archive, time)
        else:
            run(helm, "verify", archive, f"--keyring={key.keyring}")
        target.mkdir(parents=True, exist_ok=True)
        for found in made.iterdir():
            shutil.copyfile(found, target / found.name)
        return target / archive.name


def is_sorted(archive: Path) -> bool:
    """Whether the charts inside a chart are in the order of their names.

    Helm reads them from a map, whose order is another one each time, and what it has signed must
    not be written anew.
    """
    with tarfile.open(archive) as packed:
        parts = [Path(name).parts for name in packed.getnames()]
    found = list(dict.fromkeys(part[2] for part in parts if part[1] == "charts"))
    return found == sorted(found)


def settle(archive: Path, time: int) -> None:
    """Rewrite an archive with one time for all files in it."""
    settled = archive.with_suffix(".new")
    with (
        tarfile.open(archive) as before,
        settled.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=time, fileobj=raw) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as after,
    ):
        for member in before:
            member.mtime = time
            member.pax_headers = {}
            after.addfile(member, before.extractfile(member))
    settled.replace(archive)


def index(helm: Path, packages: Iterable[Path], target: Path, url: str, merge: Path | None) -> None:
    """Write ``index.yaml`` of *target* over packages and, if given, an index that there is.

    :param url: where the packages will be; "" for the place of the index.
    :raises CannotPackage: Helm refuses, or there is no index to merge with.
    """
    if merge is not None and not merge.is_file():
        raise CannotPackage(f"There is no index {merge}. Without CHART_INDEX a new one is made.")
    with tempfile.TemporaryDirectory() as place:
        # Of these and no others: older packages may lie in the target.
        for found in packages:
            shutil.copyfile(found, Path(place) / found.name)
        more = [f"--url={url}"] if url else []
        more += [f"--merge={merge.resolve()}"] if merge else []
        run(helm, "repo", "index", place, *more)
        shutil.copyfile(Path(place) / "index.yaml", target / "index.yaml")


def make(helm: Path, target: Path, key: Key | None, url: str, merge: Path | None) -> list[Path]:
    """All packages and their index in *target*.

    :raises CannotPackage: Helm refuses.
    """
    charts = sorted(path.parent for path in CHARTS.glob("*/Chart.yaml"))
    packages = [package(helm, chart, target, key) for chart in charts]
    index(helm, packages, target, url, merge)
    return packages


def key_of(arguments: argparse.Namespace) -> Key | None:
    """The operator's key, None without one.

    :raises CannotPackage: half of it is named.
    """
    if not arguments.key:
        return None
    if not arguments.keyring:
        raise CannotPackage(
            f"CHART_KEY={arguments.key} needs CHART_KEYRING, a file with the secret key, as "
            "'gpg --export-secret-keys NAME > FILE' writes it."
        )
    passphrase = Path(arguments.passphrase_file) if arguments.passphrase_file else None
    return Key(arguments.key, Path(arguments.keyring), passphrase)


def helm_program() -> Path:
    """$HELM, or the sandbox's Helm 4: what it signs is the same each time, too."""
    if named := os.environ.get("HELM"):
        return Path(named)
    from sandbox.management import binaries

    return binaries.one(binaries.HELM4)


def parser() -> argparse.ArgumentParser:
    """The command line; make speaks through the environment."""
    found = argparse.ArgumentParser(
        prog="chart_packages", description=(__doc__ or "").partition("\n")[0]
    )
    said = os.environ.get
    found.add_argument("directory", help="directory of the packages and the index")
    found.add_argument("--key", default=said("CHART_KEY"), help="user id of the signing key")
    found.add_argument("--keyring", default=said("CHART_KEYRING"), help="file with the secret key")
    found.add_argument(
        "--passphrase-file",
        default=said("CHART_PASSPHRASE_FILE"),
        help="file with the key's passphrase, if it has one",
    )
    found.add_argument(
        "--url", default=said("CHART_URL", ""), help="URL of the packages, for the index"
    )
    found.add_argument("--merge", default=said("CHART_INDEX"), help="existing index to extend")
    return found


def main(arguments: list[str]) -> int:
    asked = parser().parse_args(arguments)
    target = Path(asked.directory)
    merge = Path(asked.merge) if asked.merge else None
    try:
        key = key_of(asked)
        for made in make(helm_program(), target, key, asked.url, merge):
            signed = f"signed by {key.name}" if key else "not signed: CHART_KEY names no key"
            print(f"{made}: {signed}", flush=True)
        print(f"{target / 'index.yaml'}: the index of a repository", flush=True)
    except CannotPackage as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
