# SPDX-License-Identifier: Apache-2.0
"""How many machines a change replaces, and how long that takes."""

from __future__ import annotations

from typing import Any
import unittest

from magnum.drivers.k8s_capi_helm.commands.desired.object_changes import ChangeKind, ObjectChange
from magnum.drivers.k8s_capi_helm.commands.desired.rollout_duration import (
    machine_minutes,
    machine_rollouts,
    MachineRollout,
)


def machine(minutes: float, *, ready: str = "True", condition: str = "NodeHealthy") -> Any:
    """A Machine whose Node came so many minutes after its creation."""
    hours, rest = divmod(minutes * 60, 3600)
    since = f"2026-01-02T{10 + int(hours):02}:{int(rest // 60):02}:{int(rest % 60):02}Z"
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {"name": "m", "creationTimestamp": "2026-01-02T10:00:00Z"},
        "status": {
            "conditions": [{"type": condition, "status": ready, "lastTransitionTime": since}]
        },
    }


def deployment(count: int, **spec: Any) -> Any:
    return {
        "kind": "MachineDeployment",
        "metadata": {"name": "w"},
        "spec": {"replicas": count, **spec},
    }


def change(manifest: Any, path: str = "spec.template.spec.version") -> ObjectChange:
    title = f"{manifest['kind']} {manifest['metadata']['name']}"
    return ObjectChange(title, ChangeKind.CHANGED, manifest, None, path, "v2", "v1")


def rolling(surge: Any = None, unavailable: Any = None) -> Any:
    pairs = (("maxSurge", surge), ("maxUnavailable", unavailable))
    return {"rollingUpdate": {key: value for key, value in pairs if value is not None}}


class TestMinutes(unittest.TestCase):
    def test_the_median_of_the_machines(self) -> None:
        self.assertEqual(4, machine_minutes([machine(3), machine(4), machine(20)]))

    def test_the_older_condition(self) -> None:
        self.assertEqual(6, machine_minutes([machine(6, condition="Ready")]))

    def test_nobody_knows(self) -> None:
        for machines in ([], [machine(3, ready="False")], [machine(90)]):
            with self.subTest(machines):
                self.assertEqual(5, machine_minutes(machines))


class TestRollouts(unittest.TestCase):
    def rollouts(self, *changes: ObjectChange) -> list[MachineRollout]:
        return list(machine_rollouts(changes, [machine(4)]))

    def test_by_the_strategy(self) -> None:
        for strategy, minutes in (
            ({}, 40),
            ({"strategy": rolling()}, 40),
            ({"strategy": rolling(2)}, 20),
            ({"strategy": rolling(0, 5)}, 8),
            ({"strategy": rolling(1, 4)}, 8),
            ({"strategy": rolling("30%")}, 16),
            ({"strategy": rolling(0, "10%")}, 40),
            ({"rollout": {"strategy": rolling(5)}}, 8),
        ):
            with self.subTest(strategy):
                [rollout] = self.rollouts(change(deployment(10, **strategy)))
                self.assertEqual(MachineRollout("MachineDeployment w", 10, minutes), rollout)

    def test_a_control_plane_one_by_one(self) -> None:
        plane = {
            "kind": "KubeadmControlPlane",
            "metadata": {"name": "c"},
            "spec": {"replicas": 3, "strategy": rolling(3)},
        }
        [rollout] = self.rollouts(change(plane, "spec.version"))
        self.assertEqual((3, 12), (rollout.machines, rollout.minutes))

    def test_two_fields_of_one_object_are_one_rollout(self) -> None:
        two = [change(deployment(2)), change(deployment(2), "spec.template.spec.failureDomain")]
        self.assertEqual(1, len(self.rollouts(*two)))

    def test_what_replaces_nothing(self) -> None:
        self.assertEqual([], self.rollouts(change(deployment(2), "spec.replicas")))

    def test_where_the_autoscaler_sets_the_number_the_machines_count(self) -> None:
        own = {"cluster.x-k8s.io/deployment-name": "w"}
        machines = [machine(4) for _ in range(3)]
        for one in machines[:2]:
            one["metadata"]["labels"] = own
        manifest = deployment(1)
        del manifest["spec"]["replicas"]
        [rollout] = machine_rollouts([change(manifest)], machines)
        self.assertEqual((2, 8), (rollout.machines, rollout.minutes))

    def test_none_of_no_machine(self) -> None:
        [rollout] = self.rollouts(change(deployment(0)))
        self.assertEqual((0, 0), (rollout.machines, rollout.minutes))
