# SPDX-License-Identifier: Apache-2.0
"""Controllers that are gone: what they said last is old, and nothing goes on without them."""

from __future__ import annotations

import dataclasses
import datetime

import testtools

from magnum.drivers.k8s_capi_helm import model, status
from magnum.drivers.k8s_capi_helm.model import StaleController
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.builders import NOW

SILENT = "management: controller capi has not reported since 2026-11-21 11:53 UTC"
CAPI = StaleController("capi", NOW - datetime.timedelta(minutes=7))
CAPO = StaleController("capo", NOW - datetime.timedelta(hours=14))


def observed(*silent: StaleController) -> model.Observed:
    return dataclasses.replace(builders.observed(), stale_controllers=silent)


class TestHealth(testtools.TestCase):
    def judge(self, look: model.Observed) -> tuple[str, dict[str, str]]:
        verdict = status.evaluate(look, builders.state("UPDATE_COMPLETE"), NOW)
        return verdict.health, dict(verdict.health_reason)

    def test_nothing_that_they_have_said_is_repeated(self) -> None:
        health, reasons = self.judge(observed(CAPI))
        self.assertEqual("UNKNOWN", health)
        said = "controller capi has not reported since 2026-11-21T11:53:00Z"
        self.assertEqual({"management": said}, reasons)

    def test_all_are_named_and_the_first_to_fall_silent_has_the_time(self) -> None:
        text = self.judge(observed(CAPO, CAPI))[1]["management"]
        said = "controllers capi, capo have not reported since 2026-11-20T22:00:00Z"
        self.assertEqual(said, text)

    def test_what_was_bad_may_be_over(self) -> None:
        look = observed(CAPI)
        builders.say(look.machines[0], "Ready", "False", "* NodeHealthy: gone")
        self.assertEqual("UNKNOWN", self.judge(look)[0])

    def test_what_others_know_stays(self) -> None:
        look = dataclasses.replace(observed(CAPI), credential="it is dead")
        health, reasons = self.judge(look)
        self.assertEqual(("UNHEALTHY", "it is dead"), (health, reasons["credential"]))
        self.assertIn("capi", reasons["management"])

    def test_a_management_cluster_that_is_away_comes_first(self) -> None:
        look = dataclasses.replace(observed(CAPI), unreachable="refused")
        self.assertIn("unreachable since", self.judge(look)[1]["management"])


class TestLifecycle(testtools.TestCase):
    def judge(self, look: model.Observed, word: str) -> model.Verdict:
        return status.evaluate(look, builders.state(word), NOW)

    def waiting(self, *silent: StaleController) -> model.Observed:
        look = observed(*silent)
        look.machine_deployments[0]["metadata"]["generation"] = 9
        return look

    def test_they_are_what_is_waited_for(self) -> None:
        verdict = self.judge(self.waiting(CAPI), "UPDATE_IN_PROGRESS")
        self.assertEqual("UPDATE_IN_PROGRESS", verdict.status)
        begin = f"{SILENT}; Cluster API has not processed the change of nodegroup "
        self.assertTrue(verdict.reason.startswith(begin), verdict.reason)
        worker = next(one for one in verdict.groups if one.name == "default-worker")
        self.assertTrue(worker.reason.startswith(begin), worker.reason)

    def test_yesterday_has_its_date(self) -> None:
        verdict = self.judge(self.waiting(CAPO), "UPDATE_IN_PROGRESS")
        self.assertIn("controller capo has not reported since 2026-11-20 22:00 UTC", verdict.reason)

    def test_an_old_fault_is_not_what_is_waited_for(self) -> None:
        look = self.waiting(CAPI)
        builders.say(look.servers[-1], "InstanceReady", "False", "Quota exceeded for instances")
        verdict = self.judge(look, "UPDATE_IN_PROGRESS")
        self.assertTrue(verdict.reason.startswith("management: controller capi"), verdict.reason)

    def test_a_deadline_names_them(self) -> None:
        state = builders.state("UPDATE_IN_PROGRESS")
        late = dataclasses.replace(state, deadline=NOW - datetime.timedelta(minutes=1))
        verdict = status.evaluate(self.waiting(CAPI), late, NOW)
        self.assertEqual("UPDATE_FAILED", verdict.status)
        self.assertIn("controller capi has not reported since", verdict.reason)

    def test_a_deletion_names_them(self) -> None:
        verdict = self.judge(observed(CAPI), "DELETE_IN_PROGRESS")
        begin = f"{SILENT}; deletion of OpenStackServer "
        self.assertTrue(verdict.reason.startswith(begin), verdict.reason)

    def test_what_was_rolled_out_is_rolled_out(self) -> None:
        """A Lease that somebody forgot ends no creation: that is for the health to say."""
        first = self.judge(observed(CAPI), "CREATE_IN_PROGRESS")
        state = dataclasses.replace(
            builders.state("CREATE_IN_PROGRESS"), ready_fingerprint=first.fingerprint
        )
        verdict = status.evaluate(observed(CAPI), state, NOW)
        self.assertEqual(("CREATE_COMPLETE", "UNKNOWN"), (verdict.status, verdict.health))
