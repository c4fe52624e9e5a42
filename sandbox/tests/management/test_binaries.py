# SPDX-License-Identifier: Apache-2.0
"""When a program is built, when a found one is taken, and what makes it be built again."""

from concurrent.futures import ThreadPoolExecutor
import contextlib
import dataclasses
import io
import os
from pathlib import Path
import shutil
import tempfile
import unittest
from unittest import mock

from sandbox.management import binaries, manifests, prometheus
from sandbox.management.releases import Providers
from sandbox.state import file_lock, SandboxError, State


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place)

    def program(self, says: str, name: str = "helm", code: int = 0) -> Path:
        """A program that prints something about itself."""
        path = self.place / name
        path.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n")
        path.chmod(0o755)
        return path

    def cache(self) -> Path:
        """A cache in which every program was built already, of a few bytes each."""
        store = self.place / "cache" / "go"
        store.mkdir(parents=True)
        for program in binaries.programs(Providers()):
            (store / f"{program.name}-{program.digest()}").write_text(program.name)
        (store / f"manifests-{manifests.digest(Providers())}.json").write_text("[]")
        return self.place / "cache"


class TestFind(Case):
    def search(self, **variables: str) -> Path | None:
        with mock.patch.dict(os.environ, {"KUBEBUILDER_ASSETS": "", "PATH": "", **variables}):
            return binaries.find(binaries.HELM)

    def test_the_right_version_in_path_or_assets_is_taken(self) -> None:
        path = self.program("v3.22.9+gabcdef")
        for variable in ("PATH", "KUBEBUILDER_ASSETS"):
            self.assertEqual(path, self.search(**{variable: str(self.place)}), variable)

    def test_the_helm_of_a_machine_may_be_the_newer_one(self) -> None:
        path = self.program("v4.3.7+gabcdef")
        with mock.patch.dict(os.environ, {"KUBEBUILDER_ASSETS": "", "PATH": str(self.place)}):
            self.assertEqual(path, binaries.find(binaries.HELM4))
            self.assertIsNone(binaries.find(binaries.HELM))

    def test_another_minor_version_is_not_taken(self) -> None:
        self.program("v3.20.4+gabcdef")
        self.assertIsNone(self.search(PATH=str(self.place)))

    def test_what_prints_no_version_or_fails_is_not_taken(self) -> None:
        for says, code in (("hello", 0), ("v3.22.0", 1)):
            self.program(says, code=code)
            self.assertIsNone(self.search(PATH=str(self.place)), says)

    def test_the_first_right_one_wins_over_a_wrong_one_before_it(self) -> None:
        first, second = self.place / "first", self.place / "second"
        for folder, says in ((first, "v3.1.0"), (second, "v3.22.0")):
            folder.mkdir()
            shutil.move(self.program(says), folder / "helm")
        self.assertEqual(second / "helm", self.search(PATH=f"{first}{os.pathsep}{second}"))

    def test_what_was_built_earlier_is_no_find(self) -> None:
        store = self.place / "go"
        store.mkdir()
        shutil.move(self.program("v3.22.0"), store / "helm-of-old")
        (self.place / "helm").symlink_to(store / "helm-of-old")
        with mock.patch.dict(os.environ, {"PATH": str(self.place), "KUBEBUILDER_ASSETS": ""}):
            self.assertIsNone(binaries.find(binaries.HELM, store))
            self.assertIsNotNone(binaries.find(binaries.HELM))

    def test_our_own_programs_are_never_looked_for(self) -> None:
        self.program("v1.14.2", name="capi-core")
        (core,) = (
            program for program in binaries.programs(Providers()) if program.name == "capi-core"
        )
        with mock.patch.dict(os.environ, {"PATH": str(self.place)}):
            self.assertIsNone(binaries.find(core))

    def test_versions_are_read_from_what_each_program_prints(self) -> None:
        for name, says in (
            ("etcd", "etcd Version: 3.6.6"),
            ("kube-apiserver", "Kubernetes v1.34.4"),
            ("kubectl", "Client Version: v1.34.4"),
            ("helm", "v3.22.0+g1234567"),
        ):
            (program,) = (item for item in binaries.programs(Providers()) if item.name == name)
            self.assertEqual(program.version, binaries.ask_version(self.program(says), program))


