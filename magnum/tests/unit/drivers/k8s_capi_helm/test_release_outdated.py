# SPDX-License-Identifier: Apache-2.0
"""A Helm record that is older than the cluster moves nothing: it is refused, and said so.

That is what is left when the newest Secret of a release is deleted, or when a backup brings back
some Secrets of a namespace and not the rest.
"""

from __future__ import annotations

from typing import Any

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import Json, names, Revisions
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

WORDS = "Helm's record of this cluster is older than the cluster"


class OutdatedCase(DriverCase):
    """A cluster whose release has a history."""

    def setUp(self) -> None:
        super().setUp()
        self.made(workers=1)

    def settle(self) -> None:
        self.capi_converges()
        self.status_task(2)
        self.health_task()

    def numbers(self) -> list[int]:
        return sorted(self.helm.history[NAMESPACE, RELEASE])

    def show(self, *numbers: int, status: str = "deployed") -> None:
        """Leave these revisions of the release; the newest has this status."""
        shown = dict.fromkeys(numbers, "superseded") | {max(numbers): status}
        self.helm.show(NAMESPACE, RELEASE, shown)
        self.helm.runs.clear()

    def lose_the_newest(self, status: str = "deployed") -> None:
        self.show(*self.numbers()[:-1], status=status)

    def things(self) -> list[Json]:
        """Everything on the management cluster but Leases."""
        return [one for one in self.kube.everything() if one["kind"] != "Lease"]

    def told(self) -> tuple[str, str | None]:
        return self.cluster().status, self.cluster().status_reason

    def notice(self) -> str:
        self.health_task()
        return str(self.cluster().health_status_reason.get("notice", ""))

    def forget(self) -> None:
        """What an operator does who takes what is there for the truth."""
        found = self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
        del found["metadata"]["annotations"]["k8s-capi-helm.magnum.openstack.org/revisions"]
        self.kube.put(names.LEASE, found)


class TestVerbs(OutdatedCase):
    def refused(self, ask: Any) -> None:
        before = self.things()
        ask()
        self.status_task(2)
        self.health_task()
        self.assertEqual([], [verb for verb, _, _ in self.helm.runs])
        self.assertEqual(before, self.things())
        self.assertIn(
            f"{WORDS}: no change is made until the operator has restored it.", self.notice()
        )

    def test_a_resize_takes_no_upgrade_back(self) -> None:
        self.cloud.images["ubuntu-kube-1.35"] = ("image-2", "1.35.2")
        uuid = "21111111-2222-4333-8444-555555555555"
        later = self._template(uuid=uuid, name="next", image_id="ubuntu-kube-1.35")
        self.upgrade(later)
        for _ in range(3):
            self.settle()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.show(1)
        self.refused(lambda: self.resize(3))
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.assertIn(WORDS, self.cluster().status_reason)
        self.assertEqual(1, self.group().node_count)

    def test_a_resize_brings_no_deleted_nodegroup_back(self) -> None:
        self.add_group("extra")
        self.settle()
        self.drop_group("extra")
        self.settle()
        self.lose_the_newest()
        self.refused(lambda: self.resize(3))

    def test_a_request_deletes_no_living_nodegroup(self) -> None:
        self.add_group("extra", 2)
        self.settle()
        self.lose_the_newest()
        self.refused(lambda: self.resize(3))
        self.assertEqual(2, self.replicas("extra"))
        self.assertEqual("CREATE_COMPLETE", self.group("extra").status)

    def test_the_newest_is_superseded(self) -> None:
        self.resize(2)
        self.settle()
        self.forget()
        self.lose_the_newest(status="superseded")
        self.refused(lambda: self.resize(3))


