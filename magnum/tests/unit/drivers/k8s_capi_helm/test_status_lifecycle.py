# SPDX-License-Identifier: Apache-2.0
"""Deadlines, refusals, healing and nodegroups: what becomes of a status."""

from __future__ import annotations

import copy
import dataclasses
import datetime

import testtools

from magnum.drivers.k8s_capi_helm import model, status
from magnum.drivers.k8s_capi_helm.model import Missing
from magnum.drivers.k8s_capi_helm.status.objects import machine_stage
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.builders import NOW
from magnum.tests.unit.drivers.k8s_capi_helm.status_case import row, twice


class TestDrain(testtools.TestCase):
    """The Pod that holds up a drain is named, not when the drain has started."""

    def test_the_pod_and_why_it_stays(self):
        machine = builders.observed().machines[-1]
        machine["metadata"]["deletionTimestamp"] = "2026-11-21T11:58:00Z"
        held = (
            "Pod a/web-0: cannot evict pod as it would violate the pod's disruption budget. The "
            "disruption budget web needs 1 healthy pods and has 1 currently"
        )
        for message, words in (
            (f"Drain not completed yet (started at 2026-11-21T11:58:01Z):\n* {held}\n* b", held),
            ("Drain not completed yet", "Drain not completed yet"),
            ("Waiting for volumes:\nmany", "Waiting for volumes: many"),
        ):
            builders.say(machine, "Deleting", "True", message)
            expected = f"machine {machine['metadata']['name']} is being deleted: {words}"
            self.assertEqual(expected, machine_stage.stage(machine).text)


class LifecycleTest(testtools.TestCase):
    """Deadlines, refusals, and states that are not judged."""

    def test_a_missed_deadline_fails_with_the_deepest_reason(self):
        observed = builders.observed()
        observed.machines[-1]["status"].pop("nodeRef")
        builders.say(observed.machines[-1], "Ready", "False", "no node")
        state = builders.state(deadline=NOW - datetime.timedelta(seconds=1))
        verdict = twice(observed, state)
        self.assertEqual("CREATE_FAILED", verdict.status)
        self.assertTrue(
            verdict.reason.startswith("timeout: not finished within 10 minutes; waiting: 1")
        )
        self.assertEqual("CREATE_FAILED", row(verdict, "default-worker").status)
        self.assertIn("timeout", row(verdict, "default-worker").reason)
        self.assertEqual("CREATE_COMPLETE", row(verdict, "default-master").status)

    def test_a_deadline_of_one_minute_is_one_minute(self):
        observed = builders.observed()
        observed.machines[-1]["status"].pop("nodeRef")
        deadline = NOW - datetime.timedelta(seconds=1)
        state = builders.state(
            started_at=deadline - datetime.timedelta(minutes=1), deadline=deadline
        )
        verdict = twice(observed, state)
        self.assertTrue(
            verdict.reason.startswith("timeout: not finished within 1 minute; "), verdict
        )

    def test_what_is_in_place_at_the_deadline_gets_its_second_look(self):
        state = builders.state(deadline=NOW - datetime.timedelta(seconds=1))
        self.assertEqual(
            "CREATE_IN_PROGRESS", status.evaluate(builders.observed(), state, NOW).status
        )
        self.assertEqual("CREATE_COMPLETE", twice(builders.observed(), state).status)

    def test_a_refusal_fails_at_once_and_stays(self):
        for stage in ("IN_PROGRESS", "FAILED"):
            state = builders.state(f"UPDATE_{stage}", refusal="request: flavor 'x' is not known")
            verdict = twice(builders.observed(), state)
            self.assertEqual("UPDATE_FAILED", verdict.status)
            self.assertEqual("request: flavor 'x' is not known", verdict.reason)
            self.assertEqual({"UPDATE_FAILED"}, {one.status for one in verdict.groups})

    def test_unreachable_changes_nothing_but_the_reason(self):
        lost = dataclasses.replace(
            builders.observed(), unreachable="connect timeout", cluster=Missing.UNREADABLE
        )
        verdict = twice(lost, builders.state())
        self.assertEqual("CREATE_IN_PROGRESS", verdict.status)
        self.assertIn("management: the management cluster cannot be reached", verdict.reason)
        self.assertIsNone(verdict.api_address)

    def test_a_deletion_gets_a_reason_only(self):
        for stage in ("IN_PROGRESS", "FAILED"):
            verdict = twice(builders.observed(), builders.state(f"DELETE_{stage}"))
            self.assertEqual(f"DELETE_{stage}", verdict.status)
            self.assertEqual({f"DELETE_{stage}"}, {one.status for one in verdict.groups})

    def test_failed_without_a_deadline_keeps_its_words(self):
        state = builders.state("UPDATE_FAILED", status_reason="credential: revoked", deadline=None)
        observed = dataclasses.replace(builders.observed(), cluster=Missing.NOT_FOUND)
        self.assertEqual("credential: revoked", twice(observed, state).reason)


