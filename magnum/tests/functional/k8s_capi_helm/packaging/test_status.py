# SPDX-License-Identifier: Apache-2.0
"""The check of an installation names each fault with its cure."""

from __future__ import annotations

import json
from pathlib import Path
import subprocess
import sys
import tomllib
from typing import ClassVar
import unittest
import venv

from test_installation import (
    CHECKOUT,
    run,
    Target,
    wheel,
    workshop,
)

SUCCESS, WARNING, FAILURE, UNKNOWN = 0, 1, 2, 3
KUBECONFIG = """\
current-context: a
clusters: [{name: a, cluster: {server: "https://127.0.0.1:6443"}}]
contexts: [{name: a, context: {cluster: a, user: b}}]
users: [{name: b, user: {token: t}}]
"""
HELM = '#!/bin/sh\necho "{version}"\n'


class TestWithoutMagnum(unittest.TestCase):
    def test_it_is_said_which_python_lacks_magnum(self) -> None:
        root = workshop() / "without-magnum"
        venv.create(root, with_pip=False, symlinks=True)
        python = root / "bin" / "python"
        [site] = root.glob("lib/python*/site-packages")
        pip = ("-m", "pip", "-q", "--python", python, "install", "--no-index", "--no-deps")
        run(sys.executable, *pip, wheel())
        self.assertTrue((site / "magnum_k8s_capi_helm").is_dir())
        for arguments, expected in (
            (("-m", "magnum_k8s_capi_helm", "upgrade", "check"), FAILURE),
            ((str(root / "bin" / "k8s-capi-helm"), "check"), UNKNOWN),
        ):
            self.check_missing_magnum(python, arguments, expected)

    def check_missing_magnum(self, python: Path, arguments: tuple[str, ...], expected: int) -> None:
        done = subprocess.run(
            [str(python), *arguments],
            capture_output=True,
            check=False,
            text=True,
            timeout=60,
        )
        self.assertEqual((expected, ""), (done.returncode, done.stdout))
        self.assertIn(f"{python} does not find Magnum", done.stderr)
        self.assertIn('head -1 "$(command -v magnum-conductor)"', done.stderr)
        self.assertNotIn("Traceback", done.stderr)


class TargetCase(unittest.TestCase):
    """A Magnum with the driver, and a directory with a kubeconfig and a helm."""

    target: ClassVar[Target]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.target = Target(f"{cls.__name__}-target")
        cls.target.pip("install", "--no-index", wheel())

    def setUp(self) -> None:
        super().setUp()
        self.place = workshop() / self.id().rpartition(".")[2]
        self.place.mkdir()
        self.kubeconfig = self.write("kubeconfig", KUBECONFIG, 0o600)
        self.helm("v3.22.0+g1")

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.place / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def helm(self, version: str) -> None:
        self.write("helm", HELM.format(version=version), 0o755)

    def conf(self, more: str = "") -> str:
        return f"[capi_helm]\nkubeconfig_file = {self.kubeconfig}\n{more}"


