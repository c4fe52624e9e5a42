# SPDX-License-Identifier: Apache-2.0
"""Which looks count: two that agree, none older than what was written, of every release."""

from __future__ import annotations

from collections.abc import Callable
import copy
import dataclasses
import datetime

import testtools

from magnum.drivers.k8s_capi_helm import model, status
from magnum.drivers.k8s_capi_helm.status.objects import generations
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.builders import Json, NOW
from magnum.tests.unit.drivers.k8s_capi_helm.status_case import after, row, twice, VERSIONS

Change = Callable[[model.Observed], object]


class GroupLooksTest(testtools.TestCase):
    """A nodegroup's row needs two looks as its cluster does, and does not wait for the others."""

    def state(self, gpu: str) -> model.MagnumState:
        state = builders.state("UPDATE_IN_PROGRESS", {"default-worker": 2, "gpu": 1})
        groups = tuple(
            dataclasses.replace(one, status=gpu if one.name == "gpu" else "UPDATE_COMPLETE")
            for one in state.groups
        )
        return dataclasses.replace(state, groups=groups)

    def test_one_look_is_not_enough(self):
        for verb in ("CREATE", "UPDATE"):
            for stage in ("IN_PROGRESS", "FAILED"):
                state = self.state(f"{verb}_{stage}")
                look = builders.observed({"default-worker": 2, "gpu": 1})
                builders.say(look.cluster, "Available", "False")
                first = status.evaluate(look, state, NOW)
                self.assertEqual(f"{verb}_{stage}", row(first, "gpu").status)
                second = status.evaluate(look, after(first, state), NOW)
                self.assertEqual(f"{verb}_COMPLETE", row(second, "gpu").status)
                self.assertEqual("UPDATE_IN_PROGRESS", second.status)

    def test_a_row_goes_after_two_looks(self):
        state, look = self.state("DELETE_IN_PROGRESS"), builders.observed({"default-worker": 2})
        first = status.evaluate(look, state, NOW)
        self.assertFalse(row(first, "gpu").is_deleted)
        self.assertIn("confirming", row(first, "gpu").reason)
        self.assertTrue(row(status.evaluate(look, after(first, state), NOW), "gpu").is_deleted)

    def test_looks_that_do_not_agree(self):
        state = self.state("CREATE_IN_PROGRESS")
        look = builders.observed({"default-worker": 2, "gpu": 1})
        known = after(status.evaluate(look, state, NOW), state)
        gpu = known.groups[-1]
        other = copy.deepcopy(look)
        other.machines[-1]["metadata"]["uid"] = "another"
        later = dataclasses.replace(known, started_at=NOW)
        more = dataclasses.replace(known, groups=(*known.groups[:-1], _counted(gpu, 2)))
        grown = builders.observed({"default-worker": 2, "gpu": 2})
        for seen, wanted in ((other, known), (look, later), (grown, more)):
            verdict = status.evaluate(seen, wanted, NOW)
            self.assertEqual("CREATE_IN_PROGRESS", row(verdict, "gpu").status)
            self.assertNotEqual("", row(verdict, "gpu").fingerprint)

    def test_a_cluster_is_never_complete_before_its_groups(self):
        state = self.state("CREATE_IN_PROGRESS")
        look = builders.observed({"default-worker": 2, "gpu": 1})
        first = status.evaluate(look, state, NOW)
        # Also where an older conductor has kept the look of the whole only.
        second = status.evaluate(
            look, dataclasses.replace(state, ready_fingerprint=first.fingerprint), NOW
        )
        self.assertEqual("UPDATE_COMPLETE", second.status)
        self.assertEqual("CREATE_COMPLETE", row(second, "gpu").status)


class WrittenTest(testtools.TestCase):
    """A look that is older than what Helm has written shows the cluster as it was, in place."""

    def test_an_older_look(self):
        look = builders.observed()
        for kind in ("cluster", "infrastructure", "control_plane", "machine_deployments", "addons"):
            newer = copy.deepcopy(look)
            found = getattr(newer, kind)
            thing = found[0] if isinstance(found, tuple) else found
            thing["metadata"]["generation"] += 1
            state = builders.state(applied_generations=generations.applied_generations(newer))
            verdict = twice(look, state)
            self.assertEqual(("CREATE_IN_PROGRESS", ""), (verdict.status, verdict.fingerprint))
            self.assertIn(f"the change of {thing['kind']} {_name(thing)} is not", verdict.reason)
            self.assertEqual({""}, {one.fingerprint for one in verdict.groups})

    def test_a_look_that_is_as_new_or_newer(self):
        look = builders.observed()
        before = generations.applied_generations(look)
        self.assertEqual({2}, set(before.values()))
        older = dict.fromkeys(before, 1)
        anew = {"uid-of-an-object-that-was-replaced": 7}
        for written in ({}, before, older, anew):
            self.assertEqual(
                "CREATE_COMPLETE", twice(look, builders.state(applied_generations=written)).status
            )

    def test_what_could_not_be_read_is_not_written_down(self):
        lost = dataclasses.replace(
            builders.observed(),
            cluster=model.Missing.UNREADABLE,
            machine_deployments=model.Missing.UNREADABLE,
        )
        kinds = {uid.split("-")[1] for uid in generations.applied_generations(lost)}
        self.assertNotIn("clusters", kinds)
        self.assertIn("kubeadmcontrolplanes", kinds)


