# SPDX-License-Identifier: Apache-2.0
"""``move``: the row first, then clusterctl, then the rest; interrupted anywhere, it continues."""

from __future__ import annotations

import pathlib
from typing import Any

import fixtures

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import fakes
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    OK,
    Printed,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.test_move_completed import (
    is_labelled,
    LABELLED,
    MOVED,
    revision,
)
from magnum.tests.unit.drivers.k8s_capi_helm.two_management_clusters import (
    OTHER,
    TwoManagementClusters,
)

CLUSTER = names.CLUSTER, NAMESPACE, RELEASE
LEASE = names.LEASE, NAMESPACE, names.lease(RELEASE)


class MoveCase(TwoManagementClusters, CommandCase):
    """A cluster on the default management cluster."""

    def setUp(self) -> None:
        super().setUp()
        self.made()
        self.kube.put(names.SECRET, revision(1))

    def move(self, to: str = OTHER, *options: str) -> Printed:
        return self.command("move", "demo", "--to", to, "-f", "json", *options)

    def clusterctl(self, source: fakes.FakeKube, target: fakes.FakeKube) -> None:
        """What clusterctl move does, as an operator runs it."""
        target.put(names.NAMESPACE, {"metadata": {"name": NAMESPACE}})
        for kind in MOVED:
            for obj in source.list(kind, NAMESPACE):
                if kind in LABELLED and not is_labelled(obj):
                    continue
                target.put(kind, obj)
                source.remove(kind, NAMESPACE, obj["metadata"]["name"])

    def places(self) -> tuple[str | None, list[bool], list[bool]]:
        """The note, and where the Cluster and the Lease are: here, there."""
        kubes = (self.kube, self.other_kube)
        return (
            self.cluster().stack_id,
            [kube.get(*CLUSTER) is not None for kube in kubes],
            [kube.get(*LEASE) is not None for kube in kubes],
        )


MOVED_THERE = (f"{RELEASE}@{OTHER}", [False, True], [False, True])


class TestMove(MoveCase):
    def test_step_by_step(self) -> None:
        first = self.move()
        self.assertEqual(WARNING, first.status, first.error)
        self.assertIn(f"run clusterctl move --namespace {NAMESPACE}", first.out)
        self.assertEqual((f"{RELEASE}@{OTHER}", [True, False], [True, False]), self.places())
        self.clusterctl(self.kube, self.other_kube)
        second = self.move()
        self.assertEqual(OK, second.status, second.error)
        self.assertEqual(MOVED_THERE, self.places())
        third = self.move()
        self.assertEqual(OK, third.status, third.error)
        self.assertEqual([f"on {OTHER}"], [row["Change"] for row in third.rows()])

    def test_it_is_managed_there_afterwards(self) -> None:
        self.move()
        self.clusterctl(self.kube, self.other_kube)
        self.move()
        # Helm finds its Secrets there.
        vars(self.other_helm).update(vars(self.helm))
        self.kube.calls.clear()
        with self.at_other():
            self.resize(3)
            self.capi_converges()
            self.status_task(2)
            self.health_task()
        cluster = self.cluster()
        self.assertEqual("UPDATE_COMPLETE", cluster.status, cluster.status_reason)
        self.assertEqual("HEALTHY", cluster.health_status, cluster.health_status_reason)
        self.assertEqual([], self.kube.calls)

    def test_and_back(self) -> None:
        self.move()
        self.clusterctl(self.kube, self.other_kube)
        self.move()
        self.move("default")
        self.clusterctl(self.other_kube, self.kube)
        done = self.move("default")
        self.assertEqual(OK, done.status, done.error)
        self.assertEqual((RELEASE, [True, False], [True, False]), self.places())

    def test_it_is_taken_back_before_clusterctl_begins(self) -> None:
        self.move()
        back = self.move("default")
        self.assertEqual(OK, back.status, back.error)
        self.assertEqual((RELEASE, [True, False], [True, False]), self.places())

    def test_but_not_after(self) -> None:
        self.move()
        self.clusterctl(self.kube, self.other_kube)
        refused = self.move("default")
        self.assertEqual(UNKNOWN, refused.status)
        self.assertIn("on its way", refused.error)
        self.assertEqual(f"{RELEASE}@{OTHER}", self.cluster().stack_id)

    def test_meanwhile_no_conductor_changes_it(self) -> None:
        """Nothing proves that it is there; and nothing is asked where it was."""
        self.move()
        self.kube.calls.clear()
        runs = len(self.helm.runs)
        self.resize(3)
        self.status_task(2)
        self.health_task()
        self.assertEqual([], self.kube.calls)
        self.assertEqual(runs, len(self.helm.runs))
        self.assertEqual([], self.other_helm.runs)

    def test_interrupted_anywhere_it_continues(self) -> None:
        """By an error of each request, one after the other; the next run ends it."""
        failures = 0
        for number in range(200):
            with self.subTest(number):
                self.bring_back()
                interrupted = self._interrupted(number)
                if self.cluster().stack_id != RELEASE and self.kube.get(*CLUSTER):
                    self.clusterctl(self.kube, self.other_kube)
                elif self.kube.get(*CLUSTER):
                    self.move()
                    self.clusterctl(self.kube, self.other_kube)
                done = self.move()
                self.assertEqual(OK, done.status, done.error)
                self.assertEqual(MOVED_THERE, self.places())
            if not interrupted:
                break
            failures += 1
        self.assertGreater(failures, 20)

    def bring_back(self) -> None:
        """The cluster is on the default management cluster again, complete."""
        if self.cluster().stack_id != RELEASE:
            self.move("default")
            self.clusterctl(self.other_kube, self.kube)
            self.move("default")
        self.assertEqual((RELEASE, [True, False], [True, False]), self.places())

    def _interrupted(self, number: int) -> bool:
        """Move it with an error at the request of this number; whether there were so many."""
        left = [number]

        def fail(verb: str, kind: names.Kind, name: str) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise errors.ManagementUnreachable("away", "away")

        for kube in (self.kube, self.other_kube):
            kube.before = fail
        first = self.move()
        self.end_process()
        if first.status == WARNING:
            self.clusterctl(self.kube, self.other_kube)
            for kube in (self.kube, self.other_kube):
                kube.before = fail
            self.move()
            self.end_process()
        return left[0] < 0

    def end_process(self) -> None:
        """Nothing fails any more, and the locks of a process that has ended are free."""
        for kube in (self.kube, self.other_kube):
            kube.before = None
            if kube.get(*LEASE):
                kube.patch(*LEASE, {"spec": {"holderIdentity": None}})


