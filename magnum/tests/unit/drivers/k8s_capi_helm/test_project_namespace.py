# SPDX-License-Identifier: Apache-2.0
"""A project's namespace: it goes with the last cluster, and with nothing else in it."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import functools
from typing import Any

import fixtures

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors, lease
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.release import project_namespace
from magnum.tests.unit.drivers.k8s_capi_helm import fakes, turns
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

_OTHER = "other-abcdefghijkl"
_LEVEL = "restricted"
_PODS = names.Kind("", "Pod", "pods", ("v1",))
_WIDGETS = names.Kind("example.org", "Widget", "widgets", ("v1",))
_OTHER_EVENTS = names.Kind("example.org", "Event", "events", ("v1",))


class Case(DriverCase):
    def namespace(self) -> Any:
        return self.kube.get(names.NAMESPACE, None, NAMESPACE)

    def end(self) -> None:
        """Delete the cluster, to the end of its row."""
        self.delete()
        self.status_task()
        self.capi_deletes()
        self.status_task(2)
        self.assertEqual([], objects.Cluster.list(self.context))
        self.assertEqual([], self.kube.list(names.LEASE, NAMESPACE))


class TestUnused(Case):
    """The last cluster of a project is deleted."""

    def test_it_goes_with_the_last_cluster_and_its_role_binding(self) -> None:
        self.made()
        self.assertIsNotNone(self.namespace())
        self.end()
        self.assertEqual([], list(self.kube.everything()))

    def test_what_every_namespace_has_does_not_keep_it(self) -> None:
        self.made()
        for kind, name in (
            (names.CONFIG_MAP, "kube-root-ca.crt"),
            (names.Kind("", "ServiceAccount", "serviceaccounts", ("v1",)), "default"),
            (names.EVENT, "demo.17f"),
            (names.Kind("events.k8s.io", "Event", "events", ("v1",)), "demo.17e"),
        ):
            self.kube.put(kind, {"metadata": {"name": name, "namespace": NAMESPACE}})
        self.end()
        self.assertIsNone(self.namespace())

    def test_it_goes_with_a_create_that_was_refused_after_it_was_made(self) -> None:
        def refuse(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("create", names.LEASE):
                raise errors.ManagementRefused("No.")

        self.kube.before = refuse
        self.create()
        self.kube.before = None
        self.assertEqual("CREATE_FAILED", self.cluster().status)
        self.assertIsNotNone(self.namespace())
        self.delete()
        self.status_task()
        self.assertIsNone(self.namespace())

    def test_the_next_cluster_gets_it_again(self) -> None:
        self.made()
        self.end()
        self.made()
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)
        self.assertIsNotNone(self.namespace())


class TestUsed(Case):
    """Anything that may be somebody's keeps it."""

    def test_whatever_stands_in_it_keeps_it(self) -> None:
        for kind in (names.SECRET, names.LEASE, names.CONFIG_MAP, _PODS, _WIDGETS, _OTHER_EVENTS):
            with self.subTest(kind=kind.name):
                self.made()
                metadata = {"name": "foreign", "namespace": NAMESPACE}
                self.kube.put(kind, {"metadata": metadata})
                self.delete()
                self.status_task()
                self.capi_deletes()
                self.status_task(2)
                self.assertEqual([], objects.Cluster.list(self.context))
                self.assertIsNotNone(self.kube.get(kind, NAMESPACE, "foreign"))
                self.assertNotIn("deletionTimestamp", self.namespace()["metadata"])
                self.kube.remove(kind, NAMESPACE, "foreign")

    def test_another_role_binding_keeps_it(self) -> None:
        self.made()
        binding = {"metadata": {"name": "operators", "namespace": NAMESPACE}}
        self.kube.put(names.ROLE_BINDING, binding)
        self.end()
        self.assertIsNotNone(self.namespace())

    def test_another_cluster_keeps_it(self) -> None:
        self.made()
        self.ports.leases.open(NAMESPACE, _OTHER, cluster_uuid="u2", project_id="p1")
        self.delete()
        self.status_task()
        self.capi_deletes()
        self.status_task(2)
        self.assertEqual([], objects.Cluster.list(self.context))
        self.assertIsNotNone(self.ports.leases.read(NAMESPACE, _OTHER))

    def test_one_that_the_operator_made_stays(self) -> None:
        """With the project's label, too: only the driver's own mark counts."""
        for labels in ({}, {names.LABEL_PROJECT: "p1"}):
            with self.subTest(labels=labels):
                self.kube.put(names.NAMESPACE, {"metadata": {"name": NAMESPACE, "labels": labels}})
                self.made()
                self.end()
                self.assertIsNotNone(self.namespace())

    def test_in_one_that_the_operator_made_nothing_is_written(self) -> None:
        self.kube.put(names.NAMESPACE, {"metadata": {"name": NAMESPACE}})
        self.create()
        self.assertNotIn("annotations", self.namespace()["metadata"])

    def test_one_that_was_labelled_otherwise_stays(self) -> None:
        """With another label, or for another project."""
        for labels in ({"team": "blue"}, {names.LABEL_PROJECT: "p2"}):
            with self.subTest(labels=labels):
                self.made()
                merge = {"metadata": {"labels": labels}}
                self.kube.patch(names.NAMESPACE, None, NAMESPACE, merge)
                self.end()
                self.assertIsNotNone(self.namespace())
                self.kube.remove(names.NAMESPACE, None, NAMESPACE)

    def test_what_is_not_known_keeps_it(self) -> None:
        """Each question of the deletion of a namespace, and each way of not knowing."""
        failures = (
            errors.ManagementUnreachable("It does not answer."),
            errors.ManagementRefused("It does not accept the credentials."),
            errors.NotAllowed("It does not allow it."),
            errors.Conflict("It was changed."),
        )
        self.made()
        self.end()
        project_namespace.create_namespace(self.ports, NAMESPACE, "p1", _LEVEL)
        project_namespace.bind_role(self.ports, NAMESPACE)
        before = len(self.kube.calls)
        self.kube.namespaces_linger = True
        project_namespace.delete_unused(self.ports, NAMESPACE, "p1")
        questions = self.kube.calls[before:]
        self.assertGreater(len(questions), 4)
        self.assertEqual("delete", questions[-1][0])
        self.kube.remove(names.NAMESPACE, None, NAMESPACE)
        for number, question in enumerate(questions):
            for failure in failures:
                with self.subTest(question=question, failure=type(failure).__name__):
                    project_namespace.create_namespace(self.ports, NAMESPACE, "p1", _LEVEL)
                    project_namespace.bind_role(self.ports, NAMESPACE)
                    self.kube.before = _failing(number, failure)
                    project_namespace.delete_unused(self.ports, NAMESPACE, "p1")
                    self.kube.before = None
                    self.assertNotIn("deletionTimestamp", self.namespace()["metadata"])


