# SPDX-License-Identifier: Apache-2.0
"""A conductor that starts beside many clusters at rest: one list for all, and nothing each."""

from __future__ import annotations

from collections import Counter
import dataclasses
import json
from typing import Any

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.watch import informers
from magnum.drivers.k8s_capi_helm.lease import codec
from magnum.drivers.k8s_capi_helm.model import names, Revisions
from magnum.drivers.k8s_capi_helm.reconcile.process.credential_check import CredentialCheck
from magnum.drivers.k8s_capi_helm.reconcile.process.evaluation_cache import EvaluationCache
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.test_status_task_with_watches import WatchingWorld
from tools.bench import pass_conductor

_KINDS = {kind.name: kind for kind in (*informers.WATCHED, names.SECRET)}
_UUID = "99999999-8888-4777-8666-555555555555"
#: Clusters of the project besides the first one.
OTHERS = 4


def copy_of(number: int, found: Any) -> Any:
    """The same of another cluster of the project."""
    text = json.dumps(found, default=str).replace(RELEASE, f"demo-{number:012d}")
    return json.loads(text.replace(_UUID, f"99999999-8888-4777-8666-{number:012d}"))


class ListsWhileWaiting(informers.Informers):
    """Watches whose first lists come while the first pass waits for them."""

    is_listed = False

    def wait_for_lists(self) -> None:
        for watch in () if self.is_listed else self.watches:
            watch.list_and_watch()
        self.is_listed = True


class StartCase(WatchingWorld):
    def setUp(self) -> None:
        super().setUp()
        self.settled()
        self.health_task()
        cluster = self.cluster()
        rows = {
            "cluster": cluster.as_dict(),
            "groups": [group.as_dict() for group in cluster.nodegroups],
        }
        things = [one for one in self.kube.everything() if one["kind"] in _KINDS]
        live = self.helm.live(NAMESPACE, RELEASE)
        for number in range(OTHERS):
            for thing in things:
                copied = copy_of(number, thing)
                if copied != thing:
                    copied["metadata"]["uid"] = f"{copied['metadata']['uid']}-{number}"
                    self.kube.put(_KINDS[thing["kind"]], copied)
            release = copy_of(number, {"name": RELEASE})["name"]
            self.helm.releases[NAMESPACE, release] = dataclasses.replace(live, name=release)
            pass_conductor.insert(self.context, copy_of(number, rows), first=False)
        self.restart()

    def restart(self, kind: type[informers.Informers] = informers.Informers) -> None:
        """A new process, whose watches have listed everything; all clusters are at rest."""
        self.watching = kind(
            self.kube,
            staleness=45,
            covers=lambda namespace: namespace.startswith("magnum-"),
            clock=lambda: self.now,
            spawn=lambda name, run: None,
        )
        self.ports = dataclasses.replace(
            self.ports,
            informers=self.watching,
            evaluations=EvaluationCache(clock=lambda: self.now, jitter=lambda least, most: most),
            credential_check=CredentialCheck(jitter=lambda: 0.0, clock=lambda: self.now),
        )
        if kind is informers.Informers:
            self.catch_up()

    def asked(self) -> Counter[str]:
        """Requests of one health task, by verb and kind; Helm's reads and lists of Secrets."""
        self.kube.calls.clear()
        self.helm.reads = self.helm.lists = 0
        self.health_task()
        counts = Counter(f"{verb} {kind}" for verb, kind, _, _ in self.kube.calls)
        counts.update(release=self.helm.reads, releases=self.helm.lists)
        self.assertEqual({"HEALTHY"}, {row.health_status for row in self.rows()})
        return +counts

    def rows(self) -> list[Any]:
        return list(objects.Cluster.list(self.context))

    def kept(self) -> set[str]:
        """Releases that are cached for the Lease that is watched."""
        view, cache = self.watching.view(), self.ports.evaluations
        releases = [row.stack_id for row in self.rows()]
        versions = {one: view.version(names.LEASE, NAMESPACE, names.lease(one)) for one in releases}
        return {one for one in releases if cache.has_release(one, view.place, versions[one])}

    def other(self, number: int = 0) -> str:
        return str(copy_of(number, {"name": RELEASE})["name"])


