# SPDX-License-Identifier: Apache-2.0
"""A tenant who asks and asks neither fills the record of a cluster nor keeps it from its end."""

from __future__ import annotations

import datetime
import json

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.lease import capacity, codec
from magnum.drivers.k8s_capi_helm.model import names, Operation, Verb
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

MINUTE = datetime.timedelta(minutes=1)


class TestFull(DriverCase):
    def setUp(self) -> None:
        super().setUp()
        self.made()

    def operations(self) -> tuple[Operation, ...]:
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        assert record is not None
        return record.operations

    def fill(self) -> None:
        """The Lease is as full as an older version of the driver left it."""
        now = datetime.datetime.now(datetime.timezone.utc)
        found = self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
        one = Operation("resize-00001000", Verb.RESIZE, now, ("w-1000",), now + 60 * MINUTE)
        size = len(json.dumps(codec.entry(one))) + 2
        numbers = range(1000, 1000 + (capacity.LIMIT - 2 * 1024) // size)
        listed = [
            codec.entry(Operation(f"resize-0000{n}", Verb.RESIZE, now, (f"w-{n}",), one.deadline))
            for n in numbers
        ]
        codec.annotate(found, codec.OPERATIONS, json.dumps(listed))
        self.kube.put(names.LEASE, found)

    def test_a_tenant_who_resizes_all_the_time_has_one_entry_and_one_beginning(self) -> None:
        self.helm.refusal = errors.HelmInterrupted("It was killed.")
        for count in range(2, 22):
            self.resize(count)
        [found] = self.operations()
        self.assertEqual(Verb.RESIZE, found.verb)
        self.helm.refusal = None
        self.status_task()
        values = self.helm.live(NAMESPACE, RELEASE).values
        self.assertEqual(21, values["nodeGroups"][0]["machineCount"])
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual((), self.operations())

    def test_a_request_for_which_there_is_no_room_changes_nothing(self) -> None:
        self.fill()
        runs = len(self.helm.runs)
        self.resize(3)
        cluster = self.cluster()
        self.assertEqual("UPDATE_FAILED", cluster.status)
        self.assertIn("Too many requests for this cluster are in progress", cluster.status_reason)
        self.assertEqual((1, runs), (self.group().node_count, len(self.helm.runs)))
        self.add_group("more")
        self.assertEqual("CREATE_FAILED", self.group("more").status)
        self.assertIn("Too many requests", self.group("more").status_reason)

    def test_the_cluster_can_be_deleted(self) -> None:
        self.fill()
        self.delete()
        self.assertEqual([Verb.DELETE], [one.verb for one in self.operations()])
        for _ in range(5):
            self.status_task()
            self.capi_deletes()
        self.assertEqual([], objects.Cluster.list(self.context))
        self.assertEqual([], self.left())