class GroupTest(testtools.TestCase):
    """A nodegroup is judged on its own machines; the cluster waits for all of them."""

    def state(self, **statuses: str) -> model.MagnumState:
        counts = {"default-worker": 2, "gpu": 1}
        state = builders.state("UPDATE_IN_PROGRESS", counts)
        groups = tuple(
            dataclasses.replace(
                one, status=statuses.get(one.name.replace("-", "_"), "UPDATE_COMPLETE")
            )
            for one in state.groups
        )
        return dataclasses.replace(state, groups=groups)

    def look(self, **counts: int) -> model.Observed:
        return builders.observed({"default-worker": 2, **counts})

    def test_a_new_group_without_objects_is_waited_for(self):
        verdict = twice(self.look(), self.state(gpu="CREATE_IN_PROGRESS"))
        self.assertEqual("CREATE_IN_PROGRESS", row(verdict, "gpu").status)
        self.assertEqual("UPDATE_IN_PROGRESS", verdict.status)

    def test_a_group_is_done_before_its_cluster(self):
        look = self.look(gpu=1)
        builders.say(look.cluster, "Available", "False")
        verdict = twice(look, self.state(gpu="CREATE_IN_PROGRESS"))
        self.assertEqual("CREATE_COMPLETE", row(verdict, "gpu").status)
        self.assertEqual("UPDATE_IN_PROGRESS", verdict.status)

    def test_a_deleted_group_is_gone_when_nothing_of_it_is_left(self):
        state = self.state(gpu="DELETE_IN_PROGRESS")
        verdict = twice(self.look(), state)
        self.assertTrue(row(verdict, "gpu").is_deleted)
        self.assertEqual("UPDATE_COMPLETE", verdict.status)
        whole = self.look(gpu=1)
        for kind in ("machine_deployments", "machine_sets", "machines"):
            for left in (getattr(whole, kind), Missing.UNREADABLE):
                verdict = twice(dataclasses.replace(self.look(), **{kind: left}), state)
                self.assertFalse(row(verdict, "gpu").is_deleted, kind)
                self.assertEqual("UPDATE_IN_PROGRESS", verdict.status)
        not_applied = dataclasses.replace(state, is_applied=False)
        self.assertFalse(row(twice(self.look(), not_applied), "gpu").is_deleted)

    def test_a_complete_cluster_has_no_group_in_progress(self):
        for word in ("CREATE", "UPDATE", "DELETE", "ROLLBACK"):
            for look in (self.look(), self.look(gpu=1)):
                verdict = twice(look, self.state(gpu=f"{word}_IN_PROGRESS"))
                open_rows = [
                    one.name
                    for one in verdict.groups
                    if one.status.endswith("_IN_PROGRESS") and not one.is_deleted
                ]
                complete = verdict.status == "UPDATE_COMPLETE"
                self.assertEqual(complete, not open_rows, (word, open_rows))

    def test_groups_go_one_by_one(self):
        look = self.look(gpu=1)
        look.machine_deployments[1]["metadata"]["deletionTimestamp"] = "2026-11-21T11:59:00Z"
        state = self.state(gpu="DELETE_IN_PROGRESS")
        small = dataclasses.replace(state.groups[-1], name="small")
        verdict = twice(look, dataclasses.replace(state, groups=(*state.groups, small)))
        self.assertEqual(
            [True, False], [row(verdict, name).is_deleted for name in ("small", "gpu")]
        )
        self.assertIn("gpu is being deleted", row(verdict, "gpu").reason)

    def test_a_group_that_was_refused_keeps_nobody_waiting(self):
        verdict = twice(self.look(), self.state(gpu="CREATE_FAILED"))
        self.assertEqual("UPDATE_COMPLETE", verdict.status)
        self.assertEqual("CREATE_FAILED", row(verdict, "gpu").status)

    def test_the_autoscaler_has_the_last_word_on_the_count(self):
        state = self.state()
        grown = builders.observed({"default-worker": 4, "gpu": 1})
        groups = tuple(
            dataclasses.replace(one, is_autoscaled=True, minimum=1, maximum=5)
            if one.name == "default-worker"
            else one
            for one in state.groups
        )
        verdict = twice(grown, dataclasses.replace(state, groups=groups))
        self.assertEqual("UPDATE_COMPLETE", verdict.status)
        self.assertEqual(4, row(verdict, "default-worker").node_count)
        counted = tuple(
            dataclasses.replace(one, count=4) if one.is_autoscaled else one for one in groups
        )
        again = status.evaluate(grown, dataclasses.replace(state, groups=counted), NOW)
        self.assertEqual(verdict.fingerprint, again.fingerprint)
        narrow = tuple(
            dataclasses.replace(one, maximum=3) if one.is_autoscaled else one for one in groups
        )
        verdict = twice(grown, dataclasses.replace(state, groups=narrow))
        self.assertIn("instead of 1 to 3", verdict.reason)

    def test_nothing_is_changed_in_what_was_read(self):
        observed = builders.observed()
        before = copy.deepcopy(observed)
        twice(observed, builders.state())
        self.assertEqual(before, observed)

    def test_a_failed_group_keeps_its_words(self):
        state = self.state()
        groups = tuple(
            dataclasses.replace(one, status="UPDATE_FAILED", reason="quota: no cores")
            for one in state.groups
        )
        broken = self.look()
        verdict = twice(broken, dataclasses.replace(state, groups=groups))
        self.assertEqual("quota: no cores", row(verdict, "gpu").reason)
        self.assertIsNone(row(verdict, "default-worker").reason)

    def test_a_missed_deadline_tells_todays_news(self):
        state = builders.state(
            "UPDATE_FAILED",
            deadline=None,
            status_reason="timeout: not finished within 60 minutes; waiting: old",
        )
        gone = dataclasses.replace(builders.observed(), cluster=Missing.NOT_FOUND)
        reason = twice(gone, state).reason
        self.assertTrue(
            reason.startswith("timeout: not finished within 60 minutes; waiting: the Clu")
        )