class TestStatus(TargetCase):
    def check(self, text: str = "", expected: int = FAILURE) -> dict[str, str]:
        """What is wrong with such a magnum.conf, by check."""
        conf = self.write("magnum.conf", text or self.conf())
        program = self.target.root / "bin" / "magnum-k8s-capi-helm-status"
        done = subprocess.run(
            [str(program), "--config-file", str(conf), "upgrade", "check", "--json"],
            capture_output=True,
            check=False,
            text=True,
            timeout=120,
            env={"PATH": str(self.place), "HOME": str(self.place), "PYTHONWARNINGS": "ignore"},
        )
        self.assertEqual(expected, done.returncode, done.stdout + done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])["checks"]
        return {one["check"]: one["details"] for one in found if one["result"]}

    def test_nothing_is_wrong(self) -> None:
        self.assertEqual({}, self.check(expected=SUCCESS))

    def test_the_version_is_that_of_wheel_and_checkout(self) -> None:
        program = self.target.root / "bin" / "magnum-k8s-capi-helm-status"
        said = run(program, "--version").strip()
        text = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
        self.assertEqual(tomllib.loads(text)["project"]["version"], said)
        self.assertTrue(wheel().name.startswith(f"magnum_k8s_capi_helm-{said}-"), wheel().name)

    def test_names_that_nothing_reads(self) -> None:
        found = self.check(
            self.conf("kube_config_file = x\nchart-directory = /x\n[capi-helm]\na = b\n"), WARNING
        )
        [said] = found.values()
        self.assertIn("[capi_helm] kube_config_file, which nothing reads: kubeconfig_file?", said)
        self.assertIn("a group [capi-helm], which nothing reads: [capi_helm]?", said)
        self.assertNotIn("chart", said)

    def test_names_of_before_are_known(self) -> None:
        self.assertEqual({}, self.check(self.conf("csi_cinder_reclaim_policy = Retain\n"), SUCCESS))

    def test_magnums_options_shut_the_driver_out(self) -> None:
        shut = "[drivers]\ndisabled_drivers = k8s_capi_helm_v1\ndefault_driver = k8s_heat\n"
        [said] = self.check(self.conf(shut)).values()
        self.assertIn("disabled_drivers has k8s_capi_helm_v1; remove it there", said)
        self.assertIn("default_driver is k8s_heat, which is not installed", said)

    def test_helm_is_missing_or_too_old(self) -> None:
        self.helm("v3.12.0")
        self.assertIn("v3.12.0", self.check(expected=WARNING)["Helm"])
        (self.place / "helm").unlink()
        said = self.check(expected=WARNING)["Helm"]
        self.assertIn(f"'helm' is not an executable in PATH: {self.place}. ", said)
        self.assertIn("needs Helm 3.17 or newer", said)

    def test_which_helm_cannot_be_used_and_what_it_says(self) -> None:
        self.helm("v3.12.0")
        said = self.check(expected=WARNING)["Helm"]
        self.assertTrue(said.startswith(f"{self.place}/helm has an unsupported version: "), said)
        for script, words in (
            ("#!/bin/sh\necho no such flag >&2; exit 3\n", "ends with status 3: no such flag"),
            ("#!/bin/sh\nprintf '\\377'\n", "has an unsupported version"),
        ):
            self.write("helm", script, 0o755)
            said = self.check(expected=WARNING)["Helm"]
            self.assertIn(f"{self.place}/helm", said)
            self.assertIn(words, said)

    def test_an_authority_that_cannot_be_read(self) -> None:
        missing = self.place / "ca.pem"
        said = self.check(self.conf(f"[drivers]\nopenstack_ca_file = {missing}\n"), WARNING)
        [text] = said.values()
        self.assertIn(f"[drivers] openstack_ca_file is {missing}: ", text)

    def test_a_kubeconfig_is_missing_open_or_no_yaml(self) -> None:
        self.kubeconfig.chmod(0o640)
        said = self.check(expected=WARNING)["Kubeconfig"]
        self.assertRegex(said, f"{self.kubeconfig} is a file of .+ with mode 0640; ")
        self.assertIn("let that user own it, then chmod 600", said)
        self.kubeconfig.chmod(0o600)
        self.kubeconfig.write_text("{")
        self.assertIn(str(self.kubeconfig), self.check(expected=WARNING)["Kubeconfig"])
        self.kubeconfig.unlink()
        self.assertIn(str(self.kubeconfig), self.check(expected=WARNING)["Kubeconfig"])
        self.assertIn("Set [capi_helm] kubeconfig_file", self.check("\n", WARNING)["Kubeconfig"])

    def test_a_kubeconfig_names_what_it_does_not_have(self) -> None:
        for old, new, words in (
            ("current-context: a\n", "", "current-context"),
            ("cluster: a, user: b", "cluster: x, user: b", "name x in "),
            ("cluster: a, user: b", "cluster: a, user: x", "name x in "),
        ):
            self.kubeconfig.write_text(KUBECONFIG.replace(old, new))
            said = self.check(expected=WARNING)["Kubeconfig"]
            self.assertIn(words, said)
            self.assertIn("magnum-conductor needs it", said)

    def test_a_kubeconfig_in_several_files_is_whole(self) -> None:
        """Joined as in $KUBECONFIG: each has a part of what the context names."""
        lines = KUBECONFIG.splitlines(keepends=True)
        parts = [
            self.write(f"part-{number}", "".join(part), 0o600)
            for number, part in enumerate((lines[:2], lines[2:]))
        ]
        joined = ":".join(str(part) for part in parts)
        self.assertEqual({}, self.check(f"[capi_helm]\nkubeconfig_file = {joined}\n", SUCCESS))

    def test_a_kubeconfig_of_the_person_who_checks_is_named(self) -> None:
        self.write(".kube/config", KUBECONFIG, 0o600)
        said = self.check("[DEFAULT]\n", WARNING)["Kubeconfig"]
        self.assertIn(f"{self.place}/.kube/config is that of the user who runs this check", said)

    def test_values_that_cannot_be_used(self) -> None:
        title = "Values of these options"
        said = self.check(self.conf("helm_timeout = ten\n"))[title]
        self.assertIn("[capi_helm] helm_timeout: ", said)
        said = self.check(self.conf("helm_timeout = 200\nlease_duration = 150\n"))[title]
        self.assertIn("lease_duration", said)

    def test_management_clusters(self) -> None:
        """Each has a group, whose options and kubeconfig are checked as those of the first one."""
        path = self.write("other", KUBECONFIG, 0o600)
        group = f"[capi_helm_management_az2]\nkubeconfig_file = {path}\n"
        listed = self.conf("management_clusters = default, az2\n")
        self.assertEqual({}, self.check(f"{listed}{group}weight = 2\n", SUCCESS))
        said = self.check(f"{listed}{group}wieght = 2\n", WARNING)["Options of the driver"]
        self.assertIn("[capi_helm_management_az2] wieght, which nothing reads: weight?", said)
        said = self.check(self.conf("") + group, WARNING)["Options of the driver"]
        self.assertIn("add az2 to [capi_helm] management_clusters", said)
        said = self.check(listed)["Values of these options"]
        self.assertIn("[capi_helm_management_az2] kubeconfig_file is not set", said)
        said = self.check(f"{listed}{group}context = nope\n", WARNING)["Kubeconfig"]
        self.assertIn(str(path), said)

    def test_a_group_in_capital_letters_is_read(self) -> None:
        conf = self.conf("chart_directorie = /x\n").replace("[capi_helm]", "[CAPI_HELM]")
        [said] = self.check(conf, WARNING).values()
        self.assertIn("chart_directorie, which nothing reads: chart_directory?", said)
        self.assertNotIn("a group", said)

    def test_a_file_that_is_none_is_a_failure(self) -> None:
        conf = self.write("magnum.conf", "password without a group\n")
        self.assertIn(f"line 1 of {conf} is neither a [group] nor", self.refusal(conf))
        conf.write_bytes(b"[DEFAULT]\na = \xff password\n")
        self.assertIn(f"{conf}: not in UTF-8, byte 14", self.refusal(conf))
        self.assertIn(f"Is a directory: '{self.place}'", self.refusal(self.place))

    def refusal(self, conf: Path) -> str:
        """What is said where the configuration itself cannot be read."""
        program = self.target.root / "bin" / "magnum-k8s-capi-helm-status"
        done = subprocess.run(
            [str(program), "--config-file", str(conf), "upgrade", "check"],
            capture_output=True,
            check=False,
            text=True,
            timeout=120,
            env={"PATH": str(self.place), "PYTHONWARNINGS": "ignore"},
        )
        self.assertEqual(FAILURE, done.returncode, done.stdout)
        self.assertIn("The configuration cannot be read: ", done.stderr)
        self.assertNotIn("password", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr

    def test_another_package_has_the_same_entry_point(self) -> None:
        info = self.target.site / "magnum_capi_helm-1.4.0.dist-info"
        info.mkdir()
        for name, text in (
            ("METADATA", "Metadata-Version: 2.1\nName: magnum-capi-helm\nVersion: 1.4.0\n"),
            ("entry_points.txt", "[magnum.drivers]\nk8s_capi_helm_v1 = magnum_capi_helm.d:D\n"),
        ):
            (info / name).write_text(text)
        self.addCleanup(lambda: [path.unlink() for path in info.iterdir()] and info.rmdir())
        self.assertIn("pip uninstall magnum-capi-helm.", self.check()["Entry point"])

    def test_a_package_is_missing_or_too_old(self) -> None:
        info = self.target.site / "pyhelm3-0.1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pyhelm3\nVersion: 0.1.0\n")
        self.addCleanup(lambda: [path.unlink() for path in info.iterdir()] and info.rmdir())
        said = self.check()["Required packages"]
        self.assertEqual("pyhelm3 0.1.0 is installed; pyhelm3>=0.4.0 is required.", said)

    def test_the_driver_cannot_be_loaded(self) -> None:
        module = self.target.site / "magnum" / "drivers" / "k8s_capi_helm" / "conf" / "options.py"
        text = module.read_text()
        self.addCleanup(module.write_text, text)
        module.write_text("import no_such_module\n")
        found = self.check()
        self.assertIn("cannot be loaded by ", found["Driver"])
        self.assertIn("No module named 'no_such_module'", found["Driver"])
        self.assertIn("Not checked", found["Options of the driver"])


