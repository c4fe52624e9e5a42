# SPDX-License-Identifier: Apache-2.0
"""dpkg-buildpackage builds the two packages of ``debian/``, and lintian has nothing to say.

debhelper, dh-python and lintian are those of the machine, or are unpacked below the cache
(sandbox/debian.py). The packages are unpacked into a directory that stands for /.
"""

from __future__ import annotations

from email.parser import Parser
import functools
from itertools import chain
import os
from pathlib import Path
import shutil
import subprocess
import sys
import unittest
import zipfile

from packaging.requirements import Requirement
from test_installation import (
    bundled,
    CHECKOUT,
    members,
    PACKAGE,
    run,
    SITE,
    Target,
    tracked,
    wheel,
    workshop,
)

sys.path.append(str(CHECKOUT))
from sandbox import debian
from sandbox.state import SandboxError

DRIVER, CHARTS = "python3-magnum-k8s-capi-helm", "magnum-k8s-capi-helm-charts"
DIST_PACKAGES = Path("usr/lib/python3/dist-packages")
SHARED = Path("usr/share/magnum-k8s-capi-helm")
WITHOUT = "without the test of Debian packages"
#: dpkg-buildpackage, or lintian, on a busy machine.
TIMEOUT = 600


@functools.cache
def environment() -> dict[str, str]:
    """Where the tools are found, and their own files; setuptools is the one of the tests.

    :raises unittest.SkipTest: a tool is missing and cannot be unpacked.
    """
    if shutil.which("dpkg-buildpackage") is None or not Path("/usr/bin/python3").exists():
        raise unittest.SkipTest("Install dpkg-dev and python3 of Debian: there is none here.")
    try:
        trees = [
            debian.tree("debhelper", "usr/bin/dh", instead=WITHOUT),
            debian.tree("pybuild-plugin-pyproject", "usr/bin/pybuild", instead=WITHOUT),
            debian.tree("lintian", "usr/bin/lintian", instead=WITHOUT),
        ]
    except SandboxError as error:
        raise unittest.SkipTest(str(error)) from error
    scripts = trees[1] / "usr/share/dh-python/autoscripts"
    if trees[1] != Path("/") and not scripts.exists():
        scripts.symlink_to("../debhelper/autoscripts")  # where dh_python3 looks beside itself
    # The build needs a newer setuptools, and packaging for it, than an older Debian has.
    newer = workshop() / "newer"
    newer.mkdir()
    for path in chain(*map(SITE.glob, ("setuptools*", "_distutils_hack", "packaging*"))):
        (newer / path.name).symlink_to(path)
    perl = [str(path) for tree in trees for path in tree.glob("usr/lib/*/perl5/*")]
    python = [str(tree / part) for tree in trees for part in ("usr/share/dh-python", DIST_PACKAGES)]
    return {
        # Programs of the machine first: perl and python3 are to be its own.
        "PATH": ":".join(["/usr/sbin:/usr/bin:/sbin:/bin", *(f"{t}/usr/bin" for t in trees)]),
        "PERL5LIB": ":".join([*(f"{tree}/usr/share/perl5" for tree in trees), *perl]),
        "PYTHONPATH": ":".join([str(newer), *python]),
        "DH_DATAFILES": ":".join(f"{tree}/usr/share/debhelper" for tree in trees),
        "DH_AUTOSCRIPTDIR": f"{trees[0]}/usr/share/debhelper/autoscripts",
        "DH_PYTHON_DIST": f"{trees[1]}/usr/share/dh-python/dist/",
        "HOME": str(workshop()),
        "LC_ALL": "C.UTF-8",
    }


