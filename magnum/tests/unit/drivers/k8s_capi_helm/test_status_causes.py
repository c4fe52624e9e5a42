# SPDX-License-Identifier: Apache-2.0
"""Causes: whose they are, how long they are told, and how the line reads."""

from __future__ import annotations

import copy
import dataclasses
import datetime

import testtools

from magnum.drivers.k8s_capi_helm import model, status
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.builders import NOW
from magnum.tests.unit.drivers.k8s_capi_helm.test_status_reasons import building, QUOTA, reason

GROUP = "default-worker"
#: What a proxy answers in place of an OpenStack service.
PAGE = (
    "Failed to reconcile network: Expected HTTP response code [201] when accessing [POST "
    "https://neutron.internal.example.net:9696/v2.0/networks], but got 503 instead: "
    "<html><head><title>503 Service Unavailable</title></head><body><h1>503 Service "
    "Unavailable</h1>No server is available to handle this request.</body></html>"
)


def over_quota() -> model.Observed:
    """Two workers are asked for, and Nova refuses the second one."""
    observed = building()
    server = observed.servers[-1]
    builders.say(server, "InstanceReady", "False", QUOTA, "InstanceCreateFailed")
    del server["status"]["instanceID"]
    return observed


def deleted(thing: builders.Json) -> builders.Json:
    thing["metadata"]["deletionTimestamp"] = "2026-11-21T11:59:30Z"
    return thing


class TestLine(testtools.TestCase):
    """How sentences of others stand in a line."""

    def test_a_full_stop_does_not_stand_before_the_time(self) -> None:
        observed = building()
        machine = observed.machines[-1]
        machine["status"]["nodeRef"] = {"name": "node-1"}
        builders.say(machine, "InfrastructureReady", "True")
        fresh = {"lastTransitionTime": "2026-11-21T11:58:00Z"}
        builders.say(machine, "InfrastructureReady", "True", **fresh)
        words = "* Node.Ready: Kubelet stopped posting node status."
        builders.say(machine, "NodeHealthy", "False", words, **fresh)
        self.assertTrue(
            reason(observed).endswith(
                "Kubelet stopped posting node status, since 2026-11-21 11:58 UTC"
            ),
            reason(observed),
        )

    def test_a_message_that_only_names_a_condition_has_no_colon(self) -> None:
        for message, words in (
            ("* NodeHealthy:", "NodeHealthy"),
            ("* NodeHealthy:\n  * Node.Ready: no network", "NodeHealthy: Node.Ready: no network"),
        ):
            observed = builders.observed()
            builders.say(observed.machines[-1], "Ready", "False", message)
            name = builders.observed().machines[-1]["status"]["nodeRef"]["name"]
            verdict = status.evaluate(observed, builders.state(), NOW)
            self.assertIn(f"m1 is not ready: {words}, since", str(verdict.reason))
            self.assertEqual(f"{GROUP}: {name}: {words}", verdict.health_reason["nodegroup"])

    def test_a_page_of_a_proxy_is_told_without_markup_and_address(self) -> None:
        observed = builders.observed()
        builders.say(observed.infrastructure, "NetworkReady", "False", PAGE, "OpenStackError")
        verdict = status.evaluate(observed, builders.state(), NOW)
        for text in (str(verdict.reason), verdict.health_reason["infrastructure"]):
            self.assertIn("Neutron answered HTTP 503: 503 Service Unavailable", text)
            for raw in ("<", "http", "9696", "example"):
                self.assertNotIn(raw, text)


class TestAddress(testtools.TestCase):
    """An API that cannot be reached, behind which nobody sees a node."""

    def test_it_is_the_networks_fault_and_no_bootstrap(self) -> None:
        observed = building()
        machine = observed.machines[-1]
        builders.say(machine, "InfrastructureReady", "True")
        builders.say(machine, "NodeHealthy", "Unknown", "Remote connection probe failed")
        self.assertTrue(reason(observed).startswith("bootstrap: machine"), reason(observed))
        builders.say(
            observed.cluster, "RemoteConnectionProbe", "False", "Remote connection probe failed"
        )
        self.assertEqual(
            "network: the Kubernetes API at https://127.64.0.10:6443 cannot be reached (check load "
            "balancer, security groups and the server's console log); "
            "1 of 2 default-worker machines are ready",
            reason(observed),
        )
        endpoint = observed.cluster["spec"].pop("controlPlaneEndpoint")
        self.assertNotIn("cannot be reached", reason(observed))
        observed.cluster["spec"]["controlPlaneEndpoint"] = endpoint
        fresh = {"lastTransitionTime": "2026-11-21T11:58:00Z"}
        builders.say(machine, "InfrastructureReady", "True", **fresh)
        self.assertTrue(reason(observed).startswith("waiting:"), reason(observed))