class TestPasses(OutdatedCase):
    def setUp(self) -> None:
        super().setUp()
        self.add_group("extra")
        self.settle()
        self.kept = dict(self.helm.history[NAMESPACE, RELEASE])

    def in_progress(self) -> None:
        """A resize that is under way when the newest revision is lost."""
        self.helm.refusal = errors.HelmInterrupted("It was killed.")
        self.resize(3)
        self.helm.refusal = None
        self.lose_the_newest()
        self.status_task(3)

    def put_back(self) -> None:
        """The operator restores what was lost."""
        self.helm.history[NAMESPACE, RELEASE] = dict(self.kept)
        self.helm.releases[NAMESPACE, RELEASE] = self.kept[max(self.kept)]

    def test_a_request_waits_for_the_operator(self) -> None:
        self.in_progress()
        status, reason = self.told()
        self.assertEqual("UPDATE_IN_PROGRESS", status)
        self.assertIn(f"management: {WORDS}", reason)
        self.put_back()
        self.status_task()
        self.assertEqual(["apply"], [verb for verb, _, _ in self.helm.runs])
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_and_fails_at_its_deadline_with_the_sentence(self) -> None:
        self.in_progress()
        self.make_late()
        self.status_task()
        status, reason = self.told()
        self.assertEqual("UPDATE_FAILED", status)
        self.assertIn("timeout: not finished within 60 minutes", reason)
        self.assertIn(WORDS, reason)
        for _ in range(3):
            self.health_task()
        self.assertEqual(("UPDATE_FAILED", []), (self.cluster().status, self.helm.runs))

    def test_and_goes_on_when_it_is_restored_later(self) -> None:
        self.in_progress()
        self.make_late()
        self.status_task()
        self.put_back()
        self.health_task()
        self.capi_converges()
        for _ in range(3):
            self.health_task()
            self.status_task()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        values = self.helm.live(NAMESPACE, RELEASE).values
        self.assertEqual([3, 1], [one["machineCount"] for one in values["nodeGroups"]])

    def test_one_that_looks_in_time_is_told_so(self) -> None:
        self.lose_the_newest()
        self.assertIn(WORDS, self.upgrade(self.template))
        self.add_group("more")
        self.assertEqual("CREATE_FAILED", self.group("more").status)
        self.assertIn(WORDS, self.group("more").status_reason)
        self.change_group("extra", node_labels={"a": "b"})
        self.assertIn(WORDS, self.group("extra").status_reason)
        self.assertIsNone(self.group("extra").node_labels or None)
        self.drop_group("extra")
        self.assertEqual("DELETE_FAILED", self.group("extra").status)
        self.assertEqual([], self.helm.runs)

    def test_it_can_be_deleted(self) -> None:
        self.lose_the_newest()
        self.delete()
        for _ in range(5):
            self.status_task()
            self.capi_deletes()
        self.assertEqual([], objects.Cluster.list(self.context))
        self.assertEqual([], self.left())

    def test_what_was_applied_under_a_failed_revision_is_lost(self) -> None:
        self.helm.refuses = lambda values: errors.HelmRefused("Helm refused it: no.")
        self.helm.is_half_way = True
        self.add_group("bad")
        self.settle()
        self.helm.refuses = lambda values: None
        failed = max(self.numbers())
        self.assertEqual("failed", self.helm.history[NAMESPACE, RELEASE][failed].status)
        self.show(1, failed, status="failed")
        self.resize(3)
        self.status_task()
        self.assertEqual([], self.helm.runs)
        self.assertIn(WORDS, self.cluster().status_reason)


