# SPDX-License-Identifier: Apache-2.0
"""Conditions, counters and generations, read at both API versions."""

from __future__ import annotations

import datetime

import testtools

from magnum.drivers.k8s_capi_helm.model import conditions, names
from magnum.drivers.k8s_capi_helm.model.conditions import ConditionStatus
from magnum.tests.unit.drivers.k8s_capi_helm import builders

VERSIONS = ("v1beta2", "v1beta1")


class ConditionTest(testtools.TestCase):
    """A condition is what it says now; anything else is Unknown."""

    def test_both_versions_say_the_same(self):
        for version in VERSIONS:
            said = conditions.condition(builders.cluster(version), "Available")
            self.assertIs(ConditionStatus.TRUE, said.status, version)
            self.assertTrue(said.good and said.present and not said.bad, version)

    def test_what_v1beta1_itself_calls_conditions_is_not_read(self):
        cluster = builders.cluster("v1beta1")
        cluster["status"]["conditions"] = [{"type": "Available", "status": "True"}]
        cluster["status"]["v1beta2"]["conditions"] = []
        self.assertIs(ConditionStatus.UNKNOWN, conditions.condition(cluster, "Available").status)

    def test_before_capi_1_9_everything_is_unknown(self):
        cluster = builders.cluster("v1beta1")
        del cluster["status"]["v1beta2"]
        self.assertFalse(conditions.condition(cluster, "Available").present)

    def test_absent_is_unknown_and_neither_good_nor_bad(self):
        said = conditions.condition(builders.cluster(), "Remediating")
        self.assertEqual((ConditionStatus.UNKNOWN, False), (said.status, said.present))
        self.assertFalse(said.good or said.bad)

    def test_older_than_the_spec_is_stale(self):
        for version in VERSIONS:
            cluster = builders.cluster(version)
            cluster["metadata"]["generation"] = 3
            said = conditions.condition(cluster, "Available")
            self.assertTrue(said.stale and said.status is ConditionStatus.UNKNOWN, version)

    def test_a_milestone_is_never_stale(self):
        cluster = builders.cluster()
        cluster["metadata"]["generation"] = 9
        self.assertTrue(conditions.condition(cluster, "ControlPlaneInitialized").good)

    def test_a_status_that_is_no_status_is_unknown(self):
        cluster = builders.cluster()
        builders.say(cluster, "Available", "Maybe")
        self.assertIs(ConditionStatus.UNKNOWN, conditions.condition(cluster, "Available").status)

    def test_happening_is_bad_news(self):
        control_plane = builders.control_plane()
        self.assertTrue(conditions.condition(control_plane, "RollingOut").good)
        builders.say(control_plane, "RollingOut", "True")
        self.assertTrue(conditions.condition(control_plane, "RollingOut").bad)

    def test_a_provider_is_read_in_any_shape(self):
        server = builders.server("s")
        self.assertTrue(conditions.condition(server, "InstanceReady").good)
        server["status"]["v1beta2"] = {
            "conditions": builders.conditions({"InstanceReady": "False"})
        }
        self.assertTrue(conditions.condition(server, "InstanceReady").bad)

    def test_polarity_is_written_down_for_every_condition(self):
        self.assertEqual({"True", "False"}, set(conditions.GOOD.values()))
        for kind in ("RollingOut", "ScalingUp", "ScalingDown", "Deleting", "Paused", "Remediating"):
            self.assertEqual("False", conditions.GOOD[kind], kind)


class ReadingTest(testtools.TestCase):
    """Counters, generations, timestamps: what is not said is not known."""

    def test_counters_of_both_versions(self):
        for version in VERSIONS:
            one = builders.deployment("gpu", 4, version)
            for key in ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"):
                self.assertEqual(4, conditions.counter(one, key), (version, key))

    def test_a_counter_that_is_not_there_is_not_zero(self):
        one = builders.deployment("gpu", 0)
        self.assertEqual(0, conditions.counter(one, "readyReplicas"))
        del one["status"]["readyReplicas"]
        self.assertIsNone(conditions.counter(one, "readyReplicas"))

    def test_the_old_counters_of_v1beta1_are_not_taken(self):
        one = builders.deployment("gpu", 4, "v1beta1")
        one["status"]["readyReplicas"] = 4
        del one["status"]["v1beta2"]["readyReplicas"]
        self.assertIsNone(conditions.counter(one, "readyReplicas"))

    def test_generation(self):
        one = builders.deployment("gpu")
        self.assertTrue(conditions.generation_seen(one))
        for change in ({"metadata": {"generation": 3}}, {"status": {}}, {"metadata": {}}):
            self.assertFalse(conditions.generation_seen({**one, **change}), change)

    def test_instants(self):
        wanted = datetime.datetime(2026, 11, 21, 7, 39, 14, tzinfo=datetime.timezone.utc)
        self.assertEqual(wanted, conditions.instant("2026-11-21T07:39:14Z"))
        self.assertEqual(wanted, conditions.instant("2026-11-21T07:39:14"))
        for text in (None, "", "yesterday", 7):
            self.assertIsNone(conditions.instant(text), text)

    def test_nothing_to_read_reads_as_nothing(self):
        for thing in ({}, {"status": None}, {"status": {"conditions": "x"}}, {"metadata": None}):
            self.assertFalse(conditions.condition(thing, "Ready").present, thing)
            self.assertFalse(conditions.generation_seen(thing), thing)
            self.assertFalse(conditions.is_terminating(thing), thing)
            self.assertIsNone(conditions.object_label(thing, names.LABEL_NODE_GROUP), thing)
