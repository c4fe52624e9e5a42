# SPDX-License-Identifier: Apache-2.0
"""Magnum's database was restored from a backup that is older than the clusters."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from magnum import objects
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.reconcile.observe import newer_release
from magnum.tests.unit.drivers.k8s_capi_helm import driver_case
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE

_FIELDS = ("node_count", "status", "status_reason", "updated_at")


class TestRestored(driver_case.DriverCase):
    """A backup two hours before the changes, unless a test says otherwise."""

    def setUp(self) -> None:
        super().setUp()
        self.made()
        self.rows: dict[str, dict[str, Any]] = {}

    def back_up(self, age: datetime.timedelta = datetime.timedelta(hours=2)) -> None:
        """What the nodegroups are now is saved, as if it had been written that long ago."""
        then = self.wall_clock() - age
        for row in self.cluster().nodegroups:
            self.rows[row.name] = {**row.as_dict(), "updated_at": then, "created_at": then}

    def restore(self) -> None:
        found = {row.name: row for row in self.cluster().nodegroups}
        for name, fields in self.rows.items():
            if name in found:
                for field in _FIELDS:
                    setattr(found[name], field, fields[field])
                found[name].save()
            else:
                row = objects.NodeGroup(self.context, **fields)
                row.create()
        for name in found.keys() - self.rows.keys():
            found[name].destroy()

    def settle(self) -> None:
        """The conductor's tasks find what there is to find."""
        for minutes in (1, 10, 20):
            self.after(minutes)
            self.health_task()
            self.status_task(2)

    def count(self, name: str = "default-worker") -> int:
        """Machines that the release has of a nodegroup."""
        live = self.helm.live(NAMESPACE, RELEASE)
        (entry,) = (one for one in live.values["nodeGroups"] if one["name"] == name)
        return int(entry["machineCount"])

    def grow(self, count: int = 3) -> None:
        self.resize(count)
        self.capi_converges()
        self.status_task(2)

    def test_a_cluster_that_has_grown_stays_as_it_is(self) -> None:
        self.back_up()
        self.grow()
        self.restore()
        runs = len(self.helm.runs)
        self.settle()
        self.assertEqual((3, 3), (self.count(), self.group().node_count))
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual(runs, len(self.helm.runs))

    def test_a_nodegroup_without_machines_stays_without(self) -> None:
        self.back_up()
        self.grow(0)
        self.restore()
        self.settle()
        self.assertEqual((0, 0), (self.count(), self.group().node_count))

    def test_a_control_plane_that_has_grown_stays_as_it_is(self) -> None:
        self.back_up()
        self.resize(3, "default-master")
        self.capi_converges()
        self.status_task(2)
        self.restore()
        self.settle()
        live = self.helm.live(NAMESPACE, RELEASE)
        self.assertEqual(3, live.values["controlPlane"]["machineCount"])
        self.assertEqual(3, self.group("default-master").node_count)

    def test_a_resize_of_another_nodegroup_takes_no_machine_away(self) -> None:
        self.add_group("extra")
        self.capi_converges()
        self.status_task(2)
        self.back_up()
        self.grow()
        self.restore()
        self.resize(2, "extra")
        self.assertEqual((3, 2), (self.count(), self.count("extra")))
        self.assertEqual(3, self.group().node_count)

    def test_a_resize_of_the_nodegroup_itself_holds(self) -> None:
        self.back_up()
        self.grow()
        self.restore()
        self.resize(2)
        self.assertEqual((2, 2), (self.count(), self.group().node_count))

    def test_a_nodegroup_that_was_deleted_is_not_created_again(self) -> None:
        self.add_group("extra")
        self.capi_converges()
        self.status_task(2)
        self.back_up()
        self.drop_group("extra")
        self.capi_converges()
        self.status_task(2)
        self.assertEqual(["default-master", "default-worker"], self.names())
        self.restore()
        self.settle()
        row = self.group("extra")
        self.assertEqual("CREATE_FAILED", row.status)
        self.assertIn("it was deleted after the backup", row.status_reason)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.drop_group("extra")
        self.status_task(2)
        self.assertEqual(["default-master", "default-worker"], self.names())

    def test_a_nodegroup_that_was_created_since_keeps_its_machines(self) -> None:
        self.back_up()
        self.add_group("extra")
        self.capi_converges()
        self.status_task(2)
        self.restore()
        self.settle()
        self.grow()
        self.assertEqual(1, self.count("extra"))

    def test_a_count_that_was_saved_after_the_release_is_a_request(self) -> None:
        self.grow()
        row = self.group()
        row.node_count = 2
        row.save()
        self.settle()
        self.assertEqual(2, self.count())

    def test_a_release_that_is_a_little_newer_had_not_read_the_request_yet(self) -> None:
        self.back_up(datetime.timedelta(minutes=4))
        self.grow()
        self.restore()
        self.settle()
        self.assertEqual(1, self.count())

    def test_a_release_of_another_driver_is_not_followed(self) -> None:
        """Until Helm has run for this driver, nothing is known of an adopted cluster's rows."""
        self.back_up()
        self.grow()
        self.restore()
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        request = reader.cluster_request(
            self.cluster(), list(self.cluster().nodegroups), self.periodic().settings
        )
        live = self.helm.live(NAMESPACE, RELEASE)
        adopted = dataclasses.replace(record, chart_digest="")
        self.assertTrue(newer_release.is_newer(request, record, live))
        self.assertFalse(newer_release.is_newer(request, adopted, live))

    def names(self) -> list[str]:
        return sorted(row.name for row in self.cluster().nodegroups)
