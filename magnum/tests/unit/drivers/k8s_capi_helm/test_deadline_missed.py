# SPDX-License-Identifier: Apache-2.0
"""Operations whose time was over before Helm could take them: they go on, and nothing else is said.

Helm cannot run for an hour where the management cluster is slow or its webhooks are away. What was
asked for is as good as before then, and the operator has mended what kept it.
"""

from __future__ import annotations

from typing import ClassVar

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

INTERRUPTED = errors.HelmInterrupted("Helm ran out of time.")


class TestCreate(DriverCase):
    def test_one_that_was_never_handed_over_says_what_to_do(self) -> None:
        """Its nodegroups have failed, and nobody asks for them any more."""
        self.helm.refusal = INTERRUPTED
        self.create()
        self.make_late()
        self.status_task()
        self.assertIn("Helm ran out of time", self.cluster().status_reason)
        self.helm.refusal = None
        for _ in range(3):
            self.health_task()
            for row in (self.cluster(), self.group()):
                self.assertEqual("CREATE_FAILED", row.status)
                self.assertTrue(row.status_reason.startswith("timeout: not finished within 60"))
                self.assertIn("delete it and create it again", row.status_reason)
                self.assertNotIn("waiting", row.status_reason)
        self.delete()
        self.status_task(3)
        self.assertEqual([], objects.Cluster.list(self.context))


class LateCase(DriverCase):
    LABELS: ClassVar[dict[str, str]] = {}

    def setUp(self) -> None:
        super().setUp()
        self.made(labels=self.LABELS)
        self.health_task()
        self.helm.refusal = INTERRUPTED

    def miss(self) -> None:
        """The time of what was asked for passes in vain."""
        self.status_task()
        self.make_late()
        self.status_task()
        for _ in range(3):
            cluster = self.cluster()
            self.assertEqual("UPDATE_FAILED", cluster.status)
            for words in ("timeout: not finished within 60 minutes", "Helm ran out of time"):
                self.assertIn(words, cluster.status_reason)
            self.health_task()

    def come_good(self) -> None:
        self.health_task()
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        for _ in range(2):
            self.capi_converges()
            self.health_task()
            self.health_task()
        cluster = self.cluster()
        self.assertEqual(("UPDATE_COMPLETE", None), (cluster.status, cluster.status_reason))
        self.assertEqual((), self.recorded())

    def recorded(self) -> tuple[str, ...]:
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        return tuple(str(one.verb) for one in record.operations)


class TestLate(LateCase):
    def test_a_resize(self) -> None:
        self.resize(3)
        self.miss()
        self.helm.refusal = None
        self.come_good()
        self.assertEqual(3, self.replicas("default-worker"))

    def test_an_upgrade(self) -> None:
        self.cloud.images["newer"] = ("image-2", "1.35.0")
        newer = self._template(
            uuid="22222222-2222-4333-8444-555555555555", name="newer", image_id="newer"
        )
        self.assertEqual("", self.upgrade(newer))
        self.miss()
        self.assertEqual(["upgrade"], list(self.recorded()))
        self.helm.refusal = None
        self.come_good()
        cluster = self.cluster()
        self.assertEqual(
            (newer.uuid, "v1.35.0"), (cluster.cluster_template_id, cluster.coe_version)
        )

    def test_labels_of_a_nodegroup_that_are_taken_away(self) -> None:
        """Rows do not tell none from never asked."""
        self.helm.refusal = None
        self.change_group(node_labels={"a": "b"})
        self.capi_converges()
        self.status_task(2)
        self.helm.refusal = INTERRUPTED
        self.change_group(node_labels={})
        self.miss()
        self.helm.refusal = None
        self.come_good()
        entry = self.helm.live(NAMESPACE, RELEASE).values["nodeGroups"][0]
        self.assertFalse(entry.get("nodeLabels"), entry)

    def test_what_is_refused_then_is_not_tried_again(self) -> None:
        self.resize(3)
        self.miss()
        self.helm.refusal = errors.HelmRefused("The management cluster refused it.")
        self.health_task()
        self.health_task()
        self.assertEqual((), self.recorded())
        cluster = self.cluster()
        self.assertEqual("UPDATE_FAILED", cluster.status)
        self.assertEqual("The management cluster refused it.", cluster.status_reason)
        self.helm.refusal, runs = None, len(self.helm.runs)
        self.health_task()
        self.assertEqual(runs, len(self.helm.runs))

    def test_another_request_meanwhile(self) -> None:
        self.resize(3)
        self.miss()
        self.resize(4)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.helm.refusal = None
        self.status_task()
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual(((), 4), (self.recorded(), self.replicas("default-worker")))


class TestNumber(LateCase):
    LABELS: ClassVar = {
        "auto_scaling_enabled": "true",
        "min_node_count": "1",
        "max_node_count": "5",
    }

    def test_a_number_for_the_autoscaler(self) -> None:
        """Only the record has it."""
        self.helm.refusal = None

        def refuse(verb: str, kind: object, name: str) -> None:
            if verb == "patch":
                raise errors.ManagementUnreachable("It does not answer.", "webhook")

        self.kube.before = refuse
        self.resize(3)
        self.status_task()
        self.make_late()
        self.status_task()
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.kube.before = None
        self.come_good()
        self.assertEqual(3, self.replicas("default-worker"))
