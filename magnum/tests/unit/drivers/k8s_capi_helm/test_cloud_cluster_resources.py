# SPDX-License-Identifier: Apache-2.0
"""What is made in a project is made once, found by its name, and taken away with nothing else."""

from __future__ import annotations

from openstack import exceptions as sdk_exceptions
import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.access.services import Services
from magnum.drivers.k8s_capi_helm.cloud.resources.cluster_resources import ClusterResources
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeOpenStack

RELEASE, OTHER = "demo-abcdefghijkl", "demo-abcdefghijkl-mnopqrstuvwx"
SOFT = "soft-anti-affinity"


class Case(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.cloud = FakeOpenStack("p1")
        self.mine = ClusterResources(Services(self.cloud))


class TestServerGroups(Case):
    def test_one_for_each_nodegroup_with_one_look(self) -> None:
        made = self.mine.make_server_groups(RELEASE, {"masters": SOFT, "workers": "affinity"})
        self.assertEqual(
            {f"{RELEASE}.masters": SOFT, f"{RELEASE}.workers": "affinity"}, self.cloud.policies()
        )
        self.assertEqual(made["masters"], self.cloud.ids()[f"{RELEASE}.masters"])
        self.assertEqual(3, len(self.cloud.asked))

    def test_nothing_wanted_is_nothing_asked(self) -> None:
        self.assertEqual({}, self.mine.make_server_groups(RELEASE, {}))
        self.assertEqual([], self.cloud.asked)

    def test_an_earlier_attempts_is_taken(self) -> None:
        made = self.mine.make_server_groups(RELEASE, {"workers": SOFT})
        self.assertEqual(made, self.mine.make_server_groups(RELEASE, {"workers": SOFT}))
        self.assertEqual(1, len(self.cloud.groups))

    def test_one_of_another_policy_is_not(self) -> None:
        first = self.mine.make_server_groups(RELEASE, {"workers": SOFT})
        second = self.mine.make_server_groups(RELEASE, {"workers": "anti-affinity"})
        self.assertNotEqual(first, second)

    def test_the_one_of_the_wanted_policy_is_found(self) -> None:
        made = {
            policy: self.mine.make_server_groups(RELEASE, {"workers": policy})
            for policy in (SOFT, "anti-affinity", "affinity")
        }
        for policy, groups in made.items():
            found = self.mine.server_groups(RELEASE, "p1", {"workers": policy})
            self.assertEqual(groups, found)
        found = self.mine.server_groups(RELEASE, "p1", {"workers": "soft-affinity"})
        self.assertIn(found["workers"], {one["workers"] for one in made.values()})
        self.mine.delete_server_groups(RELEASE, "p1")
        self.assertEqual([], self.cloud.groups)

    def test_novas_older_form_of_a_policy(self) -> None:
        made = self.mine.make_server_groups(RELEASE, {"workers": SOFT})
        self.cloud.groups[0].policy, self.cloud.groups[0].policies = None, [SOFT]
        self.assertEqual(made, self.mine.make_server_groups(RELEASE, {"workers": SOFT}))

    def test_found_in_the_project_by_release(self) -> None:
        made = self.mine.make_server_groups(RELEASE, {"workers": SOFT})
        self.mine.make_server_groups(OTHER, {"workers": SOFT})
        self.cloud.project = "p2"
        self.mine.make_server_groups(RELEASE, {"workers": SOFT})
        self.assertEqual(made, self.mine.server_groups(RELEASE, "p1", {"workers": SOFT}))

    def test_found_behind_those_that_nova_lists_at_once(self) -> None:
        self.cloud.page = 2
        for number in range(4):
            self.mine.make_server_groups(f"{RELEASE}-{number}", {"workers": SOFT})
        made = self.mine.make_server_groups(RELEASE, {"workers": SOFT})
        self.assertEqual(made, self.mine.server_groups(RELEASE, "p1", {"workers": SOFT}))
        self.mine.delete_server_groups(RELEASE, "p1")
        self.assertEqual(4, len(self.cloud.groups))

    def test_a_full_quota_is_said_with_what_to_do(self) -> None:
        self.cloud.quota = 0
        error = self.assertRaises(
            errors.CloudRefused, self.mine.make_server_groups, RELEASE, {"workers": SOFT}
        )
        for part in ("'workers'", "too many server groups", "server_group_policies"):
            self.assertIn(part, str(error))

    def test_deleted_one_by_one_or_all_of_a_release(self) -> None:
        for release in (RELEASE, OTHER):
            self.mine.make_server_groups(release, {"workers": SOFT, "extra": SOFT})
        self.mine.delete_server_groups(RELEASE, "p1", "extra")
        self.assertEqual(
            {f"{RELEASE}.workers", f"{OTHER}.workers", f"{OTHER}.extra"}, set(self.cloud.ids())
        )
        self.mine.delete_server_groups(RELEASE, "p1")
        self.mine.delete_server_groups(RELEASE, "p1")
        self.assertEqual({f"{OTHER}.workers", f"{OTHER}.extra"}, set(self.cloud.ids()))

    def test_names_are_never_anothers(self) -> None:
        self.assertEqual("a.b", names.of_server_group(RELEASE, f"{RELEASE}.a.b"))
        for strange in (RELEASE, f"{RELEASE}.", f"{RELEASE}-x.a", "", f"x.{RELEASE}.a"):
            self.assertIsNone(names.of_server_group(RELEASE, strange), strange)


class TestApiAddress(Case):
    def test_made_once_on_the_external_network(self) -> None:
        made = self.mine.make_api_address(RELEASE, "p1", "net-1")
        self.assertEqual(made, self.mine.make_api_address(RELEASE, "p1", "net-1"))
        [there] = self.cloud.addresses
        self.assertEqual((made, "net-1"), (there.floating_ip_address, there.floating_network_id))
        self.assertEqual(made, self.mine.api_address(RELEASE, "p1"))
        self.assertIsNone(self.mine.api_address(RELEASE, "p2"))
        self.assertIsNone(self.mine.api_address(OTHER, "p1"))

    def test_a_full_quota_is_said_with_what_to_do(self) -> None:
        self.cloud.quota = 0
        error = self.assertRaises(
            errors.CloudRefused, self.mine.make_api_address, RELEASE, "p1", "net-1"
        )
        for part in ("Quota exceeded", "--master-lb-enabled"):
            self.assertIn(part, str(error))

    def test_only_the_one_that_was_made_is_deleted(self) -> None:
        self.mine.make_api_address(RELEASE, "p1", "net-1")
        other = self.mine.make_api_address(OTHER, "p1", "net-1")
        self.mine.delete_api_address(RELEASE, "p1")
        self.mine.delete_api_address(RELEASE, "p1")
        self.assertEqual([other], [one.floating_ip_address for one in self.cloud.addresses])


class TestFailures(Case):
    def test_library_errors_do_not_cross(self) -> None:
        self.mine.make_server_groups(RELEASE, {"workers": SOFT})
        for failure, wanted in (
            (sdk_exceptions.HttpException("boom", http_status=503), errors.CloudUnreachable),
            (sdk_exceptions.HttpException("no", http_status=403), errors.CloudRefused),
        ):
            self.cloud.failing = failure
            for call in (
                lambda: self.mine.make_server_groups(RELEASE, {"workers": SOFT}),
                lambda: self.mine.delete_server_groups(RELEASE, "p1"),
                lambda: self.mine.make_api_address(RELEASE, "p1", "net-1"),
                lambda: self.mine.delete_api_address(RELEASE, "p1"),
            ):
                self.assertRaises(wanted, call)
