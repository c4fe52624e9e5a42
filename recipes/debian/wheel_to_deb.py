#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Make a Debian package of the wheel of a pure Python library: wheel_to_deb.py WHEEL [DIRECTORY].

For libraries that the driver needs and Debian has no package of, such as pyhelm3, or not in a
sufficient version. The package has the library's own requirements with their lower bounds
(https://packaging.python.org/en/latest/specifications/core-metadata/). What is more than a library
is refused: compiled code, programs, files for other directories.
"""

import argparse
from email.message import Message
from email.parser import Parser
from pathlib import Path
import subprocess
import tempfile
import zipfile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

DIST_PACKAGES = Path("usr", "lib", "python3", "dist-packages")
#: A higher revision, such as that of Debian itself, replaces this one.
REVISION = "0local1"
TIMEOUT = 120


def debian_name(name: str) -> str:
    """The package of a library (https://www.debian.org/doc/packaging-manuals/python-policy/)."""
    plain = canonicalize_name(name)
    return "python3-" + {"pyyaml": "yaml"}.get(plain, plain)


def depends(metadata: Message) -> str:
    """The requirements of a wheel in the form of Debian's field ``Depends``."""
    found = ["python3"]
    for text in metadata.get_all("Requires-Dist", []):
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        floors = [part.version for part in requirement.specifier if part.operator in (">=", "~=")]
        found += [f"{debian_name(requirement.name)} (>= {floor})" for floor in floors]
        found += [] if floors else [debian_name(requirement.name)]
    return ", ".join(found)


def control(metadata: Message) -> str:
    """The file ``control`` of the package."""
    name, version = metadata["Name"], metadata["Version"]
    fields = {
        "Package": debian_name(name),
        "Version": f"{version}-{REVISION}",
        "Section": "python",
        "Priority": "optional",
        "Architecture": "all",
        "Maintainer": "built on this host <root@localhost>",
        "Depends": depends(metadata),
        "Description": " ".join((metadata["Summary"] or name).split()),
    }
    return "".join(f"{field}: {value}\n" for field, value in fields.items())


def read(archive: zipfile.ZipFile) -> Message:
    """The metadata of a wheel.

    :raises SystemExit: it has more than a library of pure Python.
    """
    names = archive.namelist()
    [info] = {name.split("/")[0] for name in names if name.split("/")[0].endswith(".dist-info")}
    if "Root-Is-Purelib: true" not in archive.read(f"{info}/WHEEL").decode():
        raise SystemExit(f"{archive.filename} has compiled code: build from its source")
    points = (
        archive.read(f"{info}/entry_points.txt") if f"{info}/entry_points.txt" in names else b""
    )
    if b"_scripts]" in points or any(name.split("/")[0].endswith(".data") for name in names):
        raise SystemExit(f"{archive.filename} has programs or data: build from its source")
    return Parser().parsestr(archive.read(f"{info}/METADATA").decode())


def build(wheel: Path, out: Path) -> Path:
    """The package of a wheel, in a directory."""
    with tempfile.TemporaryDirectory() as work, zipfile.ZipFile(wheel) as archive:
        metadata, root = read(archive), Path(work, "root")
        archive.extractall(root / DIST_PACKAGES)
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN" / "control").write_text(control(metadata))
        root.chmod(0o755)
        target = out / f"{debian_name(metadata['Name'])}_{metadata['Version']}-{REVISION}_all.deb"
        command = ["dpkg-deb", "--build", "--root-owner-group", str(root), str(target)]
        subprocess.run(command, check=True, timeout=TIMEOUT)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("directory", type=Path, nargs="?", default=Path())
    chosen = parser.parse_args()
    build(chosen.wheel, chosen.directory)


if __name__ == "__main__":
    main()
