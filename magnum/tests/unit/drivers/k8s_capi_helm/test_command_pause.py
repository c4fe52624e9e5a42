# SPDX-License-Identifier: Apache-2.0
"""``pause``, ``resume`` and ``reconcile``: an operator acts on single clusters."""

from __future__ import annotations

from typing import Any

from magnum import objects
from magnum.drivers.k8s_capi_helm.commands.clusters.pause import PAUSE_REASON, PAUSED_SINCE
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    CRITICAL,
    OK,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import CONF, NAMESPACE, RELEASE


class ActCase(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.made()

    def run_rows(self, *argv: str, status: int = OK) -> list[dict[str, Any]]:
        printed = self.command(*argv, "-f", "json")
        self.assertEqual(status, printed.status, printed.out + printed.error)
        return printed.rows()

    def refused(self, words: str, *argv: str) -> None:
        before = sorted(map(str, self.kube.everything()))
        printed = self.command(*argv)
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))
        self.assertIn(words, printed.error)
        self.assertEqual(before, sorted(map(str, self.kube.everything())))

    def paused(self) -> tuple[Any, dict[str, str]]:
        obj = self.kube.get(names.CLUSTER, NAMESPACE, RELEASE)
        assert obj is not None
        annotations = obj["metadata"].get("annotations") or {}
        noted = {key: annotations[key] for key in annotations if "pause" in key}
        return obj["spec"].get("paused"), noted


class TestPause(ActCase):
    def test_a_cluster_is_paused_with_reason_and_time_and_resumed_without_a_trace(self) -> None:
        [row] = self.run_rows("pause", "demo", "--reason", "move to rack 7")
        self.assertEqual(("yes", "move to rack 7"), (row["Paused"], row["Reason"]))
        self.assertTrue(row["Since"].endswith("Z"), row)
        since = row["Since"]
        self.assertEqual(
            (True, {PAUSED_SINCE: since, PAUSE_REASON: "move to rack 7"}),
            self.paused(),
        )
        [row] = self.run_rows("resume", "demo")
        self.assertEqual(("no", "", ""), (row["Paused"], row["Since"], row["Reason"]))
        self.assertEqual((False, {}), self.paused())

    def test_a_second_pause_keeps_the_time_of_the_first(self) -> None:
        [first] = self.run_rows("pause", "demo", "--reason", "one")
        self.stand_still(self.wall_clock())
        self.after(5)
        [second] = self.run_rows("pause", "demo", "--reason", "two")
        self.assertEqual((first["Since"], "two"), (second["Since"], second["Reason"]))

    def test_the_tenant_is_told(self) -> None:
        self.run_rows("pause", "demo")
        self.health_task()
        cluster = self.cluster()
        self.assertEqual("UNKNOWN", cluster.health_status)
        said = cluster.health_status_reason["cluster"]
        self.assertEqual("is paused on the management cluster", said)

    def test_resume_of_one_that_is_not_paused_writes_nothing(self) -> None:
        before = sorted(map(str, self.kube.everything()))
        [row] = self.run_rows("resume", "demo")
        self.assertEqual("no", row["Paused"])
        self.assertEqual(before, sorted(map(str, self.kube.everything())))

    def test_one_that_something_else_has_paused(self) -> None:
        self.kube.patch(names.CLUSTER, NAMESPACE, RELEASE, {"spec": {"paused": True}})
        [row] = self.run_rows("resume", "demo")
        self.assertEqual("no", row["Paused"])
        self.assertEqual((False, {}), self.paused())

    def test_none_is_paused_where_one_is_not_found(self) -> None:
        self.refused("There is no such cluster", "pause", "demo", "other")

    def test_a_reason_that_is_too_long(self) -> None:
        self.refused("501 characters", "pause", "demo", "--reason", "x" * 501)

    def test_one_that_is_not_adopted(self) -> None:
        self.kube.remove(names.LEASE, NAMESPACE, names.lease(RELEASE))
        self.refused("not adopted", "pause", "demo")

    def test_one_without_a_cluster_object(self) -> None:
        self.kube.remove(names.CLUSTER, NAMESPACE, RELEASE)
        self.refused("no Cluster to pause", "pause", "demo")


class TestReconcile(ActCase):
    def setUp(self) -> None:
        super().setUp()
        for option in ("watch_staleness", "metrics_directory", "metrics_port"):
            self.addCleanup(CONF.clear_override, option, "capi_helm")

    def test_what_is_in_progress_is_carried_on(self) -> None:
        self.resize(2)
        [row] = self.run_rows("reconcile", "demo", status=WARNING)
        self.assertEqual("UPDATE_IN_PROGRESS", row["After"])
        self.assertIn("waiting", row["Reason"])
        self.capi_converges()
        self.run_rows("reconcile", "demo", status=WARNING)
        [row] = self.run_rows("reconcile", "demo")
        self.assertEqual(("UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"), (row["Before"], row["After"]))
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_one_that_is_well_stays(self) -> None:
        [row] = self.run_rows("reconcile", "demo")
        self.assertEqual(("CREATE_COMPLETE", "HEALTHY"), (row["After"], row["Health"]))

    def test_a_failed_one_that_has_come_good(self) -> None:
        cluster = self.cluster()
        cluster.status, cluster.status_reason = "UPDATE_FAILED", "timeout: it took too long"
        cluster.save()
        self.run_rows("reconcile", "demo", status=CRITICAL)
        [row] = self.run_rows("reconcile", "demo")
        self.assertEqual(("UPDATE_FAILED", "UPDATE_COMPLETE"), (row["Before"], row["After"]))

    def test_one_that_is_failed_still(self) -> None:
        self.run_rows("pause", "demo")
        cluster = self.cluster()
        cluster.status = "UPDATE_FAILED"
        cluster.save()
        [row] = self.run_rows("reconcile", "demo", status=CRITICAL)
        self.assertEqual("UPDATE_FAILED", row["After"])

    def test_a_deletion_ends(self) -> None:
        self.delete()
        ends = []
        for _ in range(6):
            self.capi_deletes()
            [row] = self.command("reconcile", "demo", "-f", "json").rows()
            ends.append(row["After"])
            if row["After"] == "deleted":
                break
        self.assertEqual("deleted", ends[-1], ends)
        self.assertEqual([], objects.Cluster.list(self.context))

    def test_one_that_does_not_exist(self) -> None:
        self.refused("There is no such cluster", "reconcile", "other")
