# SPDX-License-Identifier: Apache-2.0
"""Whether the next step of an upgrade is due, by what a reconciliation has read."""

from __future__ import annotations

import dataclasses
import unittest

from magnum.drivers.k8s_capi_helm.model import LiveRelease, Operation, ReleaseRecord, Verb
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import ReleaseSnapshot
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import upgrade
from magnum.drivers.k8s_capi_helm.values.tree.live import CONTROL_PLANE
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.test_helm_values import REQUEST

PLACE = builders.RELEASE, builders.NAMESPACE
VALUES = {
    "kubernetesVersion": builders.VERSION,
    "controlPlane": {"machineCount": 3},
    "nodeGroups": [{"name": "default-worker", "kubernetesVersion": "1.33.9"}],
}
LIVE = LiveRelease(*PLACE, 2, "deployed", "openstack-cluster", "1.3.0", "own", VALUES)
UPGRADE = Operation(
    "1", Verb.UPGRADE, builders.NOW, (CONTROL_PLANE, "default-worker"), is_accepted=True
)
OBJECTS = builders.observed()


def record(*operations: Operation) -> ReleaseRecord:
    """The record of a release with pending operations."""
    return ReleaseRecord("uuid", "project", operations)


class TestIsDue(unittest.TestCase):
    def test_a_ready_control_plane_lets_its_nodegroups_follow(self) -> None:
        self.assertTrue(upgrade.is_step_due(record(UPGRADE), LIVE, REQUEST, OBJECTS))

    def test_a_control_plane_that_is_not_ready_or_not_read_does_not(self) -> None:
        rolling = builders.observed(masters=2)
        unreadable = dataclasses.replace(OBJECTS, unreachable="timed out")
        for objects in (rolling, unreadable, None):
            self.assertFalse(upgrade.is_step_due(record(UPGRADE), LIVE, REQUEST, objects))

    def test_the_first_step_waits_for_no_control_plane(self) -> None:
        requested = dataclasses.replace(UPGRADE, is_accepted=False)
        self.assertTrue(upgrade.is_step_due(record(requested), LIVE, REQUEST, None))
        self.assertFalse(upgrade.are_nodegroups_due(record(requested), LIVE, REQUEST))

    def test_nothing_is_due_without_upgrade_release_or_waiting_nodegroups(self) -> None:
        values = {**VALUES, "nodeGroups": [{"name": "default-worker"}]}
        upgraded = dataclasses.replace(LIVE, values=values)
        self.assertFalse(upgrade.is_step_due(None, LIVE, REQUEST, OBJECTS))
        self.assertFalse(upgrade.is_step_due(record(), LIVE, REQUEST, OBJECTS))
        self.assertFalse(upgrade.is_step_due(record(UPGRADE), None, REQUEST, OBJECTS))
        self.assertFalse(upgrade.is_step_due(record(UPGRADE), upgraded, REQUEST, OBJECTS))


class TestSnapshot(unittest.TestCase):
    """Objects that were read before the lock was taken are those of the revision of then."""

    READ = ReleaseSnapshot(record(UPGRADE), LIVE, objects=OBJECTS)

    def test_objects_of_the_same_revision_stay(self) -> None:
        current = self.READ.with_release(record(), dataclasses.replace(LIVE))
        self.assertIs(OBJECTS, current.objects)
        self.assertEqual((), current.record.operations if current.record else None)

    def test_objects_of_another_revision_do_not(self) -> None:
        for live in (dataclasses.replace(LIVE, revision=3), None):
            current = self.READ.with_release(record(), live)
            self.assertEqual((live, None), (current.live, current.objects))
