# SPDX-License-Identifier: Apache-2.0
"""What older versions have stored is what this one stores, reads, and carries on from.

The recordings are ``recorded_state/VERSION.json``, one for each version of the driver;
``stored_state`` says what is in them and how that of this version is made anew.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import dataclasses
import io
import json
import pathlib
import re
import subprocess
from typing import Any

import fixtures
import testtools

from magnum.drivers.k8s_capi_helm import model
from magnum.drivers.k8s_capi_helm.helm import recovery
from magnum.drivers.k8s_capi_helm.lease import codec, record_format
from magnum.tests.unit.drivers.k8s_capi_helm import stored_state
from magnum.tests.unit.drivers.k8s_capi_helm.stored_state import END, Json, LEASE

RECORDED = stored_state.recorded()
CHECKOUT = pathlib.Path(__file__).parents[5]


def leases(version: str = stored_state.VERSION) -> Iterator[tuple[str, Json]]:
    """Every Lease that a version has recorded, with the scene and the moment that it is of."""
    for scene, moments in stored_state.recorded(version).items():
        for name, moment in moments.items():
            if name != END and moment[LEASE] is not None:
                yield f"{scene} > {name}", moment[LEASE]


def notes(found: Json) -> Json:
    """The annotations of a Lease."""
    annotations: Json = found["metadata"].get("annotations") or {}
    return annotations


def encoded(record: Any) -> Json:
    """The annotations of a Lease that says what a record does."""
    entries = [codec.entry(one) for one in record.operations]
    found: Json = {"metadata": {}}
    for key, text in (
        (codec.OPERATIONS, json.dumps(entries) if entries else ""),
        (codec.CHART_SOURCE, record.chart_source),
        (codec.CHART_DIGEST, record.chart_digest),
        (codec.FIRST_LOOK, record.ready_fingerprint),
        (codec.GROUP_LOOKS, codec.encode_mapping(record.nodegroup_ready_fingerprints)),
        (codec.WRITTEN, codec.encode_mapping(record.applied_generations)),
        (codec.TOMBSTONE, "true" if record.tombstone else ""),
        (codec.RETIRED, codec.retired_credentials(record.retired_credentials)),
        (codec.OWED, codec.deferred_changes(record.deferred)),
        (codec.CLEARED, "true" if record.is_cloud_cleared else ""),
        (codec.REVISIONS, codec.revisions(record.revisions)),
    ):
        codec.annotate(found, key, text)
    record_format.record_writer(found)
    return notes(found)


class TestRecording(testtools.TestCase):
    """The recording has everything that can be stored, and this version reads all of it."""

    def test_every_lease_is_written_as_it_was_read(self) -> None:
        wrong = [
            one
            for place, found in leases()
            for one in stored_state.differences(notes(found), encoded(codec.record(found)), place)
        ]
        self.assertEqual("", "\n".join(wrong))

    def test_every_annotation_occurs(self) -> None:
        known = {
            text
            for text in (*vars(codec).values(), *vars(record_format).values())
            if isinstance(text, str) and text.startswith(f"{codec.PREFIX}/")
        }
        occurs = {key for _, found in leases() for key in notes(found)}
        self.assertEqual(set(), known - occurs, "annotations that no recorded Lease has")
        self.assertEqual(set(), occurs - known, "recorded annotations that nobody knows")

    def test_every_field_occurs(self) -> None:
        said: set[str] = set()
        for _, found in leases():
            said |= set(_said(codec.record(found)))
        kinds = (
            model.ReleaseRecord,
            model.Operation,
            model.ResolvedNames,
            model.RetiredCredential,
            model.DeferredChange,
            model.Revisions,
        )
        fields = {
            f"{kind.__name__}.{one.name}"
            for kind in kinds
            for one in dataclasses.fields(kind)
            # The version of a Lease is the server's, and no part of what is stored in it.
            if one.compare
        }
        self.assertEqual(set(), fields - said, "fields of which no recorded Lease says anything")

    def test_every_verb_occurs(self) -> None:
        verbs = {one.verb for _, found in leases() for one in codec.record(found).operations}
        self.assertEqual(set(model.Verb), verbs)

    def test_a_deadline_is_one_and_is_none(self) -> None:
        operations = [one for _, found in leases() for one in codec.record(found).operations]
        self.assertEqual({True, False}, {one.deadline is None for one in operations})

    def test_a_marked_revision_is_read_as_one(self) -> None:
        moment = RECORDED["half done"]["marked"]
        (secret,) = (one for key, one in moment.items() if key.startswith("Secret/sh.helm.release"))
        self.assertTrue(recovery.is_marked(secret))
        self.assertEqual("pending-install", recovery.effective_status([secret], "failed"))


def _said(thing: Any) -> Iterator[str]:
    """The fields of a record, and of what is in it, that say something."""
    for field in dataclasses.fields(thing):
        found = getattr(thing, field.name)
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if found != default:
            yield f"{type(thing).__name__}.{field.name}"
        for one in found if isinstance(found, tuple) else (found,):
            if dataclasses.is_dataclass(one):
                yield from _said(one)


class TestVersions(testtools.TestCase):
    """Each version that is out has its recording, which stays, and which this one reads."""

    def test_this_version_has_one(self) -> None:
        self.assertIn(stored_state.VERSION, stored_state.versions())

    def test_the_version_is_that_of_the_checkout(self) -> None:
        """Else the checkout has to be installed again: pip install -e."""
        text = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
        found = re.findall(r'^version = "(.+)"$', text, re.MULTILINE)
        self.assertEqual([stored_state.VERSION], found)

    def test_recordings_of_released_versions_do_not_change(self) -> None:
        released = stored_state.released()
        self.assertEqual(released, {one: stored_state.digest(one) for one in released})

    def test_a_version_with_a_tag_is_released(self) -> None:
        if not (CHECKOUT / ".git").exists():
            self.skipTest("not a clone")
        command = ["git", "tag", "--list", "[0-9]*.[0-9]*.[0-9]*"]
        tags = subprocess.run(
            command, cwd=CHECKOUT, check=True, capture_output=True, text=True, timeout=60
        )
        self.assertEqual(set(), set(tags.stdout.split()) - set(stored_state.released()))

    def test_every_lease_of_every_version_is_read(self) -> None:
        found = [codec.record(lease) for one in stored_state.versions() for _, lease in leases(one)]
        self.assertNotEqual([], found)
        self.assertEqual(set(), {len(one.cluster_uuid) for one in found} - {36})


class TestRelease(testtools.TestCase):
    """The recording of a released version is not written again."""

    def setUp(self) -> None:
        super().setUp()
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, place in (("DIRECTORY", directory), ("RELEASED", directory / "released.txt")):
            self.useFixture(fixtures.MonkeyPatch(f"{stored_state.__name__}.{name}", place))
        stored_state.RELEASED.write_text("# none\n")
        stored_state.path(stored_state.VERSION).write_text("{}")

    def test_it_is_closed_once(self) -> None:
        self.assertEqual(0, stored_state.main(["--release"]))
        version = stored_state.VERSION
        self.assertEqual({version: stored_state.digest(version)}, stored_state.released())
        for arguments in ([], ["--release"]):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(1, stored_state.main(arguments))
            self.assertIn(f"Version {version} is released", said.getvalue())
            self.assertIn("Raise the version in pyproject.toml", said.getvalue())
        self.assertEqual("{}", stored_state.path(version).read_text())

    def test_what_is_packed_is_read_again(self) -> None:
        scenes = {"a": {"x": {LEASE: {"k": 1}, "o": {"k": 1}}, END: {LEASE: None, "o": [1]}}}
        text = stored_state.packed(scenes)
        stored_state.path("0.1.0").write_text(text)
        self.assertEqual(scenes, stored_state.recorded("0.1.0"))
        self.assertEqual(1, text.count('"k"'))


class TestScenes(stored_state.Scenes):
    """Each scene stores what is recorded, and goes on from every recorded Lease to the same end."""

    maxDiff = None

    def check_stored(self, scene: str) -> None:
        wrong = stored_state.differences(RECORDED[scene], self.play(scene), scene)
        self.assertEqual("", "\n".join(wrong))

    def check_end(self, scene: str, version: str) -> None:
        recorded = stored_state.recorded(version)[scene]
        for name, moment in recorded.items():
            if name != END:
                self.taken[name] = moment[LEASE]
        found = self.play(scene)
        self.assertEqual(set(), set(recorded) - set(found), "moments that do not occur any more")
        wrong = stored_state.differences(recorded[END], found[END], f"{scene} > {END}")
        self.assertEqual("", "\n".join(wrong))
        self.assertEqual(AT_REST.get(scene, 0), self.at_rest)


#: At how many recorded moments of each scene nothing is pending, so that a task changes nothing.
AT_REST = {
    "creation": 1,
    "autoscaled": 1,
    "resize": 1,
    "nodegroups": 1,
    "upgrade": 1,
    "rotation": 2,
    "half done": 1,
    "adopted": 1,
}


def _add_tests() -> None:
    for scene in stored_state.SCENES:
        name = scene.replace(" ", "_")

        def stored(self: TestScenes, scene: str = scene) -> None:
            self.check_stored(scene)

        setattr(TestScenes, f"test_{name}_stores_what_is_recorded", stored)
        for version in stored_state.versions():

            def end(self: TestScenes, scene: str = scene, version: str = version) -> None:
                self.check_end(scene, version)

            suffix = version.replace(".", "_")
            setattr(TestScenes, f"test_{name}_goes_on_from_recorded_leases_of_{suffix}", end)


_add_tests()


class TestDifferences(testtools.TestCase):
    """A difference is said with the key that has it."""

    def test_they_are_named(self) -> None:
        old = {"notes": {"a": '[{"id": 1, "verb": "x"}]', "b": "1"}}
        for new, wanted in (
            ({"notes": {"a": '[{"id": 1, "verb": "x"}]', "b": "1"}}, []),
            (
                {"notes": {"a": '[{"id": 1, "word": "x"}]', "b": "1"}},
                [
                    "notes > a[0] > verb: the key 'verb' is recorded and is not written any more",
                    "notes > a[0] > word: the key 'word' is written and is not recorded",
                ],
            ),
            (
                {"notes": {"a": '[{"verb": "x", "id": 1}]', "b": "1"}},
                [
                    'notes > a: it was \'[{"id": 1, "verb": "x"}]\' and is '
                    '\'[{"verb": "x", "id": 1}]\''
                ],
            ),
            (
                {"notes": {"a": '[{"id": 1, "verb": "x"}]', "b": 1}},
                ["notes > b: it was '1' and is 1"],
            ),
        ):
            self.assertEqual(wanted, list(stored_state.differences(old, new)))
