# SPDX-License-Identifier: Apache-2.0
"""Which releases of Kubernetes have their kubeadm built, and of what."""

import os
from pathlib import Path
import shutil
import tempfile
import unittest
from unittest import mock

from sandbox.management import binaries, gomodules, kubernetes_releases
from sandbox.management.kubernetes_releases import kubeadm, KubernetesRelease, MINORS, selected
from sandbox.state import SandboxError


class TestTable(unittest.TestCase):
    def test_each_minor_is_there_once_and_none_is_left_out(self) -> None:
        numbers = [int(release.minor.partition(".")[2]) for release in MINORS]
        self.assertEqual(list(range(numbers[0], numbers[-1] + 1)), numbers)

    def test_the_variable_picks_some(self) -> None:
        for given, found in (("", list(MINORS)), ("1.34, 1.32", [MINORS[2], MINORS[0]])):
            with mock.patch.dict(os.environ, K8S_CAPI_HELM_MINORS=given):
                self.assertEqual(found, selected())

    def test_a_minor_that_is_not_there_is_named(self) -> None:
        with mock.patch.dict(os.environ, K8S_CAPI_HELM_MINORS="1.34 1.3"):
            with self.assertRaisesRegex(SandboxError, r"MINORS: 1\.3 is not one of 1\.32, 1\.33"):
                selected()


class TestPins(unittest.TestCase):
    def setUp(self) -> None:
        self.place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place)

    def test_every_release_is_pinned_with_the_libraries_that_kubeadm_needs(self) -> None:
        for release in MINORS:
            pins = {line.split()[0]: line.split()[1] for line in release.pins()}
            self.assertEqual(f"v{release.version}/go.mod", pins["k8s.io/kubernetes"])
            for name in ("api", "apimachinery", "client-go", "component-base", "kubelet"):
                self.assertEqual(f"v{release.below}/go.mod", pins[f"k8s.io/{name}"])

    def test_a_release_has_no_pins_of_another_one(self) -> None:
        other = KubernetesRelease("1.34.40")
        self.assertEqual([], other.pins())
        with self.assertRaisesRegex(
            SandboxError, r"does not pin k8s\.io/kubernetes@v1\.34\.40; run `python -m sandbox\.man"
        ):
            other.directory()

    def test_a_module_below_that_is_not_pinned_is_left_out(self) -> None:
        module = self.place / "m@v1.2.0"
        module.mkdir()
        (module / "go.mod").write_text(
            "module example.org/m\n\ngo 1.26\n\n"
            "replace example.org/api => ./staging/api\n\n"
            "replace example.org/sample => ./staging/sample\n\n"
            "require (\n\texample.org/api v0.0.0\n\texample.org/sample v0.0.0\n)\n"
        )
        (module / "go.sum").write_text("")
        pins = ["example.org/api v0.2.0 h1:x=", "example.org/api v0.2.0/go.mod h1:y="]
        modfile = gomodules.released_modfile(module, self.place / "released", pins)
        self.assertIn("example.org/api v0.2.0", modfile.read_text())
        self.assertNotRegex(modfile.read_text(), "sample|replace")
        self.assertEqual("\n".join([*pins, ""]), modfile.with_suffix(".sum").read_text())


class TestPrograms(unittest.TestCase):
    def test_each_knows_its_version_and_is_one_of_its_own(self) -> None:
        found = [kubeadm(release) for release in MINORS]
        self.assertEqual(len(found), len({program.digest() for program in found}))
        for program, release in zip(found, MINORS, strict=True):
            self.assertIn(f"gitVersion=v{release.version}", program.linker_flags)
            self.assertEqual(f"kubeadm-{release.minor}", program.name)

    def test_that_of_the_machine_is_taken_if_it_is_of_the_same_minor(self) -> None:
        place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, place)
        path = place / "kubeadm"
        path.write_text("#!/bin/sh\n[ \"$*\" = 'version --output=short' ] && echo v1.34.9\n")
        path.chmod(0o755)
        with mock.patch.dict(os.environ, {"PATH": f"{place}:/bin", "KUBEBUILDER_ASSETS": ""}):
            self.assertEqual(
                [path.resolve() if release.minor == "1.34" else None for release in MINORS],
                [binaries.find(kubeadm(release)) for release in MINORS],
            )

    def test_the_module_has_a_go_mod(self) -> None:
        self.assertTrue((gomodules.GO / kubernetes_releases.MINORS[0].sums / "go.mod").exists())
