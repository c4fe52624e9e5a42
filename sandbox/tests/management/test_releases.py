# SPDX-License-Identifier: Apache-2.0
"""Which releases of Cluster API and CAPO go together and follow each other, and how they run."""

from pathlib import Path
import shutil
import tempfile
import unittest
from unittest import mock

from sandbox.management import binaries, controllers, gomodules, lifecycle, manifests, releases
from sandbox.management.releases import CAPO, choose, CLUSTER_API, Providers, Release
from sandbox.state import SandboxError
from sandbox.tests.test_state import StateCase

OLDEST, INITIAL = Providers(CLUSTER_API[0], CAPO[0]), Providers()


def pair(capi: str, capo: str) -> Providers:
    """Providers of releases that the tables have."""
    found = {release.version: release for release in releases.RELEASES}
    return Providers(found[capi], found[capo])


class TestTables(unittest.TestCase):
    def test_each_minor_is_there_once_the_newest_last(self) -> None:
        for table in (CLUSTER_API, CAPO):
            minors = [release.minor for release in table]
            self.assertEqual(sorted(set(minors)), minors)

    def test_a_provider_reads_one_version(self) -> None:
        self.assertEqual({1}, {len(release.core) for release in CAPO})


class TestPairs(StateCase):
    def test_a_sandbox_has_those_of_our_modules_unless_told_otherwise(self) -> None:
        self.assertEqual(INITIAL, Providers.of(self.sandbox()))

    def test_what_is_not_said_stays(self) -> None:
        box = self.sandbox()
        pair("1.11.3", "0.12.1").record(box)
        self.assertEqual(pair("1.13.6", "0.12.1"), choose(box, "1.13.6", None))
        self.assertEqual(pair("1.11.3", "0.14.7"), choose(box, None, "0.14.7"))

    def test_an_unknown_one_shows_the_known_ones(self) -> None:
        with self.assertRaisesRegex(
            SandboxError, r"--capi 1\.9\.0: choose one of 1\.10\.10, 1\.11"
        ):
            choose(self.sandbox(), "1.9.0", None)
        with self.assertRaisesRegex(
            SandboxError, r"--capo 0\.14: choose one of 0\.12\.1, 0\.14\.7"
        ):
            choose(self.sandbox(), None, "0.14")

    def test_a_provider_that_reads_what_is_not_served_is_refused(self) -> None:
        with self.assertRaisesRegex(
            SandboxError,
            r"--capi 1\.10\.10 --capo 0\.14\.7: this OpenStack provider reads .* as v1beta2, and "
            r"this Cluster API serves v1beta1 only; --capo 0\.14\.7 needs --capi 1\.11\.3, ",
        ):
            choose(self.sandbox(), "1.10.10", None)

    def test_an_old_provider_goes_with_all_that_still_serve_what_it_reads(self) -> None:
        for capi in CLUSTER_API:
            self.assertEqual(CAPO[0], Providers(capi, CAPO[0]).capo)


class TestUpgrades(StateCase):
    def setUp(self) -> None:
        super().setUp()
        self.box = self.sandbox()
        built = mock.patch.object(binaries, "build")
        self.built = built.start()
        self.addCleanup(built.stop)

    def choose(self, before: Providers, providers: Providers, *, data: bool = True) -> None:
        before.record(self.box)
        if data:
            self.box.path("management", "etcd", "member").parent.mkdir(parents=True, exist_ok=True)
        lifecycle.choose(self.box, providers)

    def test_neither_goes_back(self) -> None:
        for before, after in (
            (pair("1.12.5", "0.12.1"), pair("1.11.3", "0.12.1")),
            (pair("1.12.5", "0.14.7"), pair("1.13.6", "0.12.1")),
        ):
            with self.assertRaisesRegex(
                SandboxError, f"no downgrade is supported; .* reset {after}`"
            ):
                self.choose(before, after)
            self.assertEqual(before, Providers.of(self.box))
        self.built.assert_not_called()

    def test_cluster_api_skips_three_minor_releases_at_most(self) -> None:
        with self.assertRaisesRegex(SandboxError, "by 3 minor releases at most"):
            self.choose(OLDEST, INITIAL)
        self.choose(OLDEST, pair("1.13.6", "0.14.7"))
        self.assertEqual(pair("1.13.6", "0.14.7"), Providers.of(self.box))

    def test_after_an_upgrade_managers_migrate_what_is_stored(self) -> None:
        place = self.place / "bin"
        place.mkdir()
        for name in controllers.NAMES:
            (place / name).touch(0o755)
        self.choose(INITIAL, INITIAL)
        self.assertIn("--skip-crd-migration-phases=StorageVersionMigration", self.words(place))
        self.choose(pair("1.13.6", "0.14.7"), INITIAL)
        self.assertNotIn("skip", " ".join(self.words(place)))

    def words(self, place: Path) -> list[str]:
        return controllers.manager(self.box, place, "capi-core")

    def test_a_new_sandbox_starts_with_any(self) -> None:
        self.choose(INITIAL, OLDEST, data=False)
        self.assertEqual(OLDEST, Providers.of(self.box))
        self.assertIsNone(self.box.get("upgraded"))

    def test_one_that_cannot_be_built_changes_nothing(self) -> None:
        self.built.side_effect = SandboxError("no Go")
        with self.assertRaisesRegex(SandboxError, "no Go"):
            self.choose(OLDEST, pair("1.11.3", "0.12.1"))
        self.assertEqual(OLDEST, Providers.of(self.box))


