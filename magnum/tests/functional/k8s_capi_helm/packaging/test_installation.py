# SPDX-License-Identifier: Apache-2.0
"""The driver is laid over an installed Magnum, and leaves that Magnum whole.

Every installation here is real: pip builds a wheel or an editable install from a copy of the
tracked files and installs it into a fresh virtual environment that holds Magnum. The network is not
used: the target gets a copy of the Magnum that is installed beside the tests, and a path file leads
to the rest.
"""

from __future__ import annotations

import atexit
import csv
import functools
from importlib import metadata
import json
import os
from pathlib import Path
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import venv
import zipfile

CHECKOUT = Path(__file__).resolve().parents[5]
DISTRIBUTION = "magnum-k8s-capi-helm"
#: Of sample files: the last one stands for the groups of management clusters.
OPTION_GROUPS = ("capi_helm", "capi_helm_cluster_labels", "capi_helm_management_name")
PACKAGE = "magnum/drivers/k8s_capi_helm/"
SITE = Path(sysconfig.get_path("purelib"))
MINUTES = 5

#: Asked in the target: where things come from, where the entry points lead, which charts are there.
QUESTIONS = """
import importlib.metadata, json, os, pathlib
import magnum, magnum.drivers.k8s_capi_helm as package
points = importlib.metadata.entry_points()
[driver] = points.select(group="magnum.drivers", name="k8s_capi_helm_v1")
[options] = points.select(group="oslo.config.opts", name="magnum.drivers.k8s_capi_helm")
charts = pathlib.Path(package.__file__).parent / "charts"
print(json.dumps({
    "magnum": magnum.__file__,
    "package": package.__file__,
    "driver": driver.load().__name__,
    "groups": sorted(str(group) for group, _ in options.load()()),
    "charts": sorted(
        os.path.relpath(where, charts)
        for where, _, files in os.walk(charts, followlinks=True) if "Chart.yaml" in files
    ),
}))
"""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """The output of a command; an AssertionError with all that it said if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        check=False,
        text=True,
        timeout=MINUTES * 60,
    )
    if done.returncode:
        raise AssertionError(f"{command[0]} failed: {done.stdout}{done.stderr}")
    return done.stdout


@functools.cache
def workshop() -> Path:
    """A directory for this process, removed when the process ends."""
    directory = tempfile.TemporaryDirectory(prefix="packaging-")
    atexit.register(directory.cleanup)  # of all modules, which share what is built in it
    return Path(directory.name)


@functools.cache
def snapshot() -> Path:
    """What git would hold, as it was when the first test asked; nothing built before gets in."""
    target = workshop() / "snapshot"
    names = run("git", "ls-files", "-co", "--exclude-standard", "-z", cwd=CHECKOUT).split("\0")
    for name in filter(None, names):
        source = CHECKOUT / name
        if source.is_symlink() or source.exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name, follow_symlinks=False)
    return target


def tracked(target: Path) -> Path:
    """A copy of the snapshot to build in; links stay links."""
    return Path(shutil.copytree(snapshot(), target, symlinks=True))


@functools.cache
def wheel() -> Path:
    """The wheel of the driver."""
    return wheel_of(tracked(workshop() / "source"), workshop() / "wheel")


def wheel_of(source: Path, out: Path) -> Path:
    """The wheel that pip makes of a source tree or a source distribution."""
    command = ("pip", "wheel", "-q", "--no-index", "--no-deps", "--no-build-isolation", "-w", out)
    run(sys.executable, "-m", *command, source)
    [built] = out.glob("*.whl")
    return built


def members(built: Path) -> list[str]:
    with zipfile.ZipFile(built) as archive:
        return archive.namelist()


def is_left_out(name: str) -> bool:
    """Whether a file is left out of a chart's own package, too."""
    of_tests = "/tests/" in name or "/ci/" in name
    return "charts/" in name and (of_tests or name.endswith("/README.md"))


def contents(charts: Path) -> dict[str, bytes]:
    """The files of charts by their paths, but for those of their tests."""
    found = {f"charts/{path.relative_to(charts)}": path for path in charts.rglob("*")}
    return {
        name: path.read_bytes()
        for name, path in found.items()
        if path.is_file() and not is_left_out(name)
    }


def bundled() -> list[str]:
    """The charts of the checkout, and the charts inside charts."""
    charts = CHECKOUT / "charts"
    return sorted(
        os.path.relpath(where, charts)
        for where, _, files in os.walk(charts, followlinks=True)
        if "Chart.yaml" in files
    )


