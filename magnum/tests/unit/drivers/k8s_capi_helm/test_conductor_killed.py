# SPDX-License-Identifier: Apache-2.0
"""What single moments leave at which a conductor was killed, and what becomes of it.

``test_conductor_crashes.py`` finds such moments by itself; here stand those that were wrong once.
"""

from __future__ import annotations

import datetime
from typing import Any

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import names, RetiredCredential
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

FIRST = f"id-magnum-{RELEASE}"
LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
BAD = {"team": "bad"}
LEASE_SECONDS = 60


class TestCreate(DriverCase):
    def test_a_lease_whose_row_does_not_know_its_release_goes_with_the_row(self) -> None:
        cluster = self.create()
        for secret in self.kube.list(names.SECRET, NAMESPACE):
            self.kube.remove(names.SECRET, NAMESPACE, secret["metadata"]["name"])
        self.helm.releases.clear()
        cluster.stack_id = None
        cluster.save()
        self.delete()
        self.status_task()
        self.assertEqual([], objects.Cluster.list(self.context))
        self.assertNotIn(f"Lease/{names.lease(RELEASE)}", self.left())

    def test_no_row_has_a_release_before_there_is_its_lease(self) -> None:
        seen: list[Any] = []

        def look(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("create", names.LEASE):
                seen.append(self.cluster().stack_id)

        self.kube.before = look
        self.create()
        self.assertEqual([None], seen)

    def test_certificates_are_known_before_anything_is_checked(self) -> None:
        self.cloud.images = {}
        self.create()
        self.assertIsNotNone(self.cluster().ca_cert_ref)

    def test_a_credential_that_was_not_saved_goes_with_the_cluster(self) -> None:
        self.create()
        self.kube.remove(names.SECRET, NAMESPACE, names.credential_secret(RELEASE))
        self.assertEqual({FIRST}, set(self.cloud.credentials))
        self.delete()
        self.status_task(2)
        self.assertEqual({}, self.cloud.credentials)

    def test_credentials_that_nobody_may_list_keep_it_until_the_operators_word(self) -> None:
        def refused(user_id: str, project_id: str) -> Any:
            raise errors.CloudRefused("Keystone refused it.")

        self.cloud.credential_names = refused  # type: ignore[method-assign]
        self.made()
        self.delete()
        self.status_task()
        self.capi_deletes()
        self.status_task()
        self.assertIn("Keystone refused", self.cluster().status_reason)
        self.give_the_operators_word()
        self.status_task(2)
        self.assertEqual([], objects.Cluster.list(self.context))
        self.assertEqual([], self.left())

    def test_the_chart_is_known_before_helm_begins(self) -> None:
        self.helm.refusal = errors.HelmInterrupted("helm was killed")
        self.create()
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        assert record is not None
        self.assertEqual("bundled", record.chart_source)
        self.assertNotEqual("", record.chart_digest)


class TestRotation(DriverCase):
    def test_what_was_made_and_not_saved_goes_in_the_end(self) -> None:
        self.made()
        name = f"magnum-{RELEASE}-12345678"
        self.cloud.credentials |= {f"id-{name}": "u2", f"id-{name}-addons": "u2", "id-else": "u2"}
        begun = RetiredCredential("", "u2", LONG_AGO, name)
        self.ports.leases.retire(NAMESPACE, RELEASE, begun)
        self.health_task()
        self.assertEqual({FIRST, "id-else"}, set(self.cloud.credentials))
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        self.assertEqual((), record.retired_credentials if record else None)

    def test_what_was_saved_stays(self) -> None:
        self.made()
        self.ports.leases.retire(
            NAMESPACE, RELEASE, RetiredCredential("", "u1", LONG_AGO, f"magnum-{RELEASE}")
        )
        self.health_task()
        self.assertEqual({FIRST}, set(self.cloud.credentials))


class TestChanges(DriverCase):
    def setUp(self) -> None:
        super().setUp()
        self.made()

    def test_a_count_that_only_magnum_knows_of_is_applied(self) -> None:
        group = self.group()
        group.node_count = 3
        group.save()
        self.health_task()
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)  # somebody may be checking it
        self.after(6)
        self.health_task()
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.status_task()
        self.capi_converges()
        self.status_task(2)
        self.assertEqual(3, self.entry()["machineCount"])
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_a_cluster_that_was_taken_over_is_not_changed_unasked(self) -> None:
        self.ports.leases.remember(NAMESPACE, RELEASE, chart_digest="")
        group = self.group()
        group.node_count = 3
        group.save()
        self.after(6)
        self.health_task()
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_an_update_is_on_record_before_the_row_says_so(self) -> None:
        seen: list[Any] = []

        def look(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("replace", names.LEASE) and not seen:
                seen.append(dict(self.group().node_labels or {}))

        self.kube.before = look
        self.change_group(node_labels={"a": "b"})
        self.assertEqual([{}], seen)
        self.assertEqual({"a": "b"}, self.entry()["nodeLabels"])

    def test_a_refused_change_that_is_not_on_record_goes_back_too(self) -> None:
        self.refuse_teams()
        cluster, group = self.cluster(), self.group()
        cluster.status = group.status = "UPDATE_IN_PROGRESS"
        group.node_labels = BAD
        cluster.save()
        group.save()
        self.status_task()
        self.assertEqual("UPDATE_FAILED", self.group().status)
        self.assertFalse(self.group().node_labels)
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_a_refusal_that_helm_did_not_live_to_say_is_one_of_the_group(self) -> None:
        def die(live: Any) -> None:
            self.helm.midway = None
            raise errors.HelmInterrupted("helm was killed")

        self.helm.midway = die
        self.add_group("extra", node_labels=BAD)
        self.assertEqual("pending-upgrade", self.helm.live(NAMESPACE, RELEASE).status)
        self.refuse_teams()
        self.status_task()
        self.assertEqual("CREATE_FAILED", self.group("extra").status)
        self.assertEqual("deployed", self.helm.live(NAMESPACE, RELEASE).status)

    def test_a_nodegroup_without_its_server_group_says_so(self) -> None:
        self.add_group("extra")
        self.openstack_forgets("extra")
        values = self.helm.live(NAMESPACE, RELEASE).values
        values["nodeGroups"].pop()
        self.helm.apply(NAMESPACE, RELEASE, self.chart(), values)
        self.status_task()
        row = self.group("extra")
        self.assertEqual("CREATE_FAILED", row.status)
        self.assertIn("Delete the nodegroup and create it again", row.status_reason)

    def openstack_forgets(self, group: str) -> None:
        name = names.server_group(RELEASE, group)
        cloud = self.cloud.openstack
        cloud.groups = [one for one in cloud.groups if one.name != name]

    def chart(self) -> Any:
        return self.ports.charts.for_new_cluster(None)

    def entry(self) -> Any:
        [found] = self.helm.live(NAMESPACE, RELEASE).values["nodeGroups"]
        return found

    def refuse_teams(self) -> None:
        def refuses(values: Any) -> errors.DriverError | None:
            bad = any("team" in (one.get("nodeLabels") or {}) for one in values["nodeGroups"])
            return errors.HelmRefused("Helm refused it: team.") if bad else None

        self.helm.refuses, self.helm.is_half_way = refuses, True


class TestLock(DriverCase):
    """A lock that was not given back when the release was as the rows ask for already."""

    def setUp(self) -> None:
        super().setUp()
        self.count_seconds("other", LEASE_SECONDS)
        self.drop_group_of_new_cluster("extra")

    def lock(self, renewed: int = 0) -> None:
        spec = {
            "holderIdentity": "another/1/1a2b3c4d",
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": f"2040-01-01T00:{renewed:02}:00.000000Z",
        }
        self.kube.patch(names.LEASE, NAMESPACE, names.lease(RELEASE), {"spec": spec})

    def is_in_progress(self) -> None:
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.assertEqual("DELETE_IN_PROGRESS", self.group("extra").status)

    def test_a_nodegroup_is_gone_when_the_lock_of_a_dead_conductor_has_expired(self) -> None:
        self.lock()
        self.status_task(3)
        self.is_in_progress()
        self.seconds += LEASE_SECONDS + 1
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertNotIn("extra", [row.name for row in self.cluster().nodegroups])
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        self.assertEqual(((), ""), (record.operations, record.holder) if record else None)

    def test_a_nodegroup_that_is_gone_stays_while_a_live_conductor_holds_the_lock(self) -> None:
        for number in range(5):
            self.lock(number)
            self.status_task()
            self.is_in_progress()
            self.health_task()
            self.is_in_progress()
            self.seconds += LEASE_SECONDS + 1
