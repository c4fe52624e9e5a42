# SPDX-License-Identifier: Apache-2.0
"""What watches promise: they know what a direct reader finds, and begin anew when they have to."""

from __future__ import annotations

from typing import Any

from magnum.drivers.k8s_capi_helm.kube.watch import informers
from magnum.drivers.k8s_capi_helm.kube.watch.transform import transform
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.tests.unit.drivers.k8s_capi_helm.suites.kube_client import KubeClientSuite

#: Long enough for a slow machine; a watch lasts a third of it at most.
STALENESS = 30.0
OURS = {names.LABEL_CLUSTER_NAME: "ours"}


class WithLeases(KubeClientSuite):
    """Leases that are watched, among many that are not."""

    def make_lease(self, namespace: str, name: str = "one", **metadata: Any) -> Json:
        """A Lease of the driver's."""
        labels = {names.LABEL_UUID: "suite", **metadata.pop("labels", {})}
        return super().make_lease(namespace, name, labels=labels, **metadata)


class WatchingTests(WithLeases):
    """Mixed into a TestCase whose ``setUp`` sets ``kube``; Leases stand for every kind."""

    assertEqual: Any
    assertTrue: Any
    assertIsNone: Any
    kinds = (names.LEASE,)

    def watching(self, kube: Any = None, told: Any = None, **more: Any) -> informers.Informers:
        """Watches whose rounds a test makes, instead of threads."""
        found = informers.Informers(
            kube or self.kube,
            staleness=STALENESS,
            covers=lambda namespace: namespace.startswith("suite-"),
            kinds=self.kinds,
            seconds=1,
            spawn=lambda name, run: None,
            **more,
        )
        found.start(told)
        return found

    def rounds(self, watching: informers.Informers, times: int = 1) -> None:
        for _ in range(times):
            for watch in watching.watches:
                self.assertEqual(0.0, watch.list_and_watch())

    def same(
        self, watching: informers.Informers, namespace: str, selector: dict[str, str] | None = None
    ) -> list[Json]:
        """What both readers list, if it is the same."""
        view = watching.view()
        self.assertTrue(view.watched)
        found = view.list(names.LEASE, namespace, selector)
        directly = self.kube.list(names.LEASE, namespace, selector)
        self.assertEqual([transform(names.LEASE, one) for one in directly], found)
        for one in directly:
            name = one["metadata"]["name"]
            self.assertEqual(
                transform(names.LEASE, one), view.get(names.LEASE, namespace, name), name
            )
        return found

    def test_the_first_round_lists(self) -> None:
        namespace, other = self.make_namespace(), self.make_namespace()
        for name in ("a", "b", "c"):
            self.make_lease(namespace, name, labels=OURS if name != "b" else {"x": "1"})
        self.make_lease(other, "a", labels=OURS)
        watching = self.watching()
        self.rounds(watching)
        self.assertEqual(3, len(self.same(watching, namespace)))
        self.assertEqual(2, len(self.same(watching, namespace, OURS)))
        self.assertEqual(1, len(self.same(watching, namespace, {"x": "1"})))
        self.assertEqual([], self.same(watching, namespace, {**OURS, "x": "1"}))
        self.assertEqual([], self.same(watching, "suite-not-there"))
        self.assertIsNone(watching.view().get(names.LEASE, namespace, "d"))

    def test_the_next_rounds_follow(self) -> None:
        namespace, told = self.make_namespace(), list[str]()
        self.make_lease(namespace, "a", labels=OURS)
        self.make_lease(namespace, "b", labels=OURS)
        watching = self.watching(told=lambda thing: told.append(thing["metadata"]["name"]))
        self.rounds(watching)
        self.make_lease(namespace, "c", labels=OURS)
        self.kube.patch(
            kind=names.LEASE,
            namespace=namespace,
            name="a",
            merge={"metadata": {"labels": {names.LABEL_CLUSTER_NAME: "another"}}},
        )
        self.kube.delete(names.LEASE, namespace, "b")
        self.rounds(watching)
        self.assertEqual(
            ["c"], [one["metadata"]["name"] for one in self.same(watching, namespace, OURS)]
        )
        self.assertEqual(2, len(self.same(watching, namespace)))
        self.assertEqual({"a", "b", "c"}, set(told))
        told.clear()
        self.make_lease(namespace, "b", labels=OURS)
        self.rounds(watching)
        self.assertEqual(2, len(self.same(watching, namespace, OURS)))
        self.assertEqual(["b"], told)

    def test_what_has_changed_while_nobody_watched_is_told_by_the_next_list(self) -> None:
        namespace, told = self.make_namespace(), list[str]()
        for name in ("same", "other", "gone"):
            self.make_lease(namespace, name)
        source = self.forgetful()
        watching = self.watching(source, told=lambda thing: told.append(thing["metadata"]["name"]))
        self.rounds(watching)
        self.assertEqual([], told)
        self.kube.patch(names.LEASE, namespace, "other", {"metadata": {"labels": {"x": "1"}}})
        self.kube.delete(names.LEASE, namespace, "gone")
        self.make_lease(namespace, "new")
        self.rounds(watching, 2)
        self.assertEqual(2, source.snapshots)
        self.assertEqual(["gone", "new", "other"], sorted(told))

    def test_namespaces_of_others_are_not_kept(self) -> None:
        self.kube.apply(names.LEASE, {"metadata": {"name": "suite-x", "namespace": "default"}})
        self.addCleanup(self.kube.delete, names.LEASE, "default", "suite-x")  # type: ignore[attr-defined]
        told: list[Json] = []
        watching = self.watching(told=told.append)
        self.rounds(watching)
        self.kube.delete(names.LEASE, "default", "suite-x")
        self.rounds(watching)
        self.assertEqual([], watching.view().list(names.LEASE, "default", None))
        self.assertEqual([], [one for one in told if one["metadata"]["name"] == "suite-x"])

    def test_leases_without_the_drivers_label_are_not_kept(self) -> None:
        """As those that each kubelet and each controller renews every few seconds."""
        namespace, told = self.make_namespace(), list[str]()
        other = {"metadata": {"name": "kubelet", "namespace": namespace}}
        self.kube.apply(names.LEASE, other)
        watching = self.watching(told=lambda thing: told.append(thing["metadata"]["name"]))
        self.rounds(watching)
        self.kube.apply(names.LEASE, {**other, "spec": {"holderIdentity": "kubelet"}})
        self.make_lease(namespace, "ours")
        self.rounds(watching)
        self.assertEqual(["ours"], told)
        found = watching.view().list(names.LEASE, namespace, None)
        self.assertEqual(["ours"], [one["metadata"]["name"] for one in found])

    def test_the_revision_goes_up_with_each_change(self) -> None:
        namespace = self.make_namespace()
        _, before = self.kube.snapshot(names.LEASE, lambda thing: thing)
        self.make_lease(namespace)
        after = self.kube.revision(names.LEASE)
        self.assertTrue(int(before) < int(after), (before, after))

    def test_what_is_too_long_ago_is_listed_again(self) -> None:
        namespace = self.make_namespace()
        self.make_lease(namespace, "a")
        source = self.forgetful()
        watching = self.watching(source)
        self.rounds(watching)
        self.kube.delete(names.LEASE, namespace, "a")
        self.make_lease(namespace, "b")
        before = source.snapshots
        self.rounds(watching, 2)
        self.assertEqual(before + 1, source.snapshots)
        self.assertEqual(1, len(self.same(watching, namespace)))
        self.make_lease(namespace, "c")
        self.rounds(watching)
        self.assertEqual(2, len(self.same(watching, namespace)))
        self.assertEqual(before + 1, source.snapshots)

    def forgetful(self) -> Forgetful:
        """The management cluster, whose first list says a resourceVersion of long ago."""
        return Forgetful(self.kube, self.long_ago())

    def long_ago(self) -> str:
        """A resourceVersion from which nothing can be watched."""
        return "1"


class Forgetful:
    """A source whose first list says another resourceVersion."""

    def __init__(self, kube: Any, since: str) -> None:
        self._kube, self._since = kube, since
        self.snapshots = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kube, name)

    def snapshot(self, kind: names.Kind, keep: Any, label: str) -> Any:
        things, since = self._kube.snapshot(kind, keep, label)
        self.snapshots += 1
        return things, self._since if self.snapshots == 1 else since