def tool(*command: str | Path, cwd: Path) -> str:
    """What a tool says; an AssertionError with all of it if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment(),
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
    )
    if done.returncode:
        raise AssertionError(f"{command[0]} failed: {done.stdout[-6000:]}")
    return done.stdout


@functools.cache
def packages() -> dict[str, Path]:
    """The packages by name."""
    environment()
    source = tracked(workshop() / "debian" / "source")
    # -d: the tools are there, though perhaps not installed.
    tool("dpkg-buildpackage", "-us", "-uc", "-b", "-d", cwd=source)
    return {path.name.partition("_")[0]: path for path in source.parent.glob("*.deb")}


@functools.cache
def root() -> Path:
    """Both packages unpacked, beside a Magnum where Debian's own package has it."""
    place = workshop() / "debian" / "root"
    for path in packages().values():
        run("dpkg-deb", "-x", path, place)
    shutil.copytree(SITE / "magnum", place / DIST_PACKAGES / "magnum", dirs_exist_ok=True)
    [info] = SITE.glob("magnum-*.dist-info")
    shutil.copytree(info, place / DIST_PACKAGES / info.name)
    return place


def files(package: Path) -> set[str]:
    """Files and links of a package, without the leading ``./``."""
    listed = run("dpkg-deb", "-c", package).splitlines()
    paths = [line.split(maxsplit=5)[5].split(" -> ")[0] for line in listed]
    return {path.removeprefix("./") for path in paths if not path.endswith("/")}


class TestPackages(unittest.TestCase):
    def test_two_are_built_and_nothing_is_in_both(self) -> None:
        self.assertEqual({DRIVER, CHARTS}, set(packages()))
        self.assertEqual(set(), files(packages()[DRIVER]) & files(packages()[CHARTS]))

    def test_lintian_has_nothing_to_say(self) -> None:
        [changes] = packages()[DRIVER].parent.glob("*.changes")
        said = tool("lintian", "--fail-on", "error,warning", changes, cwd=changes.parent)
        self.assertEqual([], [line for line in said.splitlines() if line[:2] in ("E:", "W:")])

    def test_every_file_of_the_wheel_is_in_one_of_them(self) -> None:
        parts = (PACKAGE + "charts/", PACKAGE + "manifests/")
        expected = {
            str(SHARED / name.removeprefix(PACKAGE))
            if name.startswith(parts)
            else str(DIST_PACKAGES / name)
            for name in members(wheel())
            if not name.endswith("/licenses/LICENSE")  # Debian's own copy is the one to read
        }
        found = files(packages()[DRIVER]) | files(packages()[CHARTS])
        self.assertEqual(set(), expected - found)

    def test_everything_is_where_debian_wants_it(self) -> None:
        places = (str(DIST_PACKAGES), "usr/bin/", "usr/share/doc/", "usr/share/man/")
        places += (str(SHARED), "usr/share/lintian/overrides/")
        for package in packages().values():
            self.assertEqual([], [name for name in files(package) if not name.startswith(places)])
        beside = str(DIST_PACKAGES / "magnum") + "/"
        ours = str(DIST_PACKAGES / PACKAGE)
        mixed = {name for name in files(packages()[DRIVER]) if name.startswith(beside)}
        self.assertEqual(set(), {name for name in mixed if not name.startswith(ours)})

    def test_the_version_is_that_of_the_driver(self) -> None:
        [version] = {run("dpkg-deb", "-f", path, "Version") for path in packages().values()}
        self.assertEqual(wheel().name.split("-")[1], version.strip().rpartition("-")[0])

    def test_it_depends_on_what_the_wheel_requires(self) -> None:
        with zipfile.ZipFile(wheel()) as archive:
            [name] = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
            metadata = Parser().parsestr(archive.read(name).decode())
        expected = set()
        for requirement in map(Requirement, metadata.get_all("Requires-Dist", [])):
            [floor] = requirement.specifier
            plain = requirement.name.lower().replace("pyyaml", "yaml")
            expected.add(f"python3-{plain} (>= {floor.version})")
        said = run("dpkg-deb", "-f", packages()[DRIVER], "Depends").strip().split(", ")
        found = {one.replace("(>= 1:", "(>= ") for one in said}  # Debian's epoch of oslo.config
        self.assertEqual(set(), expected - found)

    def test_a_python_of_debian_finds_the_driver_and_its_charts(self) -> None:
        target = Target("debian-target", system=None)
        shutil.rmtree(target.site / "magnum")
        (target.site / "dist-packages.pth").write_text(f"{root() / DIST_PACKAGES}\n")
        answers = target.answers()
        package = root() / DIST_PACKAGES / PACKAGE / "__init__.py"
        self.assertEqual(str(package), answers["package"])
        self.assertEqual("Driver", answers["driver"])
        self.assertEqual(["capi_helm", "capi_helm_cluster_labels"], answers["groups"])
        self.assertEqual(bundled(), answers["charts"])
        roles = root() / DIST_PACKAGES / PACKAGE / "manifests" / "rbac.yaml"
        self.assertEqual(root() / SHARED / "manifests" / "rbac.yaml", roles.resolve())
        status = root() / "usr" / "bin" / "magnum-k8s-capi-helm-status"
        self.assertEqual("#!/usr/bin/python3", status.read_text().splitlines()[0])
        out = run(target.python, "-W", "ignore", status, "--help")
        self.assertIn("upgrade", out)


