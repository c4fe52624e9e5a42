# SPDX-License-Identifier: Apache-2.0
"""A conductor whose watch of Leases is behind: another one has written them meanwhile.

Its kept records judge, and nothing is written by them alone.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import dataclasses

from magnum.conductor.handlers import cluster_conductor
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.process.evaluation_cache import EvaluationCache
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.test_status_task_with_watches import WatchingWorld


class TestLateLeases(WatchingWorld):
    def setUp(self) -> None:
        super().setUp()
        self.settled()

    @contextlib.contextmanager
    def another_conductor(self) -> Iterator[None]:
        """Let another one act, which reads everything; of Leases this one hears nothing."""
        ours = self.ports
        self.ports = dataclasses.replace(ours, informers=None, evaluations=EvaluationCache())
        self.now += 5
        yield
        self.ports = ours
        for watch in self.watching.watches:
            if watch._store.kind != names.LEASE:
                watch.list_and_watch()

    def rendered(self) -> list[str]:
        """Nodegroups of the release."""
        live = self.helm.live(NAMESPACE, RELEASE)
        return [str(entry["name"]) for entry in live.values["nodeGroups"]]

    def pending(self) -> list[str]:
        """Ids of the recorded operations."""
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        return [operation.id for operation in record.operations]

    def test_a_nodegroup_whose_deletion_was_refused_stays(self) -> None:
        self.add_group("more")
        self.capi_converges()
        self.catch_up()
        self.status_task(3)
        self.catch_up()
        self.helm.refusal = errors.HelmInterrupted("Helm ran out of time.")
        self.drop_group("more")
        for _ in range(3):
            self.catch_up()
            self.status_task()
        self.catch_up()
        self.health_task()
        with self.another_conductor():
            self.helm.refusal = errors.HelmRefused("The management cluster refused it.")
            self.status_task(2)
            self.assertEqual("DELETE_FAILED", self.group("more").status)
            self.helm.refusal = None
            resize = cluster_conductor.Handler().cluster_resize
            self.quietly(resize, self.context, self.cluster(), 2, None, self.group("more"))
        self.status_task()
        self.health_task()
        self.assertEqual(["default-worker", "more"], sorted(self.rendered()))
        self.assertNotEqual("DELETE_IN_PROGRESS", self.group("more").status)

    def test_an_upgrade_that_has_ended_is_not_shown_once_more(self) -> None:
        self.cloud.images["newer"] = ("image-2", "1.35.0")
        uuid = "22222222-2222-4333-8444-555555555555"
        self.upgrade(self._template(uuid=uuid, name="newer", image_id="newer"))
        self.catch_up()
        while not self.ports.leases.read(NAMESPACE, RELEASE).ready_fingerprint:
            self.capi_converges()
            self.catch_up()
            self.status_task()
        self.catch_up()
        self.health_task()
        self.health_task()
        self.catch_up()
        self.health_task()
        with self.another_conductor():
            self.status_task(3)
            self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.health_task()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_a_request_gets_no_second_operation(self) -> None:
        self.health_task()
        self.catch_up()
        self.health_task()
        with self.another_conductor():
            self.resize(3)
            recorded = self.pending()
        self.status_task()
        self.assertEqual(recorded, self.pending())
