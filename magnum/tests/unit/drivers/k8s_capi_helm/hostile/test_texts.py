# SPDX-License-Identifier: Apache-2.0
"""Texts: of conditions, events, faults, webhooks and Helm, which end in what a tenant reads."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from hypothesis import strategies as st

from magnum.drivers.k8s_capi_helm import errors, model, status
from magnum.drivers.k8s_capi_helm.cloud.preflight import message
from magnum.drivers.k8s_capi_helm.helm import failures
from magnum.drivers.k8s_capi_helm.status.deletion import order as deletion_order
from magnum.drivers.k8s_capi_helm.status.objects import workload_addons
from magnum.drivers.k8s_capi_helm.status.texts import issue, messages
from magnum.tests.unit.drivers.k8s_capi_helm import builders, hostile

NOW = builders.NOW
#: What Magnum's column of a status can say.
STATUSES = {
    f"{verb}_{stage}"
    for verb in ("CREATE", "UPDATE", "DELETE")
    for stage in ("IN_PROGRESS", "COMPLETE", "FAILED")
}
HEALTH = {"HEALTHY", "UNHEALTHY", "UNKNOWN"}
KINDS = ("cluster", "infrastructure", "control_plane", "machine_sets", "machines", "servers")
#: Texts in the envelopes of services and controllers.
wrapped = st.one_of(
    hostile.texts,
    st.builds(
        '{} but got 403 instead: {{"forbidden": {{"message": "{}"'.format,
        hostile.texts,
        hostile.texts,
    ),
    st.builds("* {}:\n  * {}\n* {}".format, hostile.texts, hostile.texts, hostile.texts),
    st.builds(
        "Exceeded max scheduling attempts 3 for instance a Last exception: {}".format, hostile.texts
    ),
    st.builds(
        'MachineSet version (1) and ControlPlane version ({}) x "a" preflight'.format, hostile.texts
    ),
    st.sampled_from(("{" * 900, '{"message":' * 900, '{"a":' * 300 + "1" + "}" * 300, "* " * 2000)),
)


class TextCase(hostile.HostileCase):
    def assert_one_line(self, text: str | None, most: int = issue.REASON_LIMIT) -> None:
        self.assertLessEqual(len(text or ""), most)
        self.assertEqual(1, len((text or "-").splitlines() or [1]), text)

    def assert_verdict(self, verdict: model.Verdict) -> None:
        self.assertIn(verdict.status, STATUSES)
        self.assertIn(verdict.health, HEALTH)
        self.assert_one_line(verdict.reason)
        for one in verdict.groups:
            self.assertIn(one.status, STATUSES)
            self.assert_one_line(one.reason)
        for key, text in verdict.health_reason.items():
            self.assertIsInstance(text, str)
            self.assert_one_line(text)
            self.assertIn(
                key,
                (
                    "cluster",
                    "infrastructure",
                    "controlplane",
                    "nodegroup",
                    "api",
                    "addons",
                    "inside",
                    "credential",
                    "certificates",
                    "autoscaler",
                    "management",
                ),
            )


class TestReasons(TextCase):
    """What controllers and services say becomes a reason."""

    @hostile.given(
        st.sampled_from(KINDS),
        st.sampled_from(
            (
                "InfrastructureReady",
                "InstanceReady",
                "ScalingUp",
                "NodeHealthy",
                "HealthCheckSucceeded",
                "BootstrapConfigReady",
                "UpToDate",
                "Deleting",
                "Remediating",
                "NetworkReady",
                "RouterReady",
                "Paused",
            )
        ),
        st.sampled_from(("True", "False", "Unknown")),
        wrapped,
        hostile.texts,
        st.sampled_from(
            (
                "CREATE_IN_PROGRESS",
                "UPDATE_IN_PROGRESS",
                "DELETE_IN_PROGRESS",
                "UPDATE_FAILED",
                "CREATE_COMPLETE",
            )
        ),
        examples=6,
    )
    def test_a_condition(
        self, kind: str, condition: str, state: str, text: str, reason: str, row: str
    ) -> None:
        look = builders.observed({"default-worker": 1}, 1)
        found = getattr(look, kind)
        one = found if isinstance(found, dict) else found[0]
        builders.say(one, condition, state, text, reason)
        self.assert_verdict(
            status.evaluate(look, builders.state(row, {"default-worker": 1}, 1), NOW)
        )

    @hostile.given(
        wrapped,
        hostile.texts,
        hostile.texts,
        st.sampled_from(("event", "nova", "addon", "failure")),
        examples=4,
    )
    def test_an_event_a_fault_an_addon(self, text: str, reason: str, name: str, what: str) -> None:
        look = builders.observed({"default-worker": 1}, 1)
        server = look.servers[-1]
        if what == "event":
            builders.say(server, "InstanceReady", "False", "", "InstanceNotReady")
            event = builders.event(
                "OpenStackServer", server["metadata"]["name"], f"Failed{reason}", text
            )
            look = dataclasses.replace(look, events=(event,))
        elif what == "nova":
            server["status"]["instanceState"] = "ERROR"
            builders.say(server, "InstanceReady", "False", "", "InstanceNotReady")
            look = dataclasses.replace(
                look, server_faults={f"id-{server['metadata']['name']}": text}
            )
        elif what == "addon":
            look.addons[0]["status"] = {"phase": "Failed", "failureMessage": text}
            look.addons[0]["metadata"]["labels"]["capi.stackhpc.com/component"] = name
        else:
            look.infrastructure["status"].update(ready=False, failureMessage=text)
        for row in ("CREATE_IN_PROGRESS", "DELETE_IN_PROGRESS"):
            self.assert_verdict(
                status.evaluate(look, builders.state(row, {"default-worker": 1}, 1), NOW)
            )

    @hostile.given(wrapped, examples=4)
    def test_sentences_that_are_cut(self, text: str) -> None:
        for cut in (messages.of_nova, messages.of_neutron, messages.of_kubelet, messages.of_skew):
            self.assertIsInstance(cut(text), str)
        self.assertIsInstance(issue.unwrap_message(text), str)
        self.assertIsInstance(issue.cause_of(text), errors.Cause)
        self.assert_one_line(issue.shorten_reason(text))
        self.assert_one_line(issue.joined_reasons(text, text))
        self.assert_one_line(issue.Issue(text).line())


class TestHelm(TextCase):
    """What helm and webhooks say becomes an error with a sentence."""

    FAMILIES = (
        "Error: UPGRADE FAILED: {}",
        'Error: admission webhook "x" denied the request: {}',
        'Error: Machine.cluster.x-k8s.io "{}" is invalid: {}',
        "Error: values don't meet the specifications of the schema(s) in the following chart(s):\n"
        "openstack-cluster:\n- at '/{}': {}",
        "Error: execution error at (a.yaml:1:1): {}",
        'Error: no matches for kind "{}"',
        'Error: namespaces "{}" not found',
        'Error: Internal error occurred: failed calling webhook "{}": x',
        "Error: template: {}",
        "Error: {} exists and cannot be imported into the current release",
        "{}",
    )

    @hostile.given(st.sampled_from(FAMILIES), wrapped, examples=6)
    def test_stderr(self, family: str, text: str) -> None:
        error = failures.error_of(family.replace("{}", text), "detail")
        self.assertIsInstance(error, errors.DriverError)
        self.assert_sentence(error)
        self.assert_one_line(str(error), 700)
        acting = [one for one in str(error) if ord(one) < 32 or 127 <= ord(one) < 160]
        self.assertEqual([], acting)

    @hostile.given(st.lists(wrapped, min_size=2, max_size=40), examples=2)
    def test_many_problems_are_told_in_a_bounded_text(self, texts: list[str]) -> None:
        quoted = [f"Image {message.in_quotes(one)} does not exist." for one in texts]
        error = self.assertRaises(errors.DoesNotFit, message.refuse, quoted)
        self.assert_one_line(str(error), message.LIMIT + 200)


class TestInside(TextCase):
    """What the addon provider has from a tenant's cluster."""

    @hostile.given(
        st.lists(
            st.fixed_dictionaries(
                {
                    "apiVersion": st.sampled_from(("apps/v1", "v1", "x")) | hostile.junk,
                    "kind": st.sampled_from(("Deployment", "Secret")) | hostile.junk,
                    "name": hostile.spoiled | hostile.junk,
                    "namespace": hostile.texts | hostile.junk,
                }
            )
            | hostile.junk,
            max_size=5,
        ),
        hostile.texts,
        examples=4,
    )
    def test_resources_of_an_addon(self, listed: Any, target: Any) -> None:
        look = builders.observed()
        look.addons[0]["status"]["resources"] = listed
        look.addons[0]["spec"]["targetNamespace"] = target
        from magnum.drivers.k8s_capi_helm.reconcile.process import addon_check

        for thing in workload_addons.expected(look.addons):
            path = addon_check._path(thing)
            self.assertRegex(
                path, r"\A/(api/v1|apis/apps/v1)/namespaces/[-a-z0-9.]+/[a-z]+/[-a-z0-9.]+\Z"
            )
        things = tuple(workload_addons.expected(look.addons))
        found = dataclasses.replace(look, inside=model.AddonInventory(missing=things))
        self.assert_verdict(status.evaluate(found, builders.state("CREATE_COMPLETE"), NOW))


class TestDeletion(TextCase):
    """A deletion's reason."""

    @hostile.given(st.sampled_from(KINDS), wrapped, st.lists(hostile.texts, max_size=3), examples=3)
    def test_what_is_waited_for(self, kind: str, text: str, finalizers: list[str]) -> None:
        look = builders.observed({"default-worker": 1}, 1)
        found = getattr(look, kind)
        one = found if isinstance(found, dict) else found[0]
        at = (NOW - datetime.timedelta(minutes=3)).isoformat()
        one["metadata"].update(deletionTimestamp=at, finalizers=finalizers)
        builders.say(one, "Deleting", "True", text, "DeletionInProgress")
        step = deletion_order.next_step(
            look, proof=True, release_present=True, secrets_present=True
        )
        self.assertNotIn(
            step.action, (deletion_order.DeletionAction.DONE, deletion_order.DeletionAction.BURY)
        )
        self.assert_verdict(
            status.evaluate(
                look, builders.state("DELETE_IN_PROGRESS", {"default-worker": 1}, 1), NOW
            )
        )
