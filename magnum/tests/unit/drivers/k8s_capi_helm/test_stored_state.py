# SPDX-License-Identifier: Apache-2.0
"""What older versions have stored is what this one stores, reads, and carries on from.

The recording is ``stored_state.json``; ``stored_state`` says what is in it and how it is made anew.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import json
from typing import Any

import testtools

from magnum.drivers.k8s_capi_helm import model
from magnum.drivers.k8s_capi_helm.helm import recovery
from magnum.drivers.k8s_capi_helm.lease import codec
from magnum.tests.unit.drivers.k8s_capi_helm import stored_state
from magnum.tests.unit.drivers.k8s_capi_helm.stored_state import END, Json, LEASE

RECORDED = stored_state.recorded()


def leases() -> Iterator[tuple[str, Json]]:
    """Every recorded Lease, with the scene and the moment that it is of."""
    for scene, moments in RECORDED.items():
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
            for text in vars(codec).values()
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


class TestScenes(stored_state.Scenes):
    """Each scene stores what is recorded, and goes on from every recorded Lease to the same end."""

    maxDiff = None

    def check_stored(self, scene: str) -> None:
        wrong = stored_state.differences(RECORDED[scene], self.play(scene), scene)
        self.assertEqual("", "\n".join(wrong))

    def check_end(self, scene: str) -> None:
        for name, moment in RECORDED[scene].items():
            if name != END:
                self.taken[name] = moment[LEASE]
        found = self.play(scene)
        self.assertEqual(set(RECORDED[scene]), set(found), "moments")
        wrong = stored_state.differences(RECORDED[scene][END], found[END], f"{scene} > {END}")
        self.assertEqual("", "\n".join(wrong))


def _add_tests() -> None:
    for scene in stored_state.SCENES:
        name = scene.replace(" ", "_")

        def stored(self: TestScenes, scene: str = scene) -> None:
            self.check_stored(scene)

        def end(self: TestScenes, scene: str = scene) -> None:
            self.check_end(scene)

        setattr(TestScenes, f"test_{name}_stores_what_is_recorded", stored)
        setattr(TestScenes, f"test_{name}_goes_on_from_recorded_leases", end)


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