class TestRefused(MoveCase):
    def refused(self, words: str, *options: str, to: str = OTHER) -> None:
        printed = self.move(to, *options)
        self.assertEqual(UNKNOWN, printed.status, printed.out)
        self.assertIn(words, printed.error)
        self.assertEqual(RELEASE, self.cluster().stack_id)

    def test_what_is_in_progress(self) -> None:
        self.resize(3)
        self.refused("UPDATE_IN_PROGRESS")

    def test_a_name_that_is_not_configured(self) -> None:
        self.refused("'az9'", to="az9")

    def test_without_its_lease(self) -> None:
        self.kube.remove(*LEASE)
        self.refused("No management cluster has the Lease")

    def test_part_of_a_project(self) -> None:
        uuid = "99999999-8888-4777-8666-111111111111"
        objects.Cluster(
            self.context,
            uuid=uuid,
            name="other",
            project_id="p1",
            user_id="u1",
            cluster_template_id=self.template.uuid,
            stack_id="other-abcdefghijkl",
            status="CREATE_COMPLETE",
        ).create()
        self.refused(f"other ({uuid})")

    def test_while_a_conductor_changes_it(self) -> None:
        with self.other_conductor().acquire(NAMESPACE, RELEASE, wait=0):
            self.refused("is being applied")

    def other_conductor(self) -> Any:
        self.count_seconds("other", 60)
        held, self.ports = self.ports.leases, self.peers["default"]
        return held

    def test_options_of_clusterctl(self) -> None:
        self.refused("give --clusterctl", "--clusterctl", "clusterctl")
        some = ("--kubeconfig", "/nowhere", "--to-kubeconfig", "/nowhere")
        self.refused("--clusterctl is '/nowhere'", "--clusterctl", "/nowhere", *some)


class TestClusterctl(MoveCase):
    def run_program(self, text: str) -> tuple[Printed, str]:
        """Move with a program in place of clusterctl; what it was called with."""
        place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        program, called = place / "clusterctl", place / "called"
        program.write_text(f'#!/bin/sh\necho "$@" > {called}\n{text}\n')
        program.chmod(0o700)
        admin = place / "admin"
        admin.write_text("")
        paths = ("--kubeconfig", str(admin), "--to-kubeconfig", str(admin))
        printed = self.move(OTHER, "--clusterctl", str(program), *paths)
        return printed, called.read_text().replace(str(admin), "ADMIN")

    def test_it_is_run_for_the_namespace(self) -> None:
        printed, called = self.run_program("exit 0")
        self.assertEqual(
            f"move --namespace {NAMESPACE} --kubeconfig ADMIN --to-kubeconfig ADMIN\n", called
        )
        self.assertIn(f"moved to {OTHER}", printed.out)

    def test_it_fails(self) -> None:
        printed, _ = self.run_program("echo 'Error: no providers' >&2; exit 1")
        self.assertEqual(UNKNOWN, printed.status)
        self.assertIn("Error: no providers", printed.error)
        # The same command continues.
        self.assertEqual(f"{RELEASE}@{OTHER}", self.cluster().stack_id)
