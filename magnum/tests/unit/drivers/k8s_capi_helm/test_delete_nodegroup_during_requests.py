# SPDX-License-Identifier: Apache-2.0
"""Nodegroups that are asked to go while other requests about them are carried out.

``test_delete_nodegroup_meanwhile.py`` plays the orders in which that can come about; here stand
those that were wrong once.
"""

from __future__ import annotations

from collections.abc import Callable
import datetime
from typing import Any
from unittest import mock

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import names, Operation, operation, ReleaseRecord, Verb
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

GROUP = f"{RELEASE}.extra"


class Grown(DriverCase):
    """A cluster with a nodegroup that was added later, and is there."""

    def setUp(self) -> None:
        super().setUp()
        self.made()
        self.add_group("extra")
        self.capi_converges()
        self.status_task(2)


class TestLeaving(Grown):
    """A deletion and another request of a nodegroup, at two workers at once."""

    def overtake(self, call: Callable[[], None]) -> None:
        """Have another worker carry a request out just before the next one is written down."""

        def before(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("replace", names.LEASE):
                self.kube.before = None
                call()

        self.kube.before = before

    def check_gone(self) -> None:
        self.assertEqual("DELETE_IN_PROGRESS", self.group("extra").status)
        self.capi_converges()
        self.status_task(3)
        self.assertNotIn("extra", [one.name for one in self.cluster().nodegroups])
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_it_goes_although_it_is_updated(self) -> None:
        self.overtake(lambda: self.drop_group("extra"))
        self.change_group("extra", max_node_count=9)
        self.check_gone()

    def test_it_goes_although_it_is_resized(self) -> None:
        self.overtake(lambda: self.drop_group("extra"))
        self.resize(2, "extra")
        self.check_gone()

    def test_it_goes_although_a_resize_is_faster(self) -> None:
        self.overtake(lambda: self.resize(2, "extra"))
        self.drop_group("extra")
        self.check_gone()


class TestBeingMade(DriverCase):
    """It is deleted while the request to create it is carried out, at another worker."""

    def setUp(self) -> None:
        super().setUp()
        self.openstack = self.cloud.openstack
        self.made()

    def others(self, call: Callable[[], None], *, asked: str = f"create server group {GROUP}"):
        """Have another worker do that just before that is asked of OpenStack."""

        def before(what: str) -> None:
            if what == asked:
                self.openstack.before = None
                call()

        self.openstack.before = before

    def rendered(self) -> list[str]:
        return [one["name"] for one in self.helm.live(NAMESPACE, RELEASE).values["nodeGroups"]]

    def groups(self) -> list[str]:
        return [one.name for one in self.cluster().nodegroups]

    def check_gone(self) -> None:
        runs = len(self.helm.runs)
        self.capi_converges()
        self.status_task(4)
        self.assertNotIn("extra", self.groups())
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertNotIn(GROUP, self.openstack.ids())
        self.assertEqual((), self.ports.leases.read(NAMESPACE, RELEASE).operations)
        later = [[one["name"] for one in values["nodeGroups"]] for *_, values in self.helm.runs]
        self.assertNotIn("extra", [name for names in later[runs:] for name in names])

    def test_it_goes(self) -> None:
        self.others(lambda: self.drop_group("extra"))
        self.add_group("extra")
        self.check_gone()

    def test_it_goes_although_its_creation_comes_on_record_later_and_it_is_resized(self) -> None:
        late: list[Any] = []

        def before(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("replace", names.LEASE) and GROUP in self.openstack.ids():
                self.kube.before = None
                self.drop_group("extra")
                late.append(True)

        self.kube.before = before
        self.add_group("extra")
        self.assertEqual([True], late)
        self.resize(2, "extra")
        self.check_gone()

    def test_it_goes_although_it_is_refused(self) -> None:
        self.openstack.quota = 2
        self.others(lambda: self.drop_group("extra"))
        self.add_group("extra")
        self.check_gone()

    def test_it_goes_although_it_is_refused_and_was_resized(self) -> None:
        def call() -> None:
            self.drop_group("extra")
            self.resize(2, "extra")

        self.openstack.quota = 2
        self.others(call)
        self.add_group("extra")
        self.check_gone()

    def test_a_server_group_that_comes_after_its_row_has_gone_goes_too(self) -> None:
        def call() -> None:
            self.drop_group("extra")
            self.status_task(3)
            self.assertNotIn("extra", self.groups())

        self.others(call)
        self.add_group("extra")
        self.check_gone()

    def test_that_of_a_new_one_of_its_name_stays(self) -> None:
        def call() -> None:
            self.drop_group("extra")
            self.status_task(3)
            self.add_group("extra")

        self.others(call)
        self.add_group("extra")
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("CREATE_COMPLETE", self.group("extra").status)
        self.assertIn(GROUP, self.openstack.ids())

    def test_a_pass_that_refuses_it_does_not_keep_it(self) -> None:
        def refuses(values: Any) -> errors.DriverError | None:
            if "extra" not in [one["name"] for one in values["nodeGroups"]]:
                return None
            self.helm.refuses = lambda values: (
                errors.HelmRefused("no")
                if ("extra" in [one["name"] for one in values["nodeGroups"]])
                else None
            )
            self.drop_group("extra")
            return errors.HelmRefused("no")

        self.helm.refuses = refuses
        self.add_group("extra")
        self.check_gone()

    def test_a_new_one_of_its_name_is_not_taken_for_it(self) -> None:
        self.add_group("extra")
        self.resize(3)
        self.drop_group("extra")
        self.grow_all_but("default-worker")
        self.status_task(3)
        self.assertEqual(
            (["default-worker"], "UPDATE_IN_PROGRESS"),
            (self.groups()[1:], self.cluster().status),
        )
        seen: list[list[str]] = []

        def call() -> None:
            self.status_task()
            seen.append(self.rendered())

        self.others(call)
        self.add_group("extra")
        self.assertEqual([["default-worker"]], seen)
        self.capi_converges()
        self.status_task(3)
        self.assertEqual("CREATE_COMPLETE", self.group("extra").status)

    def grow_all_but(self, name: str) -> None:
        self.capi_converges()
        self.scale(name, 1)
        found = self.kube.list(names.MACHINE_DEPLOYMENT, NAMESPACE, {names.LABEL_NODE_GROUP: name})
        self.kube.put(names.MACHINE_DEPLOYMENT, {**found[0], "status": {}})


class TestForGood(Grown):
    """What stands over a deletion in the row does not undo it."""

    def overwrite(self, status: str, cluster: str) -> None:
        """As a request does that fails, or one whose conductor dies, after the deletion."""
        for row, text in ((self.group("extra"), status), (self.cluster(), cluster)):
            row.status, row.status_reason = text, None
            row.save()

    def check_gone(self) -> None:
        runs = len(self.helm.runs)
        for _ in range(3):
            self.health_task()
            self.status_task(2)
            self.capi_converges()
        self.assertNotIn("extra", [one.name for one in self.cluster().nodegroups])
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        for *_, values in self.helm.runs[runs:]:
            self.assertNotIn("extra", [one["name"] for one in values["nodeGroups"]])

    def test_before_it_is_carried_out(self) -> None:
        for status, cluster in (
            ("UPDATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"),
            ("CREATE_FAILED", "UPDATE_IN_PROGRESS"),
            ("UPDATE_FAILED", "UPDATE_FAILED"),
        ):
            with self.subTest(status=status, cluster=cluster):
                self.helm.refusal = errors.HelmInterrupted("Helm was killed.")
                self.drop_group("extra")
                self.helm.refusal = None
                self.overwrite(status, cluster)
                self.check_gone()
                self.add_group("extra")
                self.capi_converges()
                self.status_task(2)
                self.assertEqual("CREATE_COMPLETE", self.group("extra").status)

    def test_when_it_has_left_the_release(self) -> None:
        self.drop_group("extra")
        self.overwrite("UPDATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")
        self.check_gone()

    def test_it_is_on_record_until_its_row_has_gone(self) -> None:
        seen: list[set[Verb]] = []
        destroy = objects.NodeGroup.destroy

        def look(row: Any) -> None:
            record = self.ports.leases.read(NAMESPACE, RELEASE)
            seen.append({one.verb for one in record.operations})
            destroy(row)

        self.drop_group("extra")
        self.capi_converges()
        with mock.patch.object(objects.NodeGroup, "destroy", look):
            self.status_task(3)
        self.assertEqual([{Verb.NODEGROUP_DELETE}], seen)
        self.assertEqual((), self.ports.leases.read(NAMESPACE, RELEASE).operations)


class TestRefused(Grown):
    """Helm refuses to take a nodegroup away, and does so no more after a while."""

    def setUp(self) -> None:
        super().setUp()
        self.helm.refusal = errors.HelmRefused("Helm refused it: no.", "")
        self.drop_group("extra")
        self.status_task(2)

    def told(self) -> tuple[str, str, str | None]:
        row = self.group("extra")
        return self.cluster().status, row.status, row.status_reason

    def test_it_is_said_as_long_as_it_is_so(self) -> None:
        for _ in range(3):
            self.assertEqual(
                ("UPDATE_FAILED", "DELETE_FAILED", "Helm refused it: no."), self.told()
            )
            self.health_task()
            self.after(6)

    def test_it_goes_by_itself_when_nothing_keeps_it(self) -> None:
        self.helm.refusal = None
        self.health_task()
        self.assertNotIn("extra", [one["name"] for one in self.live_groups()])
        status, row_status, reason = self.told()
        self.assertEqual(("UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS"), (status, row_status))
        self.assertEqual("waiting: the deletion is starting", reason)
        self.capi_converges()
        self.status_task(2)
        self.assertNotIn("extra", [one.name for one in self.cluster().nodegroups])
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_who_resizes_it_wants_it_to_stay(self) -> None:
        self.helm.refusal = None
        self.resize(2, "extra")
        self.health_task()
        self.capi_converges()
        self.status_task(3)
        self.assertEqual(("UPDATE_COMPLETE", "UPDATE_COMPLETE", None), self.told())
        self.assertEqual(2, self.replicas("extra"))

    def live_groups(self) -> list[dict[str, Any]]:
        release = self.helm.live(NAMESPACE, RELEASE)
        assert release is not None
        return list(release.values["nodeGroups"])


class TestLate(Grown):
    """Machines of a nodegroup that is deleted do not go in the time that they have."""

    def setUp(self) -> None:
        super().setUp()
        self.drop_group("extra")
        self.make_late()
        self.status_task(2)

    def test_whoever_resizes_it_is_told_that_it_goes(self) -> None:
        self.assertEqual("DELETE_FAILED", self.group("extra").status)
        runs = len(self.helm.runs)
        for _ in range(2):
            self.resize(3, "extra")
            self.health_task()
            row = self.group("extra")
            self.assertTrue(row.status.startswith("DELETE_"), (row.status, row.status_reason))
            self.assertEqual(runs, len(self.helm.runs), "it would come back")
        self.capi_converges()
        self.health_task()
        self.status_task(3)
        self.assertNotIn("extra", [one.name for one in self.cluster().nodegroups])
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        self.assertEqual((), record.operations if record else None)

    def test_it_stays_on_record_beside_a_request_that_is_refused(self) -> None:
        self.helm.refusal = errors.HelmRefused("Helm refused it: no.", "")
        self.resize(3)
        self.status_task(2)
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        assert record is not None
        self.assertIn(Verb.NODEGROUP_DELETE, [one.verb for one in record.operations])

    def test_another_request_has_its_own_time(self) -> None:
        self.resize(3)
        self.status_task()
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.assertEqual("UPDATE_IN_PROGRESS", self.group().status)


class TestOlderVersions(DriverCase):
    """They write a deletion down without saying which row it is of."""

    def test_the_last_request_counts(self) -> None:
        self.made()
        row = self.group()
        old = _operation(Verb.NODEGROUP_DELETE)
        new = _operation(Verb.NODEGROUP_CREATE, row.uuid)
        for operations, leaving in (([old], True), ([old, new], False), ([new, old], True)):
            record = ReleaseRecord(cluster_uuid="", project_id="", operations=tuple(operations))
            found = operation.is_nodegroup_deleted(record, row, row.name)
            self.assertEqual(leaving, found, operations)
            self.assertEqual(frozenset(), operation.deleted_nodegroups(record))

    def test_with_its_row_the_order_does_not_matter(self) -> None:
        self.made()
        row = self.group()
        gone = _operation(Verb.NODEGROUP_DELETE, row.uuid)
        new = _operation(Verb.NODEGROUP_CREATE, row.uuid)
        for operations in ([gone, new], [new, gone]):
            record = ReleaseRecord(cluster_uuid="", project_id="", operations=tuple(operations))
            self.assertTrue(operation.is_nodegroup_deleted(record, row, row.name))
        other = _operation(Verb.NODEGROUP_DELETE, "another")
        record = ReleaseRecord(cluster_uuid="", project_id="", operations=(other,))
        self.assertFalse(operation.is_nodegroup_deleted(record, row, row.name))


def _operation(verb: Verb, row: str = "") -> Operation:
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    return Operation(
        id=f"{verb}-1", verb=verb, started_at=at, groups=("default-worker",), nodegroup_uuid=row
    )
