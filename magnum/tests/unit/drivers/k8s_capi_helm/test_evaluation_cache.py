# SPDX-License-Identifier: Apache-2.0
"""A verdict is used again for the very same inputs only, and for a bounded time."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import random
from typing import Any

import testtools

from magnum.drivers.k8s_capi_helm import model
from magnum.drivers.k8s_capi_helm.model import Operation, ReleaseRecord, Verb
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import ReleaseSnapshot
from magnum.drivers.k8s_capi_helm.reconcile.observe import evaluation_inputs
from magnum.drivers.k8s_capi_helm.reconcile.process import evaluation_cache
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import CONF, DriverCase, RELEASE

NOW = builders.NOW
SECOND = datetime.timedelta(seconds=1)
VERDICT = model.Verdict("CREATE_IN_PROGRESS", "waits", (), "UNKNOWN", {})
RECORD = ReleaseRecord("uuid-1", "project-1")
LIVE = model.LiveRelease(RELEASE, "ns", 1, "deployed", "openstack-cluster", "1.3.0", "own", {})
PARTS = (
    *("cluster", "infrastructure", "control_plane"),
    *("machine_deployments", "machine_sets", "machines", "servers", "addons"),
)


def observed() -> model.Observed:
    """A snapshot of objects that have versions, as an API server gives them."""
    snapshot = builders.observed()
    for number, thing in enumerate(builders.objects(snapshot)):
        thing["metadata"].update(uid=f"uid-{number}", resourceVersion=str(number))
    return snapshot


def inputs(snapshot: model.Observed, magnum: str = "rows", **changes: Any) -> Any:
    """The inputs of an evaluation."""
    known = dataclasses.replace(ReleaseSnapshot(RECORD, LIVE), **changes)
    return evaluation_inputs.inputs(magnum, known, snapshot, include_health=False)


class TestInputs(testtools.TestCase):
    def test_the_same_is_the_same(self) -> None:
        self.assertIsNotNone(inputs(observed()))
        self.assertEqual(inputs(observed()), inputs(observed()))

    def test_the_time_of_a_snapshot_is_no_input(self) -> None:
        later = dataclasses.replace(observed(), at=NOW + SECOND)
        self.assertEqual(inputs(observed()), inputs(later))

    def test_each_changed_object_is_seen(self) -> None:
        same = inputs(observed())
        for part in PARTS:
            changed = observed()
            found = getattr(changed, part)
            thing = found[-1] if isinstance(found, tuple) else found
            thing["metadata"]["resourceVersion"] += "0"
            self.assertNotEqual(same, inputs(changed), part)

    def test_an_object_without_a_version_is_compared_as_a_whole(self) -> None:
        bare, changed = builders.observed(), copy.deepcopy(builders.observed())
        self.assertEqual(inputs(bare), inputs(builders.observed()))
        changed.cluster["status"]["phase"] = "Another"
        self.assertNotEqual(inputs(bare), inputs(changed))

    def test_each_object_that_comes_goes_or_is_made_anew_is_seen(self) -> None:
        same = inputs(observed())
        for part in ("machine_deployments", "machine_sets", "machines", "servers", "addons"):
            whole = getattr(observed(), part)
            fewer = dataclasses.replace(observed(), **{part: whole[:-1]})
            self.assertNotEqual(same, inputs(fewer), part)
            replaced = observed()
            getattr(replaced, part)[0]["metadata"]["uid"] = "another"
            self.assertNotEqual(same, inputs(replaced), part)
        for part in ("cluster", "infrastructure", "control_plane"):
            gone = dataclasses.replace(observed(), **{part: model.Missing.NOT_FOUND})
            self.assertNotEqual(same, inputs(gone), part)

    def test_what_others_know_is_seen(self) -> None:
        same = inputs(observed())
        for changes in (
            {"server_faults": {"id": "No valid host was found."}},
            {"failed_balancer": "balancer"},
            {"credential": "Keystone refuses it."},
            {"autoscaler": ()},
            {"events": (builders.event("Machine", "m", "Failed", "why"),)},
        ):
            snapshot = dataclasses.replace(observed(), **changes)
            self.assertNotEqual(same, inputs(snapshot), str(changes))

    def test_what_cannot_be_read_is_never_the_same(self) -> None:
        for part in PARTS:
            unread = dataclasses.replace(observed(), **{part: model.Missing.UNREADABLE})
            self.assertIsNone(inputs(unread), part)
        self.assertIsNone(inputs(dataclasses.replace(observed(), unreachable="no answer")))
        self.assertIsNone(inputs(observed(), record=None))
        self.assertIsNone(inputs(observed(), live=None))

    def test_record_release_and_rows_are_seen(self) -> None:
        same = inputs(observed())
        operation = Operation(id="a", verb=Verb.RESIZE, started_at=NOW)
        for changes in (
            {"record": dataclasses.replace(RECORD, operations=(operation,))},
            {"record": dataclasses.replace(RECORD, ready_fingerprint="abc")},
            {"record": dataclasses.replace(RECORD, holder="another/1")},
            {"live": dataclasses.replace(LIVE, revision=2)},
            {"live": dataclasses.replace(LIVE, values={"a": 1})},
            {"magnum": "other rows"},
        ):
            self.assertNotEqual(same, inputs(observed(), **changes), str(changes))


class TestRows(DriverCase):
    """Each field of Magnum's objects and each option is an input."""

    def digest(self, cluster: Any) -> str:
        return evaluation_inputs.magnum_digest(CONF, cluster, list(cluster.nodegroups))

    def test_a_changed_field_is_seen(self) -> None:
        self.create()
        cluster = self.cluster()
        same = self.digest(cluster)
        self.assertEqual(same, self.digest(self.cluster()))
        for field, value in (
            ("status", "UPDATE_IN_PROGRESS"),
            ("status_reason", "another"),
            ("labels", {"a": "b"}),
            ("updated_at", datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc)),
            ("health_status", "UNHEALTHY"),
        ):
            changed = self.cluster()
            setattr(changed, field, value)
            self.assertNotEqual(same, self.digest(changed), field)

    def test_a_changed_nodegroup_is_seen(self) -> None:
        self.create()
        same = self.digest(self.cluster())
        group = self.group("default-worker")
        group.node_count = 4
        group.save()
        self.assertNotEqual(same, self.digest(self.cluster()))

    def test_a_changed_option_is_seen(self) -> None:
        self.create()
        same = self.digest(self.cluster())
        self.config(group="capi_helm", update_timeout=7)
        self.assertNotEqual(same, self.digest(self.cluster()))