class Target:
    """A virtual environment that holds Magnum in its own site-packages.

    :param system: whose packages it sees as well, instead of holding Magnum.
    """

    def __init__(self, name: str, system: Target | None = None) -> None:
        self.root = workshop() / name
        venv.create(self.root, with_pip=False, symlinks=True)
        self.python = self.root / "bin" / "python"
        self.site = Path(
            run(self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
        )
        if system is not None:
            (self.site / "system.pth").write_text(f"{system.site}\n{SITE}\n")
            return
        shutil.copytree(SITE / "magnum", self.site / "magnum")
        [info] = SITE.glob("magnum-*.dist-info")
        shutil.copytree(info, self.site / info.name)
        (self.site / "rest.pth").write_text(f"{SITE}\n")

    def pip(self, *arguments: str | Path) -> str:
        return run(sys.executable, "-m", "pip", "-q", "--python", self.python, *arguments)

    def answers(self) -> dict[str, object]:
        """What Python in the target says, asked from a directory that holds none of our files."""
        out = run(self.python, "-W", "ignore", "-c", QUESTIONS, cwd=self.root)
        found: dict[str, object] = json.loads(out.splitlines()[-1])
        return found

    def recorded(self, distribution: str) -> set[str]:
        [info] = self.site.glob(f"{distribution.replace('-', '_')}-[0-9]*.dist-info")
        with (info / "RECORD").open(newline="") as record:
            return {row[0] for row in csv.reader(record)}


class InstallationCase(unittest.TestCase):
    """What is true of both ways to install."""

    def assert_serves(self, target: Target, package: Path) -> None:
        answers = target.answers()
        self.assertEqual(str(target.site / "magnum" / "__init__.py"), answers["magnum"])
        self.assertEqual(str(package / "__init__.py"), answers["package"])
        self.assertEqual("Driver", answers["driver"])
        self.assertEqual([*OPTION_GROUPS], answers["groups"])
        self.assertEqual(bundled(), answers["charts"])
        # The cluster's chart is of use only together with the chart inside it.
        self.assertIn("openstack-cluster/charts/cluster-addons", bundled())


class TestWheel(InstallationCase):
    def test_it_holds_the_driver_and_nothing_of_magnum(self) -> None:
        ours = (PACKAGE, "magnum_k8s_capi_helm/", "magnum_k8s_capi_helm-")
        self.assertEqual([], [name for name in members(wheel()) if not name.startswith(ours)])

    def test_it_holds_every_module_and_every_chart_file(self) -> None:
        places = ("charts", PACKAGE, "magnum_k8s_capi_helm")
        listed = run("git", "ls-files", *places, cwd=CHECKOUT).splitlines()
        expected = {
            PACKAGE + name if name.startswith("charts/") else name
            for name in listed
            if (CHECKOUT / name).is_file() and not is_left_out(name)
        }
        self.assertEqual(set(), expected - set(members(wheel())))

    def test_what_packages_of_the_charts_do_not_have_is_left_out(self) -> None:
        self.assertEqual([], [name for name in members(wheel()) if is_left_out(name)])

    def test_its_charts_are_those_of_the_packages(self) -> None:
        copy, unpacked = workshop() / "packed", workshop() / "unpacked"
        shutil.copytree(CHECKOUT / "charts", copy)
        make = "import pathlib, sys; from tools import compact_chart as tool; "
        make += "tool.compact(pathlib.Path(sys.argv[1]))"
        run(sys.executable, "-c", make, copy, cwd=CHECKOUT)
        with zipfile.ZipFile(wheel()) as archive:
            archive.extractall(unpacked)
        self.assertEqual(contents(copy), contents(unpacked / PACKAGE / "charts"))

    def test_a_source_distribution_makes_the_same_wheel(self) -> None:
        out = workshop() / "source-distribution"
        make = "import setuptools.build_meta as backend, sys; backend.build_sdist(sys.argv[1])"
        run(sys.executable, "-c", make, out, cwd=tracked(workshop() / "sdist-source"))
        [archive] = out.glob("*.tar.gz")
        again = wheel_of(archive, workshop() / "wheel-of-archive")
        self.assertEqual(set(), set(members(wheel())) ^ set(members(again)))

    def test_it_asks_for_magnum_20_or_newer(self) -> None:
        with zipfile.ZipFile(wheel()) as archive:
            [name] = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
            lines = archive.read(name).decode().splitlines()
        self.assertIn("Requires-Dist: magnum>=20.0.0", lines)
        self.assertIn("Requires-Python: >=3.10", lines)
        self.assertIn("License-Expression: Apache-2.0", lines)

    def test_it_overlays_magnum_and_goes_without_a_trace(self) -> None:
        target = Target("wheel-target")
        before = {p for p in (target.site / "magnum").rglob("*") if "__pycache__" not in p.parts}
        # Its requirements are resolved, against what is installed.
        target.pip("install", "--no-index", wheel())
        self.assert_serves(target, target.site / PACKAGE)
        ours, magnums = target.recorded(DISTRIBUTION), target.recorded("magnum")
        self.assertNotIn("magnum/__init__.py", ours)
        self.assertEqual(set(), ours & magnums)
        target.pip("uninstall", "-y", DISTRIBUTION)
        after = {p for p in (target.site / "magnum").rglob("*") if "__pycache__" not in p.parts}
        self.assertEqual(set(), before ^ after)
        run(target.python, "-W", "ignore", "-c", "import magnum.drivers.common.driver")


class TestOtherDirectory(unittest.TestCase):
    """The driver in one directory of Python's path, and Magnum in another."""

    #: What Magnum does with its entry points, and oslo-config-generator with its own.
    question = (
        "import importlib.metadata as metadata, magnum;"
        "[point] = metadata.entry_points(group='magnum.drivers', name='k8s_capi_helm_v1');"
        "driver = point.load();"
        "[point] = metadata.entry_points("
        "group='oslo.config.opts', name='magnum.drivers.k8s_capi_helm');"
        "from magnum.drivers.common.driver import Driver;"
        "import magnum.drivers.k8s_capi_helm as package;"
        "print(magnum.__file__, package.__file__, issubclass(driver, Driver), len(point.load()()))"
    )

    def assert_serves(self, target: Target, magnum: Path, package: Path) -> None:
        out = run(target.python, "-W", "ignore", "-c", self.question, cwd=target.root).split()
        expected = [magnum / "magnum" / "__init__.py", package / PACKAGE / "__init__.py"]
        self.assertEqual([*map(str, expected), "True", str(len(OPTION_GROUPS))], out)

    def test_it_is_found_before_magnum_and_after_it(self) -> None:
        """As below /usr/local, which Debian's Python searches first, or last in PYTHONPATH."""
        for name in ("insert", "append"):
            target = Target(f"{name}-target")
            other = target.root / "other"
            how = f"insert(1, {str(other)!r})" if name == "insert" else f"append({str(other)!r})"
            target.pip("install", "--no-index", "--no-deps", "--target", other, wheel())
            (target.site / "other.pth").write_text(f"import sys; sys.path.{how}\n")
            self.assert_serves(target, target.site, other)

    def test_an_older_copy_beside_magnum_is_not_taken(self) -> None:
        """As of a package of the distribution, when pip installs a newer one elsewhere."""
        target = Target("older-target")
        target.pip("install", "--no-index", "--no-deps", wheel())
        other = target.root / "other"
        target.pip("install", "--no-index", "--no-deps", "--target", other, wheel())
        (target.site / "other.pth").write_text(f"import sys; sys.path.insert(1, {str(other)!r})\n")
        self.assert_serves(target, target.site, other)

    def test_a_virtual_environment_sees_magnum_in_the_system(self) -> None:
        system = Target("system")
        target = Target("over-system", system)
        target.pip("install", "--no-index", wheel())
        self.assert_serves(target, system.site, target.site)
        target.pip("uninstall", "-y", DISTRIBUTION)
        left = [path for path in target.site.rglob("*") if path.is_file()]
        self.assertEqual(
            [], [path for path in left if "magnum" in str(path.relative_to(target.site))]
        )


class TestEditable(InstallationCase):
    def test_the_checkout_serves_inside_the_installed_magnum(self) -> None:
        target = Target("editable-target")
        source = tracked(workshop() / "editable-source")
        target.pip("install", "--no-index", "--no-deps", "--no-build-isolation", "-e", source)
        self.assert_serves(target, source.resolve() / PACKAGE)
        # Code and charts are those of the checkout, now and after the next change.
        (source / PACKAGE / "room.py").write_text("WORD = 'changed'\n")
        (source / "charts" / "another").mkdir()
        (source / "charts" / "another" / "Chart.yaml").write_text("name: another\n")
        question = "import magnum.drivers.k8s_capi_helm.room as room; print(room.WORD)"
        out = run(target.python, "-W", "ignore", "-c", question, cwd=target.root)
        self.assertEqual("changed", out.strip())
        charts = target.answers()["charts"]
        assert isinstance(charts, list)
        self.assertIn("another", charts)

    def test_the_tests_are_found_beside_magnums_own(self) -> None:
        target = Target("tests-target")
        source = tracked(workshop() / "tests-source")
        target.pip("install", "--no-index", "--no-deps", "--no-build-isolation", "-e", source)
        question = (
            "import magnum.tests.unit.drivers.test_driver as theirs;"
            "import magnum.tests.unit.drivers.k8s_capi_helm as unit;"
            "import magnum.tests.functional.k8s_capi_helm as functional;"
            "print(theirs.__file__); print(unit.__file__); print(functional.__file__)"
        )
        out = run(target.python, "-W", "ignore", "-c", question, cwd=target.root).splitlines()
        self.assertTrue(out[0].startswith(str(target.site)), out)
        self.assertTrue(all(line.startswith(str(source.resolve())) for line in out[1:]), out)


class TestMagnum(unittest.TestCase):
    def test_the_installed_magnum_is_the_one_we_are_for(self) -> None:
        self.assertEqual("23", metadata.version("magnum").partition(".")[0])
