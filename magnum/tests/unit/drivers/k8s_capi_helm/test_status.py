# SPDX-License-Identifier: Apache-2.0
"""The judge, rule by rule: a cluster that is in place, and one thing changed about it."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import testtools

from magnum.drivers.k8s_capi_helm import model, status
from magnum.drivers.k8s_capi_helm.model import Missing
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.builders import NOW
from magnum.tests.unit.drivers.k8s_capi_helm.status_case import row, twice, VERSIONS


class CompleteTest(testtools.TestCase):
    """What is in place is COMPLETE, at the second look."""

    def test_create_and_update_at_both_versions(self):
        for version in VERSIONS:
            for verb in ("CREATE", "UPDATE"):
                state = builders.state(f"{verb}_IN_PROGRESS")
                first = status.evaluate(builders.observed(version=version), state, NOW)
                self.assertEqual(f"{verb}_IN_PROGRESS", first.status, version)
                self.assertIn("confirming", first.reason)
                second = twice(builders.observed(version=version), state)
                self.assertEqual((f"{verb}_COMPLETE", None), (second.status, second.reason))
                self.assertEqual({f"{verb}_COMPLETE"}, {one.status for one in second.groups})

    def test_a_change_between_the_looks_needs_a_third(self):
        state = builders.state()
        first = status.evaluate(builders.observed(), state, NOW)
        later = builders.observed()
        later.machines[0]["metadata"]["uid"] = "another"
        second = status.evaluate(
            later, dataclasses.replace(state, ready_fingerprint=first.fingerprint), NOW
        )
        self.assertEqual("CREATE_IN_PROGRESS", second.status)
        self.assertNotEqual(first.fingerprint, second.fingerprint)

    def test_a_look_of_an_earlier_operation_does_not_count(self):
        first = status.evaluate(builders.observed(), builders.state(), NOW)
        later = builders.state(
            "UPDATE_IN_PROGRESS", ready_fingerprint=first.fingerprint, started_at=NOW
        )
        self.assertEqual(
            "UPDATE_IN_PROGRESS", status.evaluate(builders.observed(), later, NOW).status
        )

    def test_failed_heals(self):
        for verb in ("CREATE", "UPDATE"):
            state = builders.state(
                f"{verb}_FAILED",
                status_reason="timeout: not done",
                deadline=NOW - datetime.timedelta(hours=1),
            )
            verdict = twice(builders.observed(), state)
            self.assertEqual((f"{verb}_COMPLETE", None), (verdict.status, verdict.reason))
            self.assertEqual(
                {(f"{verb}_COMPLETE", None)}, {(one.status, one.reason) for one in verdict.groups}
            )

    def test_no_group_and_no_worker_is_fine_too(self):
        for groups in ({}, {"default-worker": 0}):
            verdict = twice(builders.observed(groups), builders.state(groups=groups))
            self.assertEqual("CREATE_COMPLETE", verdict.status, groups)

    def test_settled_states_stay(self):
        for word in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            verdict = twice(builders.observed(), builders.state(word, status_reason="old"))
            self.assertEqual((word, None), (verdict.status, verdict.reason))

    def test_what_a_verdict_carries(self):
        verdict = twice(builders.observed(), builders.state())
        self.assertEqual("https://127.64.0.10:6443", verdict.api_address)
        self.assertEqual("v1.34.4", verdict.coe_version)
        self.assertEqual(3, len(row(verdict, "default-master").addresses))
        self.assertEqual(2, len(row(verdict, "default-worker").addresses))
        self.assertIsNone(row(verdict, "default-worker").node_count)


class NotCompleteTest(testtools.TestCase):
    """One thing short of everything is not COMPLETE, and the reason says which."""

    def check(self, wanted: str, observed: model.Observed | None = None, **state: Any) -> None:
        verdict = twice(observed or builders.observed(), builders.state(**state))
        self.assertEqual("CREATE_IN_PROGRESS", verdict.status, wanted)
        self.assertEqual("", verdict.fingerprint)
        self.assertIn(wanted, verdict.reason)

    def changed(self, kind: str, path: str, value: Any, index: int = -1) -> model.Observed:
        """A complete look with one value of one object changed; "" takes the last key away."""
        observed = builders.observed()
        found = getattr(observed, kind)
        target = found[index] if isinstance(found, tuple) else found
        *way, last = path.split(".")
        for step in way:
            target = target[step]
        if value is None:
            del target[last]
        else:
            target[last] = value
        return observed

    def test_not_applied(self):
        self.check("not applied to the management cluster", is_applied=False)
        self.check(
            "another worker is at it", is_applied=False, waiting_reason="another worker is at it"
        )

    def test_generations_not_observed(self):
        for kind, wanted in (
            ("cluster", "change of the Cluster"),
            ("control_plane", "control plane"),
            (
                "machine_deployments",
                "Cluster API has not processed the change of nodegroup default-worker",
            ),
            ("machine_sets", "not all machines of nodegroup default-worker are available"),
            ("machines", "1 of 2 default-worker machines"),
        ):
            self.check(wanted, self.changed(kind, "metadata.generation", 3))

    def test_wanted_counts_and_version(self):
        self.check("default-worker is set to 2 machines instead of 3", groups={"default-worker": 3})
        self.check("control plane is not set to 1 machines yet", masters=1)
        self.check("not set to version 1.35.0 yet", kubernetes_version="1.35.0")

    def test_machines(self):
        path = "spec.version"
        self.check("ready at version 1.34.4", self.changed("machines", path, "v1.33.0"))
        gone = self.changed("machines", "metadata.deletionTimestamp", "2026-11-21T11:59:00Z")
        self.check("1 of 2 default-worker machines are ready; machine", gone)
        self.check("1 of 2", self.changed("machines", "status.nodeRef", None))
        self.check("2 of 3 control plane", self.changed("machines", "spec.version", "v1.3", 0))

    def test_conditions_that_do_not_say_of_which_generation_they_are(self):
        for kind, wanted in (
            ("machines", "1 of 2 default-worker machines"),
            ("control_plane", "has not processed the change of the control plane"),
        ):
            observed = self.changed(kind, "metadata.generation", 3)
            found = getattr(observed, kind)
            for said in (found if kind == "control_plane" else found[-1])["status"]["conditions"]:
                del said["observedGeneration"]
            self.check(wanted, observed)

    def test_an_empty_group_of_another_version(self):
        observed = builders.observed({"default-worker": 0})
        for thing in (*observed.machine_deployments, *observed.machine_sets):
            thing["spec"]["template"]["spec"]["version"] = "v1.33.0"
        groups = {"default-worker": 0}
        self.check(
            "nodegroup default-worker is not set to version 1.34.4 yet", observed, groups=groups
        )

    def test_what_is_left_of_a_group_without_a_row(self):
        whole = builders.observed({"default-worker": 2, "gone": 1})
        whole.machine_deployments[1]["metadata"]["deletionTimestamp"] = "2026-11-21T11:59:00Z"
        self.check("gone is being deleted", whole)
        left = dataclasses.replace(whole, machine_deployments=whole.machine_deployments[:1])
        self.check("of a deleted nodegroup still exists", left)
        left = dataclasses.replace(left, machines=left.machines[:-1])
        self.check("of a deleted nodegroup still exists", left)

    def test_an_old_machine_beside_enough_new_ones(self):
        observed = builders.observed()
        old = builders.machine("default-worker", 7)
        old["metadata"]["deletionTimestamp"] = "2026-11-21T11:59:00Z"
        observed = dataclasses.replace(observed, machines=(*observed.machines, old))
        self.check("an old default-worker machine still exists", observed)

    def test_the_newest_machine_set_counts(self):
        observed = builders.observed()
        newer = builders.machine_set("default-worker", 2, revision=2)
        newer["spec"]["template"]["spec"]["bootstrap"]["configRef"]["name"] = "other"
        observed = dataclasses.replace(observed, machine_sets=(*observed.machine_sets, newer))
        self.check("still have its old template", observed)

    def test_the_race_after_a_template_change(self):
        # Generation observed, all counters equal, RollingOut False: still of the template before.
        observed = self.changed(
            "machine_deployments", "spec.template.spec.infrastructureRef.name", "new"
        )
        self.check("still have its old template", observed)

    def test_an_old_machine_set_with_replicas(self):
        observed = builders.observed()
        older = builders.machine_set("default-worker", 1, revision=0)
        observed = dataclasses.replace(observed, machine_sets=(*observed.machine_sets, older))
        self.check("old machines of nodegroup default-worker", observed)

    def test_control_plane_conditions_and_counters(self):
        for kind, state in (
            ("Available", "False"),
            ("RollingOut", "True"),
            ("ScalingDown", "True"),
        ):
            observed = builders.observed()
            builders.say(observed.control_plane, kind, state)
            self.check(f"not stable yet ({kind})", observed)
        self.check(
            "not all control plane machines",
            self.changed("control_plane", "status.upToDateReplicas", 2),
        )

    def test_infrastructure(self):
        for path in ("status.ready", "status.initialization"):
            observed = self.changed("infrastructure", path, None)
            self.assertEqual("CREATE_COMPLETE", twice(observed, builders.state()).status)
        observed = self.changed("infrastructure", "status", {})
        self.check("network and the API load balancer are being created", observed)
        self.check(
            "API endpoint",
            self.changed("cluster", "spec.controlPlaneEndpoint", {"host": "", "port": 0}),
        )

    def test_paused(self):
        observed = builders.observed()
        observed.cluster["spec"]["paused"] = True
        self.check("paused", observed)

    def test_core_addons(self):
        everything = builders.core_addons()
        for left_out in range(len(everything)):
            rest = tuple(one for i, one in enumerate(everything) if i != left_out)
            self.check("addon", dataclasses.replace(builders.observed(), addons=rest))
        edited = self.changed("addons", "spec.values", {"new": True})
        self.check("3 of 4 core addons are deployed, waiting for csi-cinder", edited)
        busy = self.changed(
            "addons",
            "metadata.annotations",
            {
                **everything[-1]["metadata"]["annotations"],
                "addons.stackhpc.com/handle_addon_updated.x": "{}",
            },
        )
        self.check("waiting for csi-cinder", busy)
        failed = self.changed(
            "addons", "status", {"phase": "Failed", "failureMessage": "chart not found"}
        )
        self.check("addon: csi-cinder: chart not found", failed)

    def test_an_addon_that_is_switched_off_is_not_waited_for(self):
        observed = dataclasses.replace(builders.observed(), addons=builders.core_addons()[:-1])
        state = builders.state(without_addons=frozenset({"csi-cinder"}))
        self.assertEqual("CREATE_COMPLETE", twice(observed, state).status)

    def test_an_optional_addon_degrades_health_only(self):
        failed = builders.addon("monitoring")
        failed["status"]["phase"] = "Failed"
        observed = builders.observed()
        observed = dataclasses.replace(observed, addons=(*observed.addons, failed))
        verdict = twice(observed, builders.state())
        self.assertEqual("CREATE_COMPLETE", verdict.status)
        self.assertEqual("UNHEALTHY", verdict.health)
        self.assertIn("monitoring", verdict.health_reason["addons"])

    def test_three_ways_not_to_know(self):
        for kind in ("cluster", "infrastructure", "control_plane"):
            for why in Missing:
                observed = dataclasses.replace(builders.observed(), **{kind: why})
                wanted = "cannot be read" if why is Missing.UNREADABLE else "does not exist yet"
                self.check(wanted, observed)
        for kind in ("machine_deployments", "machine_sets", "machines", "servers", "addons"):
            unreadable = dataclasses.replace(builders.observed(), **{kind: Missing.UNREADABLE})
            self.check("cannot be read", unreadable)
        old = dataclasses.replace(builders.observed(), at=NOW - datetime.timedelta(minutes=6))
        self.check("management:", old)
