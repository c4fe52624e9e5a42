# SPDX-License-Identifier: Apache-2.0
"""Nodegroups whose row is there before their request is checked, and passes in between."""

from __future__ import annotations

from typing import Any
from unittest import mock

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

GROUP = f"{RELEASE}.extra"


class TestBeingChecked(DriverCase):
    def setUp(self) -> None:
        super().setUp()
        self.openstack = self.cloud.openstack

    def server_groups(self) -> dict[str, Any]:
        """Server group of each nodegroup of the live release."""
        values = self.helm.live(NAMESPACE, RELEASE).values
        return {one["name"]: one.get("serverGroupId") for one in values["nodeGroups"]}

    def counts(self) -> dict[str, int]:
        """Machines of each nodegroup of the live release."""
        values = self.helm.live(NAMESPACE, RELEASE).values
        return {one["name"]: one["machineCount"] for one in values["nodeGroups"]}

    def tick_before(self, asked: str) -> None:
        """Have a pass of another worker just before that is asked of OpenStack."""

        def overtake(what: str) -> None:
            if what == asked:
                self.openstack.before = None
                self.busy()
                self.status_task()

        self.openstack.before = overtake

    def resize_before(self, asked: str, passes: int = 0) -> None:
        """Have another worker asked for three machines just before that is asked of OpenStack.

        :param passes: that look at it before that.
        """

        def overtake(what: str) -> None:
            if what == asked:
                self.openstack.before = None
                self.busy()
                self.status_task(passes)
                self.resize(3, "extra")
                self.status_task()

        self.openstack.before = overtake

    def busy(self) -> None:
        """Have a pass find the cluster in progress, as with the second nodegroup of a request."""
        cluster = self.cluster()
        cluster.status = "UPDATE_IN_PROGRESS"
        cluster.save()

    def write_row(self, **fields: Any) -> None:
        """What is there of a request whose conductor died before it called the driver."""
        self.new_group("extra", **{"status": "CREATE_IN_PROGRESS", **fields}).create()

    def test_a_pass_leaves_it_to_its_request(self) -> None:
        self.made()
        self.tick_before(f"create server group {GROUP}")
        self.add_group("extra")
        self.assertEqual("CREATE_IN_PROGRESS", self.group("extra").status)
        self.assertEqual(self.openstack.ids()[GROUP], self.server_groups()["extra"])
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("CREATE_COMPLETE", self.group("extra").status)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_it_has_a_reason_while_its_request_checks_it(self) -> None:
        self.made()
        said = []

        def look(what: str) -> None:
            said.append(self.group("extra").status_reason)

        self.openstack.before = look
        self.add_group("extra")
        self.assertEqual({"waiting: the creation is starting"}, set(said))

    def test_what_its_request_refuses_never_was_in_the_release(self) -> None:
        self.made()
        runs = len(self.helm.runs)
        self.openstack.quota = 2
        self.tick_before(f"create server group {GROUP}")
        self.add_group("extra")
        self.assertEqual("CREATE_FAILED", self.group("extra").status)
        self.status_task(2)
        self.assertEqual(runs, len(self.helm.runs))
        self.assertEqual(["default-worker"], list(self.server_groups()))

    def test_other_requests_do_not_wait_for_it(self) -> None:
        self.made()
        self.write_row()
        self.resize(3)
        self.assertEqual({"default-worker": 3}, self.counts())
        self.assertEqual("CREATE_IN_PROGRESS", self.group("extra").status)

    def test_nor_do_nodegroups_that_are_there(self) -> None:
        self.made()
        self.write_row()
        self.add_group("more", 2)
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("CREATE_COMPLETE", self.group("more").status)
        self.assertEqual("CREATE_IN_PROGRESS", self.group("extra").status)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)

    def test_but_those_that_have_not_been_changed_yet(self) -> None:
        self.made()
        self.write_row()
        self.helm.refusal = errors.Busy("Somebody works on it.")
        self.resize(3)
        self.status_task(2)
        self.assertEqual("UPDATE_IN_PROGRESS", self.group("default-worker").status)

    def test_one_that_lost_its_conductor_is_refused_in_the_end(self) -> None:
        self.made()
        self.write_row()
        self.busy()
        self.status_task()
        self.assertEqual("CREATE_IN_PROGRESS", self.group("extra").status)
        self.after(6)
        self.status_task(2)
        found = self.group("extra")
        self.assertEqual("CREATE_FAILED", found.status)
        self.assertIn("interrupted before its server group was created", found.status_reason)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_or_made_when_nobody_has_to_be_asked(self) -> None:
        self.made()
        self.write_row(labels={"server_group_policies": "none"})
        self.busy()
        self.status_task()
        self.assertEqual(["default-worker"], list(self.server_groups()))
        self.after(6)
        self.status_task()
        self.assertEqual(["default-worker", "extra"], list(self.server_groups()))

    def test_one_that_was_checked_in_an_outage_goes_on_as_soon_as_that_is_over(self) -> None:
        def vanish(verb: str, kind: names.Kind, name: str) -> None:
            raise errors.ManagementUnreachable("The management cluster does not answer.")

        self.made()
        self.kube.before = vanish
        self.add_group("extra")
        found = self.group("extra")
        self.assertEqual("CREATE_IN_PROGRESS", found.status)
        self.assertIn("the management cluster cannot be reached", found.status_reason)
        self.kube.before = None
        self.status_task()
        self.assertEqual(self.openstack.ids()[GROUP], self.server_groups()["extra"])
        self.capi_converges()
        self.status_task(2)
        found = self.group("extra")
        self.assertEqual(("CREATE_COMPLETE", None), (found.status, found.status_reason))

    def test_a_change_of_a_young_one_does_not_wait(self) -> None:
        self.made()
        self.add_group("extra")
        self.capi_converges()
        self.status_task(2)
        self.resize(4, "extra")
        self.assertEqual({"default-worker": 1, "extra": 4}, self.counts())

    def check_resized(self, passes: int) -> None:
        self.made()
        self.resize_before(f"create server group {GROUP}", passes)
        self.add_group("extra")
        found = self.group("extra")
        self.assertEqual(("CREATE_IN_PROGRESS", 3), (found.status, found.node_count))
        self.assertEqual(self.openstack.ids()[GROUP], self.server_groups()["extra"])
        self.assertEqual({"default-worker": 1, "extra": 3}, self.counts())
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("CREATE_COMPLETE", self.group("extra").status)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_a_resize_while_it_is_checked_is_part_of_it(self) -> None:
        self.check_resized(passes=0)

    def test_also_after_passes_that_looked_at_it(self) -> None:
        self.check_resized(passes=2)

    def test_a_resize_while_it_is_checked_does_not_bring_it_in(self) -> None:
        self.made()
        runs = len(self.helm.runs)
        self.openstack.quota = 2
        self.resize_before(f"create server group {GROUP}")
        self.add_group("extra")
        self.assertEqual("CREATE_FAILED", self.group("extra").status)
        self.status_task(2)
        self.resize(4, "extra")
        self.assertEqual("CREATE_FAILED", self.group("extra").status)
        self.assertIn("was never created", self.group("extra").status_reason)
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual(runs, len(self.helm.runs))

    def test_nor_does_a_resize_that_has_just_begun(self) -> None:
        self.made()
        self.write_row(status="UPDATE_IN_PROGRESS")
        self.busy()
        self.status_task()
        self.assertEqual(["default-worker"], list(self.server_groups()))

    def test_a_resize_does_not_keep_one_that_is_to_go(self) -> None:
        self.made()
        self.write_row()
        live, read = self.helm.live, []

        def overtaken(*arguments: Any) -> Any:
            found = live(*arguments)
            read.append(arguments)
            if len(read) == 2:
                self.drop_group("extra")
            return found

        self.helm.live = overtaken
        self.resize(2, "extra")
        self.status_task(3)
        self.assertNotIn("extra", [one.name for one in self.cluster().nodegroups])

    def test_of_two_passes_that_see_it_gone_one_removes_its_row(self) -> None:
        self.drop_group_of_new_cluster("extra")
        removed, remove = [], objects.NodeGroup.destroy

        def overtaken(row: Any) -> None:
            removed.append(row.name)
            remove(objects.NodeGroup.get_by_uuid(self.context, row.cluster_id, row.uuid))
            remove(row)

        with mock.patch.object(objects.NodeGroup, "destroy", overtaken):
            self.status_task(3)
        self.assertEqual(["extra"], removed)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_one_that_is_asked_for_before_the_first_install_joins_after_it(self) -> None:
        def ask(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("apply", names.SECRET):
                self.kube.before = None
                self.add_group("extra")

        self.kube.before = ask
        self.create()
        self.assertEqual(["default-worker"], list(self.server_groups()))
        self.status_task()
        self.assertEqual(self.openstack.ids()[GROUP], self.server_groups()["extra"])
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual("CREATE_COMPLETE", self.group("extra").status)