class TestCommand(TargetCase):
    """The operator's command, as the console script of the installed wheel."""

    def command(self, *arguments: str, expected: int) -> subprocess.CompletedProcess[str]:
        program = self.target.root / "bin" / "k8s-capi-helm"
        done = subprocess.run(
            [str(program), *arguments],
            capture_output=True,
            check=False,
            text=True,
            timeout=120,
            env={"PATH": str(self.place), "HOME": str(self.place)},
        )
        self.assertEqual(expected, done.returncode, done.stdout + done.stderr)
        return done

    def test_it_checks_this_host_with_magnums_configuration(self) -> None:
        shut = self.conf("[drivers]\ndisabled_drivers = k8s_capi_helm_v1\n")
        conf = str(self.write("magnum.conf", shut))
        options = ("--config-file", conf, "check", "installation", "-f", "json")
        done = self.command(*options, expected=FAILURE)
        self.assertEqual("", done.stderr)
        rows = json.loads(done.stdout)
        self.assertEqual(["CRITICAL", "OK"], [row["Status"] for row in rows])
        self.assertIn("disabled_drivers has k8s_capi_helm_v1; remove it", rows[0]["Finding"])

    def test_options_that_contradict_each_other_are_named(self) -> None:
        conf = str(self.write("magnum.conf", self.conf("helm_timeout = 1000\n")))
        done = self.command("--config-file", conf, "check", expected=UNKNOWN)
        self.assertIn("[capi_helm] helm_timeout is 1000: it must be below", done.stderr)

    def test_a_configuration_that_cannot_be_read(self) -> None:
        broken = self.write("broken.conf", "[database]\nconnection\n")
        binary = self.place / "binary.conf"
        binary.write_bytes(b"[DEFAULT]\nhost = \xff\n")
        for path in (broken, self.place / "none.conf", binary, self.place):
            done = self.command("--config-file", str(path), "check", expected=UNKNOWN)
            self.assertIn("The configuration of Magnum cannot be read.", done.stderr)
            self.assertIn(str(path), done.stderr)
            self.assertNotIn("Traceback", done.stderr)
        done = self.command("--config-file", str(broken), "check", expected=UNKNOWN)
        self.assertIn(f"line 2 of {broken} is neither", done.stderr)

    def test_its_version_is_that_of_the_wheel(self) -> None:
        said = self.command("--version", expected=SUCCESS).stdout.strip()
        self.assertIn(f"-{said.rpartition(' ')[2]}-", wheel().name)