class TestBuild(Case):
    def test_built_programs_are_linked_and_nothing_else_is_done(self) -> None:
        cache = self.cache()
        with mock.patch.dict(os.environ, {"PATH": "", "KUBEBUILDER_ASSETS": ""}):
            place = binaries.build(cache=cache)
        names = {program.name for program in binaries.programs(Providers())} | {binaries.MANIFESTS}
        self.assertEqual(names, {path.name for path in place.iterdir()})
        self.assertEqual("helm", (place / "helm").read_text())

    def test_the_place_is_the_same_as_long_as_nothing_changes(self) -> None:
        cache = self.cache()
        self.assertEqual(binaries.build(cache=cache), binaries.build(cache=cache))

    def test_a_second_builder_says_that_it_waits_and_takes_what_the_first_built(self) -> None:
        cache = self.cache()
        printed = io.StringIO()
        with ThreadPoolExecutor(1) as pool, contextlib.redirect_stdout(printed):
            with file_lock(cache / "go" / ".lock"):
                second = pool.submit(binaries.build, cache=cache)
                while "waiting" not in printed.getvalue():
                    self.assertFalse(second.done())
            self.assertTrue((second.result(60.0) / "etcd").exists())

    def test_a_state_means_the_cache_of_the_user(self) -> None:
        cache = self.cache()
        with mock.patch.dict(os.environ, K8S_CAPI_HELM_CACHE=str(cache)):
            self.assertEqual(
                binaries.build(cache=cache), binaries.build(State(self.place / "state"))
            )

    def test_a_single_program_is_the_one_built_or_found_and_nothing_else_is_built(self) -> None:
        cache = self.place / "cache"
        with mock.patch.dict(os.environ, {"PATH": "", "KUBEBUILDER_ASSETS": ""}):
            with self.assertRaisesRegex(SandboxError, "Go is needed"):
                binaries.one(binaries.HELM4, cache)
        path = self.program("v4.3.1")
        with mock.patch.dict(os.environ, {"PATH": str(self.place), "KUBEBUILDER_ASSETS": ""}):
            self.assertEqual(path, binaries.one(binaries.HELM4, cache))
            stored = cache / "go" / f"helm4-{binaries.HELM4.digest()}"
            stored.parent.mkdir(parents=True, exist_ok=True)
            stored.touch()
            self.assertEqual(stored, binaries.one(binaries.HELM4, cache))

    def test_without_go_it_says_what_to_install(self) -> None:
        with mock.patch.dict(os.environ, {"PATH": str(self.place), "KUBEBUILDER_ASSETS": ""}):
            with self.assertRaisesRegex(SandboxError, r"install Go 1\.26 or newer"):
                binaries.build(cache=self.place / "empty")

    def test_what_a_killed_build_left_is_not_taken_for_a_program(self) -> None:
        cache = self.cache()
        stored = cache / "go" / f"helm-{binaries.HELM.digest()}"
        stored.rename(stored.with_name(f".{stored.name}.draft"))
        with mock.patch.dict(os.environ, {"PATH": str(self.place), "KUBEBUILDER_ASSETS": ""}):
            with self.assertRaisesRegex(SandboxError, "Go is needed"):
                binaries.build(cache=cache)

    def test_a_program_that_is_not_there_is_named(self) -> None:
        with self.assertRaisesRegex(SandboxError, "etcd does not exist in"):
            binaries.require(self.place, "etcd")


class TestDigest(unittest.TestCase):
    def test_flags_and_package_decide(self) -> None:
        helm = binaries.HELM
        others = [
            binaries.Program("helm", "helm", helm.package, helm.version, helm.ask),
            binaries.Program("helm", "helm", "other", helm.version, helm.ask, helm.flags),
            binaries.Program("helm", "etcd", helm.package, helm.version, helm.ask, helm.flags),
            dataclasses.replace(helm, tags="minimal"),
        ]
        self.assertEqual(5, len({program.digest() for program in (helm, *others)}))

    def test_every_program_is_stripped_and_kubernetes_knows_its_version(self) -> None:
        for program in binaries.programs(Providers()):
            with self.subTest(program.name):
                self.assertTrue(program.linker_flags.startswith("-s -w"))
                if program.module == "kubernetes":
                    self.assertIn(f"gitVersion=v{binaries.KUBERNETES}", program.linker_flags)

    def test_versions_are_those_that_go_mod_pins(self) -> None:
        from sandbox.management import gomodules

        for module, line in (
            ("kubernetes", f"k8s.io/kubernetes v{binaries.KUBERNETES}"),
            ("clusterapi", f"sigs.k8s.io/cluster-api v{Providers.capi.version}"),
            ("capo", f"{Providers.capo.module} v{Providers.capo.version}"),
            ("helm", f"helm.sh/helm/v3 v{binaries.HELM.version}"),
            ("helm", f"helm.sh/helm/v4 v{binaries.HELM4.version}"),
            ("etcd", "go.etcd.io/etcd/server/v3 v3.6.6"),
            ("prometheus", f"{prometheus.MODULE} v{prometheus.MODULE_VERSION}"),
        ):
            self.assertIn(line, (gomodules.GO / module / "go.mod").read_text())