class TestBelieved(OutdatedCase):
    """What is no reason to refuse."""

    def setUp(self) -> None:
        super().setUp()
        self.resize(2)
        self.settle()

    def known(self) -> Revisions:
        return self.ports.leases.read(NAMESPACE, RELEASE).revisions

    def carried_out(self, verbs: tuple[str, ...] = ("apply",)) -> None:
        self.helm.runs.clear()
        self.resize(4)
        self.settle()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual(verbs, tuple(verb for verb, _, _ in self.helm.runs))
        live = self.helm.live(NAMESPACE, RELEASE)
        self.assertEqual(4, live.values["nodeGroups"][0]["machineCount"])
        self.assertEqual(Revisions(live.revision, live.revision), self.known())

    def by_hand(self, **values: Any) -> None:
        """Somebody runs helm upgrade, or helm rollback: the next revision."""
        live = self.helm.live(NAMESPACE, RELEASE)
        chart = self.ports.charts.for_new_cluster(None)
        self.helm.apply(NAMESPACE, RELEASE, chart, {**live.values, **values})

    def test_a_release_that_is_newer(self) -> None:
        self.by_hand(machineSSHKeyName="another")
        self.health_task()
        self.assertEqual(Revisions(3, 3), self.known())
        self.carried_out()

    def test_that_some_older_revisions_are_gone(self) -> None:
        self.show(max(self.numbers()))
        self.carried_out()

    def test_a_lease_from_an_older_backup(self) -> None:
        known = self.known()
        self.ports.leases.record_revisions(NAMESPACE, RELEASE, known, Revisions(1, 1))
        self.carried_out()

    def test_a_lease_without_any_number_gets_one(self) -> None:
        self.forget()
        self.health_task()
        self.assertEqual(Revisions(2, 2), self.known())
        self.health_task()
        writes = [one for one in self.kube.calls if one[:2] == ("replace", "Lease")]
        self.health_task()
        self.assertEqual(
            writes, [one for one in self.kube.calls if one[:2] == ("replace", "Lease")]
        )

    def test_an_operator_accepts_what_is_there(self) -> None:
        self.lose_the_newest()
        self.forget()
        self.carried_out()

    def test_a_release_that_is_lost_begins_anew(self) -> None:
        self.helm.releases.clear()
        self.carried_out(("adopt", "apply"))
        self.assertEqual(2, self.known().newest)

    def test_also_when_helm_is_killed_over_it(self) -> None:
        def killed(live: Any) -> None:
            self.helm.midway = None
            raise errors.HelmInterrupted("It was killed.")

        self.helm.releases.clear()
        self.helm.midway = killed
        self.helm.runs.clear()
        self.resize(2)
        self.assertEqual(1, self.known().pending_install)
        self.status_task()
        self.assertEqual(["adopt", "adopt"], [verb for verb, _, _ in self.helm.runs])
        self.assertEqual(Revisions(2, 2), self.known())

    def test_but_no_older_revision_that_comes_back_meanwhile(self) -> None:
        for count in (3, 1, 2):
            self.resize(count)
            self.settle()
        kept = dict(self.helm.history[NAMESPACE, RELEASE])
        self.helm.releases.clear()
        self.helm.refusal = errors.HelmInterrupted("It was killed.")
        self.resize(4)
        self.helm.refusal = None
        self.helm.history[NAMESPACE, RELEASE] = kept
        self.show(1, 2, 3)
        self.status_task()
        self.assertEqual([], self.helm.runs)
        self.assertIn(WORDS, self.cluster().status_reason)


class TestClearing(OutdatedCase):
    """What a refused revision has left is taken away, and nothing that lives."""

    def setUp(self) -> None:
        super().setUp()
        self.add_group("extra", 2)
        self.settle()
        kind, marks = names.MACHINE_DEPLOYMENT, {names.LABEL_CHART_CLUSTER: RELEASE}
        for one in self.kube.list(kind, NAMESPACE):
            name = one["metadata"]["name"]
            self.kube.patch(kind, NAMESPACE, name, {"metadata": {"labels": marks}})

    def test_one_that_the_cloud_refuses_is_not_cleared(self) -> None:
        self.check_cloud(errors.CloudRefused("There is no such flavor."))

    def test_nor_one_while_the_cloud_is_waited_for(self) -> None:
        self.check_cloud(errors.CloudUnreachable("Nova does not answer."))

    def check_cloud(self, error: errors.DriverError) -> None:
        def flavors(*wanted: Any) -> Any:
            raise error

        self.forget()
        self.lose_the_newest()
        self.cloud.flavors = flavors  # type: ignore[method-assign]
        self.resize(3)
        self.status_task()
        self.assertEqual(2, self.replicas("extra"))

    def test_one_that_helm_refuses_and_that_lives_is_not(self) -> None:
        self.forget()
        self.lose_the_newest()
        self.refuse_extra()
        self.resize(3)
        self.assertEqual(2, self.replicas("extra"))

    def test_nor_one_of_whose_machines_has_a_node(self) -> None:
        self.forget()
        self.lose_the_newest()
        self.refuse_extra()
        row = self.group("extra")
        row.status = "CREATE_IN_PROGRESS"
        row.save()
        self.health_task()
        self.after(6)
        self.resize(3)
        self.assertEqual("CREATE_FAILED", self.group("extra").status)
        self.assertEqual(2, self.replicas("extra"))

    def refuse_extra(self) -> None:
        def refuses(values: Json) -> errors.DriverError | None:
            bad = any(one["name"] == "extra" for one in values["nodeGroups"])
            return errors.HelmRefused("Helm refused it: no.") if bad else None

        self.helm.refuses = refuses