class TestCache(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.seconds = 0.0
        self.jitter = 1.0
        self.cache = evaluation_cache.EvaluationCache(
            clock=lambda: self.seconds, jitter=lambda least, most: self.jitter
        )
        self.inputs = inputs(observed())

    def kept(self, at: datetime.datetime = NOW) -> model.Verdict | None:
        return self.cache.verdict(RELEASE, self.inputs, at)

    def test_it_holds_for_a_while(self) -> None:
        self.assertIsNone(self.kept())
        self.cache.keep_verdict(RELEASE, self.inputs, VERDICT, NOW)
        self.assertEqual(VERDICT, self.kept())
        self.assertEqual(VERDICT, self.kept(NOW + evaluation_cache.VERDICT_HOLDS))
        self.assertIsNone(self.kept(NOW + evaluation_cache.VERDICT_HOLDS + SECOND))

    def test_it_holds_no_longer_than_the_time_lets_it(self) -> None:
        self.cache.keep_verdict(RELEASE, self.inputs, VERDICT, NOW, 20 * SECOND)
        self.assertEqual(VERDICT, self.kept(NOW + 20 * SECOND))
        self.assertIsNone(self.kept(NOW + 21 * SECOND))

    def test_not_all_end_at_once(self) -> None:
        self.jitter = 0.7
        self.cache.keep_verdict(RELEASE, self.inputs, VERDICT, NOW, 20 * SECOND)
        self.assertEqual(VERDICT, self.kept(NOW + 14 * SECOND))
        self.assertIsNone(self.kept(NOW + 15 * SECOND))

    def test_it_is_for_the_same_versions(self) -> None:
        same = evaluation_cache.Versions("row", frozenset({("machine", "1")}), ())
        self.cache.keep_verdict(RELEASE, self.inputs, VERDICT, NOW, 20 * SECOND, same)
        found = [
            self.cache.verdict_of(
                RELEASE, versions, at, include_health=health, magnum=lambda: "rows"
            )
            for versions, at, health in (
                (same, NOW, False),
                (same, NOW + 20 * SECOND, False),
                (same, NOW + 21 * SECOND, False),
                (same, NOW - SECOND, False),
                (same, NOW, True),
                (dataclasses.replace(same, row="other"), NOW, False),
                (dataclasses.replace(same, objects=frozenset()), NOW, False),
                (dataclasses.replace(same, stale_controllers=("capi",)), NOW, False),
            )
        ]
        self.assertEqual([VERDICT, VERDICT, *[None] * 6], found)

    def test_without_versions_nothing_is_unchanged(self) -> None:
        self.cache.keep_verdict(RELEASE, self.inputs, VERDICT, NOW)
        versions = evaluation_cache.Versions("row", frozenset(), ())
        self.assertIsNone(
            self.cache.verdict_of(
                RELEASE, versions, NOW, include_health=False, magnum=lambda: "rows"
            )
        )

    def test_magnums_objects_are_compared_once_in_a_minute(self) -> None:
        versions, read = evaluation_cache.Versions("row", frozenset(), ()), list[str]()
        self.cache.keep_verdict(RELEASE, self.inputs, VERDICT, NOW, versions=versions)

        def unchanged(after: int, magnum: str = "rows") -> model.Verdict | None:
            def digest() -> str:
                read.append(magnum)
                return magnum

            at = NOW + after * SECOND
            return self.cache.verdict_of(RELEASE, versions, at, include_health=False, magnum=digest)

        self.assertEqual(VERDICT, unchanged(59))
        self.assertEqual([], read)
        self.assertEqual(VERDICT, unchanged(60))
        self.assertEqual(VERDICT, unchanged(119))
        self.assertEqual(["rows"], read)
        self.assertIsNone(unchanged(120, "other rows"))
        self.assertEqual(VERDICT, unchanged(120))

    def test_the_objects_of_a_fleet_are_not_compared_in_one_round(self) -> None:
        versions = evaluation_cache.Versions("row", frozenset(), ())
        cache = evaluation_cache.EvaluationCache(jitter=random.Random(1).uniform)  # noqa: S311
        for number in range(100):
            cache.keep_verdict(f"r{number}", self.inputs, VERDICT, NOW, versions=versions)
        rounds = list[int]()
        for after in range(10, 70, 10):
            read = list[str]()
            for number in range(100):
                cache.verdict_of(
                    f"r{number}",
                    versions,
                    NOW + after * SECOND,
                    include_health=False,
                    magnum=lambda read=read: read.append("rows") or "rows",  # type: ignore[misc]
                )
            rounds.append(len(read))
        self.assertGreaterEqual(sum(rounds), 100)
        self.assertLess(max(rounds), 60)

    def test_with_the_health_is_another_one(self) -> None:
        self.cache.keep_verdict(RELEASE, self.inputs, VERDICT, NOW)
        healthy = dataclasses.replace(self.inputs, include_health=True)
        other = dataclasses.replace(VERDICT, health="UNHEALTHY")
        self.cache.keep_verdict(RELEASE, healthy, other, NOW)
        self.assertEqual(VERDICT, self.cache.verdict(RELEASE, self.inputs, NOW))
        self.assertEqual(other, self.cache.verdict(RELEASE, healthy, NOW))
        self.cache.forget(RELEASE)
        self.assertIsNone(self.cache.verdict(RELEASE, healthy, NOW))

    def test_it_holds_from_one_health_poll_to_the_next(self) -> None:
        self.inputs = dataclasses.replace(self.inputs, include_health=True)
        self.cache.keep_verdict(RELEASE, self.inputs, VERDICT, NOW)
        self.assertEqual(VERDICT, self.kept(NOW + datetime.timedelta(seconds=75)))
        self.assertIsNone(self.kept(NOW + evaluation_cache.HEALTHY_HOLDS + SECOND))

    def test_clusters_that_are_not_evaluated_any_more_are_discarded(self) -> None:
        for number in range(100):
            self.cache.keep_verdict(f"deleted-{number}", self.inputs, VERDICT, NOW)
        self.seconds += evaluation_cache.HEALTHY_HOLDS.total_seconds() + 1
        later = NOW + 2 * evaluation_cache.HEALTHY_HOLDS
        self.cache.keep_verdict(RELEASE, self.inputs, VERDICT, later)
        known = [
            release
            for release in (RELEASE, *(f"deleted-{number}" for number in range(100)))
            if self.cache.magnum_of(release, include_health=False) == "rows"
        ]
        self.assertEqual([RELEASE], known)

    def test_a_clock_that_was_put_back_ends_it(self) -> None:
        self.cache.keep_verdict(RELEASE, self.inputs, VERDICT, NOW)
        self.assertIsNone(self.kept(NOW - SECOND))

    def test_a_deadline_ends_it(self) -> None:
        limit = NOW + 5 * SECOND
        operation = Operation(id="a", verb=Verb.RESIZE, started_at=NOW, deadline=limit)
        record = dataclasses.replace(RECORD, operations=(operation,))
        self.inputs = inputs(observed(), record=record)
        self.cache.keep_verdict(RELEASE, self.inputs, VERDICT, NOW)
        self.assertEqual(VERDICT, self.kept(limit))
        self.assertIsNone(self.kept(limit + SECOND))

    def test_it_is_for_the_same_inputs_of_the_same_release(self) -> None:
        self.cache.keep_verdict(RELEASE, self.inputs, VERDICT, NOW)
        other = dataclasses.replace(self.inputs, magnum="other rows")
        self.assertIsNone(self.cache.verdict(RELEASE, other, NOW))
        self.assertIsNone(self.cache.verdict("another", self.inputs, NOW))
        self.assertEqual("rows", self.cache.magnum_of(RELEASE, include_health=False))
        self.assertIsNone(self.cache.magnum_of(RELEASE, include_health=True))

    def test_it_is_forgotten(self) -> None:
        self.cache.keep_verdict(RELEASE, self.inputs, VERDICT, NOW)
        self.cache.forget(RELEASE)
        self.assertIsNone(self.kept())