class TestManagers(StateCase):
    """What a manager of an older release is started with."""

    def words(self, providers: Providers, name: str) -> str:
        box = self.sandbox()
        providers.record(box)
        place = self.place / "bin"
        place.mkdir(exist_ok=True)
        (place / name).touch(0o755)
        return " ".join(controllers.manager(box, place, name))

    def test_a_feature_gate_is_said_to_releases_that_have_it(self) -> None:
        gate = "MachineTaintPropagation=true"
        self.assertNotIn(gate, self.words(pair("1.11.3", "0.14.7"), "capi-core"))
        self.assertIn(gate, self.words(pair("1.12.5", "0.14.7"), "capi-core"))

    def test_an_option_is_given_to_releases_that_have_it(self) -> None:
        option = "--skip-crd-migration-phases"
        self.assertNotIn(option, self.words(OLDEST, "capo"))
        self.assertIn(option, self.words(OLDEST, "capi-core"))
        self.assertIn(option, self.words(INITIAL, "capo"))


class TestPrograms(unittest.TestCase):
    def test_the_initial_ones_are_built_in_our_modules_and_others_in_their_own(self) -> None:
        for providers, own in ((INITIAL, set()), (OLDEST, set(controllers.NAMES))):
            found = {one.name for one in binaries.programs(providers) if one.release}
            self.assertEqual(own, found)

    def test_the_core_manager_has_moved(self) -> None:
        for providers, package in (
            (INITIAL, "sigs.k8s.io/cluster-api/core"),
            (OLDEST, "sigs.k8s.io/cluster-api"),
        ):
            (core,) = (one for one in binaries.programs(providers) if one.name == "capi-core")
            self.assertEqual(package, core.package)
            self.assertEqual(
                package.removeprefix("sigs.k8s.io/cluster-api").strip("/"),
                manifests.sources(providers)[0].config.rpartition("config")[0].strip("/"),
            )

    def test_no_two_releases_share_a_program(self) -> None:
        found = [
            program.digest()
            for capi in CLUSTER_API
            for program in binaries.programs(Providers(capi, CAPO[0]))
            if program.name.startswith("capi-")
        ]
        self.assertEqual(len(found), len(set(found)))


class TestPins(unittest.TestCase):
    def setUp(self) -> None:
        self.place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place)

    def test_what_go_sum_does_not_pin_is_not_taken(self) -> None:
        other = Release("cluster-api", "1.9.0", ("v1beta1",))
        self.assertEqual([], other.pins())
        with self.assertRaisesRegex(
            SandboxError,
            r"go.sum does not pin .*cluster-api@v1\.9\.0; run `python -m sandbox\.management\.rel",
        ):
            other.directory()

    def test_a_release_is_not_pinned_by_one_whose_version_begins_alike(self) -> None:
        self.assertEqual([], Release("cluster-api", "1.10.1", ("v1beta1",)).pins())

    def test_every_release_is_pinned(self) -> None:
        for release in releases.RELEASES:
            self.assertGreaterEqual(len(release.pins()), 2, release)

    def test_modules_below_a_module_are_taken_from_their_own_downloads(self) -> None:
        """A local directory that is not part of the download becomes a requirement."""
        module = self.place / "m@v1.2.0"
        module.mkdir()
        (module / "go.mod").write_text(
            "module example.org/m\n\ngo 1.26\n\nreplace example.org/m/api => ./api\n\n"
            "require example.org/m/api v0.0.0\n"
        )
        (module / "go.sum").write_text("")
        changed = self.place / "controller-runtime"
        (changed / "pkg" / "webhook").mkdir(parents=True)
        (changed / "pkg" / "webhook" / "server.go").write_text(gomodules.LOOPBACK.line)
        self.assertEqual(["example.org/m/api"], gomodules.local_modules(module))
        pins = ["example.org/m v1.2.0 h1:x=", "example.org/m/api v1.2.0 h1:y="]
        with mock.patch.object(gomodules, "directory", return_value=changed):
            modfile = gomodules.loopback_modfile(module, self.place / "store", pins)
        self.assertIn("example.org/m/api v1.2.0", modfile.read_text())
        self.assertNotIn("./api", modfile.read_text())
        self.assertIn(pins[1], modfile.with_suffix(".sum").read_text())