class TestWithoutTheRight(Case):
    """The operator has not given the optional rules of the role."""

    def refuse(self, verb: str, kind: names.Kind, name: str) -> None:
        if (verb, kind) == ("delete", names.NAMESPACE) or (
            verb == "list metadata" and kind.name not in ("Secret", "Lease", "ConfigMap")
        ):
            raise errors.NotAllowed("No.", "HTTP 403: forbidden")

    def test_clusters_are_deleted_and_it_is_said_once(self) -> None:
        log = self.useFixture(fixtures.FakeLogger(level=20))
        self.kube.before = self.refuse
        for _ in range(2):
            self.made()
            self.end()
        self.assertIsNotNone(self.namespace())
        self.assertEqual(1, log.output.count("the optional rules of the role"), log.output)

    def test_a_cluster_is_created_with_an_older_role(self) -> None:
        """One that may not change the namespace in which it is bound."""

        def refuse(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("patch", names.NAMESPACE):
                raise errors.NotAllowed("No.", "HTTP 403: forbidden")

        self.kube.before = refuse
        self.made()
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)


class TestDuringACreate(Case):
    """A cluster is created while the last one of its project goes."""

    def test_in_every_order_the_new_cluster_keeps_its_namespace(self) -> None:
        outcomes = set()
        for seed in range(300):
            with self.subTest(seed=seed):
                outcomes.add(self.meet(seed))
        # Both happen: the namespace stays, and the new release gets another one.
        self.assertEqual({True, False}, outcomes)

    def meet(self, seed: int) -> bool:
        """Two creates and one deletion; whether the namespace has stayed."""
        kube, order = fakes.FakeKube(), turns.Turns(seed)
        kube.namespaces_linger = True
        ports = dataclasses.replace(
            self.ports,
            kube=kube,
            leases=lease.ReleaseLeases(
                kube, holder="test", lease_duration=60, clock=order.clock, pause=order.pause
            ),
            pause=order.pause,
        )
        project_namespace.create_namespace(ports, NAMESPACE, "p1", _LEVEL)
        project_namespace.bind_role(ports, NAMESPACE)
        uid = kube.get(names.NAMESPACE, None, NAMESPACE)["metadata"]["uid"]
        kube.before = lambda verb, kind, name: order.pause(order.lot.random())

        def create(release: str) -> None:
            project_namespace.create_in_namespace(
                ports,
                _Request(NAMESPACE, release, "p1"),  # type: ignore[arg-type]
                _LEVEL,
                lambda: _open(ports, release),
            )

        def finish() -> None:
            """What the controller of namespaces does, over and over."""
            for _ in range(10):
                order.pause(3.0)
                obj = kube.get(names.NAMESPACE, None, NAMESPACE)
                if obj and obj["metadata"].get("deletionTimestamp"):
                    kube.remove(names.NAMESPACE, None, NAMESPACE)

        def delete() -> None:
            project_namespace.delete_unused(ports, NAMESPACE, "p1")

        creates = [
            (order.lot.random() * 6, functools.partial(create, release))
            for release in (RELEASE, _OTHER)
        ]
        raised = order.run([*creates, (1.0, delete), (0.0, finish)])
        self.assertEqual([], raised)
        kube.before = None
        found = kube.get(names.NAMESPACE, None, NAMESPACE)
        self.assertNotIn("deletionTimestamp", found["metadata"])
        for release in (RELEASE, _OTHER):
            self.assertIsNotNone(ports.leases.read(NAMESPACE, release))
        return bool(found["metadata"]["uid"] == uid)

    def refused(self, kind: names.Kind) -> None:
        """A create without the right to create objects of a kind is refused at once."""

        def refuse(verb: str, of_kind: names.Kind, name: str) -> None:
            if (verb, of_kind) == ("create", kind):
                raise errors.NotAllowed("It is not allowed.", "HTTP 403: forbidden")

        waited: list[float] = []
        self.ports = dataclasses.replace(self.ports, pause=waited.append)
        self.kube.before = refuse
        self.create()
        self.assertEqual("It is not allowed.", self.cluster().status_reason)
        self.assertEqual([], waited)

    def test_without_the_right_to_create_one_nothing_is_waited_for(self) -> None:
        self.refused(names.NAMESPACE)

    def test_without_the_right_to_bind_the_role_nothing_is_waited_for(self) -> None:
        self.refused(names.ROLE_BINDING)

    def right_is_late(self, refusals: int) -> list[float]:
        """The right that the driver gives itself is refused so often; how long it has waited."""
        left: list[int] = []

        def refuse(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("create", names.ROLE_BINDING):
                left.append(refusals)
            elif kind == names.LEASE and left and left[0]:
                left[0] -= 1
                raise errors.NotAllowed("It is not allowed.", "HTTP 403: forbidden")

        waited: list[float] = []
        self.ports = dataclasses.replace(self.ports, pause=waited.append)
        self.kube.before = refuse
        self.create()
        return waited

    def test_a_right_that_was_just_given_is_waited_for(self) -> None:
        waited = self.right_is_late(3)
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)
        self.assertEqual(3, len(waited))

    def test_a_right_that_never_comes_is_said(self) -> None:
        waited = self.right_is_late(1000)
        self.assertEqual("It is not allowed.", self.cluster().status_reason)
        self.assertLess(sum(waited), 20)

    def test_one_that_never_ends_is_said(self) -> None:
        self.kube.namespaces_linger = True
        self.kube.put(
            names.NAMESPACE,
            {"metadata": {"name": NAMESPACE, "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        )
        waited: list[float] = []
        self.ports = dataclasses.replace(self.ports, pause=waited.append)
        self.create()
        cluster = self.cluster()
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn(f"Namespace '{NAMESPACE}'", cluster.status_reason)
        self.assertIn("is being deleted", cluster.status_reason)
        self.assertLessEqual(sum(waited), 60)


@dataclasses.dataclass(frozen=True)
class _Request:
    """What is asked of a request."""

    namespace: str
    release: str
    project_id: str


def _open(ports: Any, release: str) -> None:
    ports.leases.open(NAMESPACE, release, cluster_uuid=release, project_id="p1")


def _failing(number: int, failure: Exception) -> Callable[[str, names.Kind, str], None]:
    """A failure of the call of that number."""
    calls = iter(range(1000))

    def before(verb: str, kind: names.Kind, name: str) -> None:
        if next(calls) == number:
            raise failure

    return before