class TestStart(StartCase):
    def test_clusters_at_rest_are_lists_of_their_namespace(self) -> None:
        self.assertEqual(1 + OTHERS, len(self.rows()))
        self.assertEqual(Counter({"list Lease": 1, "releases": 1}), self.asked())
        self.assertEqual(Counter(), self.asked())

    def test_they_are_kept_as_if_each_had_been_read(self) -> None:
        self.asked()
        self.assertEqual(Counter(), self.asked())
        lease = self.kube.get(names.LEASE, NAMESPACE, names.lease(self.other()))
        self.kube.put(names.LEASE, lease)
        self.catch_up()
        self.assertEqual(Counter({"get Lease": 1, "release": 1}), self.asked())

    def test_the_first_pass_waits_for_the_lists(self) -> None:
        """Else it would read its objects itself, and so would those of all other clusters."""
        self.restart(ListsWhileWaiting)
        lists = Counter(f"list {kind.name}" for kind in informers.WATCHED)
        self.assertEqual(lists + Counter({"list Lease": 1, "releases": 1}), self.asked())

    def test_a_lease_that_has_changed_since_the_watch_is_read(self) -> None:
        lease = self.kube.get(names.LEASE, NAMESPACE, names.lease(self.other()))
        self.kube.put(names.LEASE, lease)
        expected = {"list Lease": 1, "releases": 1, "get Lease": 1, "release": 1}
        self.assertEqual(Counter(expected), self.asked())

    def test_what_is_not_deployed_is_read_by_its_own_pass(self) -> None:
        live = self.helm.releases[NAMESPACE, self.other()]
        self.helm.releases[NAMESPACE, self.other()] = dataclasses.replace(
            live, status="pending-upgrade", revision=live.revision + 1
        )
        self.health_task()
        self.assertEqual(1, self.helm.lists)
        self.assertEqual(OTHERS, len(self.kept()))
        self.assertNotIn(self.other(), self.kept())

    def test_a_record_that_cannot_be_read_is_one_clusters_matter(self) -> None:
        lease = self.kube.get(names.LEASE, NAMESPACE, names.lease(self.other()))
        lease["metadata"]["annotations"][codec.OPERATIONS] = "{"
        self.kube.put(names.LEASE, lease)
        self.catch_up()
        self.health_task()
        self.assertEqual(1, self.helm.lists)
        self.assertEqual(OTHERS, len(self.kept()))
        self.assertNotIn(self.other(), self.kept())

    def test_where_most_are_kept_the_others_are_read_by_themselves(self) -> None:
        self.asked()
        for number in range(OTHERS // 2):
            self.ports.evaluations.forget(self.other(number))
        expected = {"get Lease": OTHERS // 2, "release": OTHERS // 2}
        self.assertEqual(Counter(expected), self.asked())

    def test_a_list_that_fails_is_repeated_by_the_next_task(self) -> None:
        def refuse(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("list", names.LEASE):
                raise errors.ManagementUnreachable("It does not answer.", "connection refused")

        self.kube.before = refuse
        self.health_task()
        self.assertEqual((0, set()), (self.helm.lists, self.kept()))
        self.kube.before = None
        self.assertEqual(Counter({"list Lease": 1, "releases": 1}), self.asked())

    def test_an_older_release_is_refused_all_the_same(self) -> None:
        known, newer = Revisions(1, 1), Revisions(5, 5)
        self.ports.leases.record_revisions(NAMESPACE, self.other(), known, newer)
        self.catch_up()
        self.health_task()
        self.assertEqual(1, self.helm.lists)
        [row] = [row for row in self.rows() if row.stack_id == self.other()]
        self.assertIn("older than the cluster", row.health_status_reason["notice"])
