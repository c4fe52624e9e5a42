# SPDX-License-Identifier: Apache-2.0
"""Stale, missing or unreadable is never COMPLETE, HEALTHY or gone: piece by piece."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses

from hypothesis import given, strategies
import testtools

from magnum.drivers.k8s_capi_helm import model, status
from magnum.drivers.k8s_capi_helm.model import Missing
from magnum.drivers.k8s_capi_helm.status.deletion import order as deletion_order
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.builders import Json, NOW

SINGLES = ("cluster", "infrastructure", "control_plane")
LISTS = ("machine_deployments", "machine_sets", "machines", "servers", "addons")
CORE = ("cluster", "control_plane", "machine_deployments", "machine_sets", "machines")
#: Conditions without which nothing is in place, and those without which nobody is healthy.
NEEDED = {
    "cluster": ("InfrastructureReady", "Available"),
    "control_plane": ("Available", "RollingOut", "ScalingUp", "ScalingDown"),
    "machines": ("Ready", "UpToDate"),
    "servers": ("InstanceReady",),
}
VITAL = {
    "cluster": ("Available", "RemoteConnectionProbe"),
    "control_plane": ("Available",),
    "machines": ("Ready",),
    "servers": ("InstanceReady",),
}

scene = strategies.builds(
    builders.observed,
    strategies.dictionaries(
        strategies.sampled_from(["default-worker", "gpu"]), strategies.integers(1, 3), min_size=1
    ),
    strategies.sampled_from([1, 3]),
    strategies.sampled_from(["v1beta2", "v1beta1"]),
)
index = strategies.integers(0, 20)


def wanted(observed: model.Observed) -> model.MagnumState:
    """The rows that ask for just this."""
    counts = {
        one["metadata"]["labels"]["capi.stackhpc.com/node-group"]: one["spec"]["replicas"]
        for one in observed.machine_deployments
    }
    masters = observed.control_plane["spec"]["replicas"]
    return builders.state("UPDATE_IN_PROGRESS", counts, masters)


def one_of(observed: model.Observed, kind: str, number: int) -> Json:
    found = getattr(observed, kind)
    return found if isinstance(found, dict) else found[number % len(found)]


def holder(thing: Json) -> Json:
    return thing["status"].get("v1beta2", thing["status"])


class LawTest(testtools.TestCase):
    def break_it(
        self, observed: model.Observed, change: Callable[[model.Observed], model.Observed]
    ) -> model.Verdict:
        """The verdict of the look after a complete one, which has been changed."""
        state = wanted(observed)
        first = status.evaluate(observed, state, NOW)
        self.assertNotEqual("", first.fingerprint, first.reason)
        second = dataclasses.replace(state, ready_fingerprint=first.fingerprint)
        self.assertEqual("UPDATE_COMPLETE", status.evaluate(observed, second, NOW).status)
        self.assertEqual("HEALTHY", status.evaluate(observed, second, NOW).health)
        return status.evaluate(change(observed), second, NOW)

    def assert_not_done(self, verdict: model.Verdict) -> None:
        self.assertEqual(("UPDATE_IN_PROGRESS", ""), (verdict.status, verdict.fingerprint))
        self.assertTrue(verdict.reason)

    @given(scene, strategies.sampled_from(LISTS), index)
    def test_an_object_that_is_missing(self, observed, kind, number):
        def change(look: model.Observed) -> model.Observed:
            left = list(getattr(look, kind))
            left.pop(number % len(left))
            return dataclasses.replace(look, **{kind: tuple(left)})

        verdict = self.break_it(observed, change)
        self.assert_not_done(verdict)
        self.assertNotEqual("HEALTHY", verdict.health)

    @given(scene, strategies.sampled_from((*SINGLES, *LISTS)), strategies.sampled_from(Missing))
    def test_a_kind_that_is_not_there(self, observed, kind, why):
        value = () if why is Missing.NOT_FOUND and kind in LISTS else why
        verdict = self.break_it(observed, lambda look: dataclasses.replace(look, **{kind: value}))
        self.assert_not_done(verdict)
        self.assertNotEqual("HEALTHY", verdict.health)

    @given(scene, strategies.sampled_from(CORE), index)
    def test_an_object_that_its_controller_has_not_seen(self, observed, kind, number):
        def change(look: model.Observed) -> model.Observed:
            one_of(look, kind, number)["metadata"]["generation"] += 1
            return look

        verdict = self.break_it(observed, change)
        self.assert_not_done(verdict)
        self.assertNotEqual("HEALTHY", verdict.health)

    @given(scene, strategies.sampled_from((*SINGLES, *LISTS)), index)
    def test_a_status_that_is_gone(self, observed, kind, number):
        def change(look: model.Observed) -> model.Observed:
            del one_of(look, kind, number)["status"]
            return look

        verdict = self.break_it(observed, change)
        self.assert_not_done(verdict)
        self.assertNotEqual("HEALTHY", verdict.health)

    @given(scene, strategies.sampled_from((*SINGLES, *LISTS)), index)
    def test_an_object_that_is_going(self, observed, kind, number):
        def change(look: model.Observed) -> model.Observed:
            one_of(look, kind, number)["metadata"]["deletionTimestamp"] = "2026-11-21T11:59:00Z"
            return look

        self.assert_not_done(self.break_it(observed, change))

    @given(
        scene,
        strategies.sampled_from(
            [(k, c) for table in (NEEDED, VITAL) for k in table for c in table[k]]
        ),
        index,
        strategies.sampled_from(["absent", "Unknown", "stale", "nonsense"]),
    )
    def test_a_condition_that_does_not_say_so(self, observed, which, number, how):
        kind, name = which

        def change(look: model.Observed) -> model.Observed:
            listed = holder(one_of(look, kind, number))["conditions"]
            said = next(one for one in listed if one["type"] == name)
            if how == "absent":
                listed.remove(said)
            elif how == "stale" and kind != "servers":
                said["observedGeneration"] = 1
            else:
                said["status"] = how
            return look

        verdict = self.break_it(observed, change)
        if name in NEEDED.get(kind, ()):
            self.assert_not_done(verdict)
        if name in VITAL.get(kind, ()):
            self.assertNotEqual("HEALTHY", verdict.health)

    @given(
        scene,
        strategies.sampled_from(["control_plane", "machine_sets"]),
        index,
        strategies.sampled_from(["replicas", "readyReplicas", "availableReplicas"]),
    )
    def test_a_counter_that_is_gone(self, observed, kind, number, key):
        def change(look: model.Observed) -> model.Observed:
            thing = one_of(look, kind, number)
            for place in (thing["status"], holder(thing)):
                place.pop(key, None)
            return look

        self.assert_not_done(self.break_it(observed, change))

    @given(scene, strategies.sets(strategies.sampled_from((*SINGLES, *LISTS[:-1])), min_size=1))
    def test_unreadable_is_never_gone(self, observed, kinds):
        lost = dataclasses.replace(observed, **dict.fromkeys(kinds, Missing.UNREADABLE))
        self.assertFalse(deletion_order.is_cluster_deleted(lost))
        state = wanted(observed)
        groups = tuple(
            one if one.is_control_plane else dataclasses.replace(one, status="DELETE_IN_PROGRESS")
            for one in state.groups
        )
        verdict = status.evaluate(lost, dataclasses.replace(state, groups=groups), NOW)
        self.assertEqual(set(), {one.name for one in verdict.groups if one.is_deleted})