class LeftServerTest(testtools.TestCase):
    def test_a_server_of_a_machine_that_is_gone(self):
        look = builders.observed()
        left = builders.server("left")
        seen = dataclasses.replace(look, servers=(*look.servers, left))
        owner = {"kind": "OpenStackMachine", "name": "left"}
        for owners, complete in (([owner], False), ([{"kind": "OpenStackCluster"}], True)):
            left["metadata"]["ownerReferences"] = owners
            verdict = twice(seen, builders.state())
            self.assertEqual(complete, verdict.status == "CREATE_COMPLETE", owners)
        left["metadata"]["ownerReferences"] = [owner]
        self.assertIn("server left of a deleted machine", twice(seen, builders.state()).reason)


class ReleasesTest(testtools.TestCase):
    """What the releases of Cluster API and of its OpenStack provider do not have."""

    def complete(self, change: Change, version: str) -> model.Verdict:
        look = builders.observed(version=version)
        change(look)
        return twice(look, builders.state())

    def test_cluster_api_1_9_has_no_rolling_out(self):
        def older(said: str) -> Change:
            def change(look: model.Observed) -> None:
                _forget(look.control_plane, "RollingOut")
                for one in look.machine_deployments:
                    _forget(one, "RollingOut")
                if said:
                    builders.say(look.control_plane, "MachinesUpToDate", said)

            return change

        for said, status_word in (("True", "CREATE_COMPLETE"), ("False", "CREATE_IN_PROGRESS")):
            self.assertEqual(status_word, self.complete(older(said), "v1beta1").status)
        self.assertIn("MachinesUpToDate", self.complete(older(""), "v1beta1").reason)

    def test_openstack_provider_without_conditions(self):
        # 0.12 and 0.13 say ready, 0.14 says it in conditions too, 0.15 only in initialization.
        def conditionless(look: model.Observed) -> None:
            look.infrastructure["status"] = {"ready": True}

        def newest(look: model.Observed) -> None:
            del look.infrastructure["status"]["ready"]
            look.infrastructure["apiVersion"] = "infrastructure.cluster.x-k8s.io/v1beta2"

        def nothing(look: model.Observed) -> None:
            look.infrastructure["status"] = {}

        for version in VERSIONS:
            for change in (conditionless, newest, lambda _: None):
                verdict = self.complete(change, version)
                self.assertEqual("CREATE_COMPLETE", verdict.status, verdict.reason)
            self.assertEqual("CREATE_IN_PROGRESS", self.complete(nothing, version).status)


class SinceTest(testtools.TestCase):
    """What is waited for says since when."""

    def test_the_operation_is_the_last_resort(self):
        state = builders.state(is_applied=False)
        reason = status.evaluate(builders.observed(), state, NOW).reason
        self.assertTrue(
            reason.endswith("to the management cluster yet, since 2026-11-21 11:50 UTC"), reason
        )
        nobody = dataclasses.replace(state, started_at=None)
        self.assertNotIn("since", status.evaluate(builders.observed(), nobody, NOW).reason)

    def test_an_earlier_day_has_its_date(self):
        state = builders.state(is_applied=False, started_at=NOW - datetime.timedelta(days=1))
        reason = status.evaluate(builders.observed(), state, NOW).reason
        self.assertTrue(reason.endswith(", since 2026-11-20 12:00 UTC"), reason)

    def test_it_does_not_belong_to_what_is_to_be_done(self):
        sentences = "The management cluster does not answer. If this persists, ask the operator."
        state = builders.state(is_applied=False, waiting_reason=sentences)
        self.assertEqual(
            "waiting: The management cluster does not answer. If this persists, ask the operator "
            "(since 2026-11-21 11:50 UTC)",
            status.evaluate(builders.observed(), state, NOW).reason,
        )

    def test_it_is_never_cut_off(self):
        state = builders.state(is_applied=False, waiting_reason="very long " * 100)
        reason = status.evaluate(builders.observed(), state, NOW).reason
        self.assertTrue(reason.endswith("..., since 2026-11-21 11:50 UTC"), reason)
        self.assertLessEqual(len(reason), 250)


def _counted(group: model.GroupState, count: int) -> model.GroupState:
    return dataclasses.replace(group, count=count)


def _name(thing: Json) -> str:
    return str(thing["metadata"]["name"])


def _forget(thing: Json, kind: str) -> None:
    holder = thing["status"].get("v1beta2", thing["status"])
    holder["conditions"] = [one for one in holder["conditions"] if one["type"] != kind]