class TestWheelToDeb(unittest.TestCase):
    """Libraries that Debian lacks become packages of their own."""

    program = CHECKOUT / "recipes" / "debian" / "wheel_to_deb.py"

    def setUp(self) -> None:
        super().setUp()
        if shutil.which("dpkg-deb") is None:
            self.skipTest("Install dpkg: there is no dpkg-deb here.")
        self.place = workshop() / self.id().rpartition(".")[2]
        self.place.mkdir()

    def packed(self, distribution: str) -> Path:
        """A wheel of an installed library."""
        [info] = SITE.glob(f"{distribution}-[0-9]*.dist-info")
        target = self.place / f"{info.name.removesuffix('.dist-info')}-py3-none-any.whl"
        with zipfile.ZipFile(target, "w") as archive:
            for line in (info / "RECORD").read_text().splitlines():
                name = line.split(",")[0]
                if not name.startswith("..") and (SITE / name).is_file():
                    archive.write(SITE / name, name)
        return target

    def make(self, packed: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(self.program), str(packed), str(self.place)],
            capture_output=True,
            check=False,
            text=True,
            timeout=120,
        )

    def test_pyhelm3_becomes_what_the_driver_depends_on(self) -> None:
        packed = self.packed("pyhelm3")
        done = self.make(packed)
        self.assertEqual(0, done.returncode, done.stderr)
        [built] = self.place.glob("*.deb")
        version = packed.name.split("-")[1]
        self.assertEqual(f"python3-pyhelm3_{version}-0local1_all.deb", built.name)
        said = run("dpkg-deb", "-f", built, "Depends")
        self.assertRegex(said, r"^python3, python3-pydantic \(>= [\d.]+\), python3-yaml \(>= ")
        run("dpkg-deb", "-x", built, self.place / "root")
        code = "import pyhelm3; print(pyhelm3.__file__)"
        found = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": str(self.place / "root" / DIST_PACKAGES)},
        )
        self.assertTrue(found.stdout.startswith(str(self.place / "root")), found.stdout)

    def test_what_is_more_than_a_library_is_refused(self) -> None:
        for distribution, words in (("PyYAML", "compiled code"), ("stestr", "programs")):
            with self.subTest(distribution):
                [info] = [
                    path
                    for path in SITE.glob("*.dist-info")
                    if path.name.lower().startswith(f"{distribution.lower()}-")
                ]
                done = self.make(self.packed(info.name.partition("-")[0]))
                self.assertEqual(1, done.returncode)
                self.assertIn(words, done.stderr)
                self.assertEqual([], list(self.place.glob("*.deb")))