class TestHealthOfNewMachines(testtools.TestCase):
    """A node that never was is no fault: health says how far it is, and is not known."""

    def judged(self, observed: model.Observed) -> tuple[str, str]:
        verdict = status.evaluate(observed, builders.state("UPDATE_COMPLETE"), NOW)
        return verdict.health, verdict.health_reason["nodegroup"]

    def test_a_server_that_is_being_created(self) -> None:
        observed = building()
        builders.say(
            observed.machines[-1],
            "Ready",
            "False",
            "* InfrastructureReady: WaitingForBootstrapData\n* NodeHealthy: Waiting",
        )
        machine = f"machine {builders.RELEASE}-{GROUP}-m1"
        self.assertEqual(
            ("UNKNOWN", f"{GROUP}: the server for {machine} is being created"),
            self.judged(observed),
        )
        builders.say(observed.machines[-1], "BootstrapConfigReady", "False", "not yet")
        self.assertEqual(
            ("UNKNOWN", f"{GROUP}: {machine} waits for its bootstrap data"), self.judged(observed)
        )

    def test_one_that_cannot_be_created(self) -> None:
        health, text = self.judged(over_quota())
        self.assertEqual("UNHEALTHY", health)
        self.assertTrue(text.startswith(f"{GROUP}: Quota exceeded for cores"), text)

    def test_a_cluster_whose_control_plane_is_not_up_yet(self) -> None:
        observed = builders.observed()
        builders.say(observed.cluster, "ControlPlaneInitialized", "False")
        builders.say(observed.cluster, "Available", "False", "* ControlPlaneAvailable: not yet")
        verdict = status.evaluate(observed, builders.state(), NOW)
        self.assertEqual("UNKNOWN", verdict.health)
        told = verdict.health_reason["cluster"]
        self.assertEqual("the control plane is not initialized yet", told)


class TestNewRequest(testtools.TestCase):
    """The cause of what was asked for before is none of what is asked for now."""

    def test_until_the_request_is_applied_the_objects_say_nothing_of_it(self) -> None:
        self.assertTrue(reason(over_quota()).startswith("quota:"))
        text = reason(over_quota(), status="UPDATE_IN_PROGRESS", is_applied=False)
        self.assertEqual(
            "waiting: the request is not applied to the management cluster yet, "
            "since 2026-11-21 11:50 UTC",
            text,
        )

    def fewer(self, **state: object) -> str:
        """One worker is asked for now, and the other one is being deleted."""
        observed = over_quota()
        observed.machine_deployments[0]["spec"]["replicas"] = 1
        observed.machine_sets[0]["spec"]["replicas"] = 1
        deleted(observed.machines[-1])
        name = observed.servers[-1]["metadata"]["name"]
        told = builders.event("OpenStackServer", name, "Failedcreateserver", QUOTA)
        observed = dataclasses.replace(observed, events=(told,))
        return reason(observed, groups={GROUP: 1}, **state)

    def test_a_machine_that_a_resize_takes_away_needs_no_quota(self) -> None:
        self.assertTrue(self.fewer().startswith("waiting: "), self.fewer())

    def test_what_failed_before_the_server_was_there_is_over(self) -> None:
        observed = over_quota()
        server = observed.servers[-1]
        name = server["metadata"]["name"]
        told = builders.event("OpenStackServer", name, "Failedcreateserver", QUOTA)
        observed = dataclasses.replace(observed, events=(told,))
        builders.say(server, "InstanceReady", "False", "", "InstanceNotReady")
        self.assertTrue(reason(observed).startswith("quota:"), reason(observed))
        server["status"]["instanceID"] = "f3a1"
        self.assertTrue(reason(observed).startswith("waiting:"), reason(observed))

    def test_an_event_of_a_machine_set_that_has_its_machines_is_over(self) -> None:
        observed = building()
        owner = observed.machine_sets[0]
        told = builders.event("MachineSet", owner["metadata"]["name"], "FailedCreate", QUOTA)
        observed = dataclasses.replace(observed, events=(told,))
        self.assertTrue(reason(observed).startswith("waiting:"), reason(observed))
        owner["status"]["replicas"] = 1
        self.assertTrue(reason(observed).startswith("quota:"), reason(observed))


class TestReplaced(testtools.TestCase):
    """The cause of a machine that is replaced stays until the other one has its own."""

    def test_a_quota_that_a_machine_was_given_up_for(self) -> None:
        observed = over_quota()
        gone, server = observed.machines[-1], observed.servers[-1]
        state = builders.state("UPDATE_IN_PROGRESS")
        first = status.evaluate(observed, state, NOW)
        deleted(gone)
        deleted(server)
        self.assertTrue(reason(observed).startswith("quota:"), reason(observed))
        # The next one is there, and nothing of it is known yet.
        new = copy.deepcopy(observed.machines[-1])
        del new["metadata"]["deletionTimestamp"]
        new["metadata"]["name"] += "-new"
        new["spec"]["infrastructureRef"]["name"] += "-new"
        both = dataclasses.replace(observed, machines=(*observed.machines, new))
        texts = {one.name: one.reason for one in first.groups}
        state = dataclasses.replace(
            state,
            status_reason=first.reason,
            groups=tuple(dataclasses.replace(g, reason=texts[g.name]) for g in state.groups),
        )
        told = str(status.evaluate(both, state, NOW).reason)
        self.assertTrue(told.startswith("quota: Quota exceeded for cores"), told)


class TestClock(testtools.TestCase):
    """A conductor's clock that is ahead makes nothing last longer."""

    def test_a_server_that_was_just_made_has_not_lost_its_image(self) -> None:
        observed = building()
        observed.servers[-1]["status"] = {}
        observed.servers[-1]["metadata"]["creationTimestamp"] = "2026-11-21T11:59:55Z"
        for ahead in (0, 30, 600):
            now = NOW + datetime.timedelta(seconds=ahead)
            look = dataclasses.replace(observed, at=now)
            verdict = status.evaluate(look, builders.state(), now)
            self.assertTrue(str(verdict.reason).startswith("waiting:"), verdict.reason)
