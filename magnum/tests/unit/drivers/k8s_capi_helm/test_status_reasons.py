# SPDX-License-Identifier: Apache-2.0
"""Reasons: the deepest object that says why, its class in front, one bounded line."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import testtools

from magnum.drivers.k8s_capi_helm import model, status
from magnum.drivers.k8s_capi_helm.errors import Cause
from magnum.drivers.k8s_capi_helm.status.objects import addons, infrastructure
from magnum.drivers.k8s_capi_helm.status.texts import issue
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.builders import NOW

QUOTA = (
    "error creating Openstack instance: Expected HTTP response code [200 202] when accessing "
    '[POST http://nova/v2.1/servers], but got 403 instead: {"forbidden": {"code": 403, '
    '"message": "Quota exceeded for cores: Requested 4, but already used 8 of 10 cores"}}'
)
NETWORK_QUOTA = (
    "Failed to reconcile network: Expected HTTP response code [201 202] when accessing [POST "
    'http://neutron/v2.0/networks], but got 409 instead: {"NeutronError": {"type": "OverQuota", '
    '"message": "Quota exceeded for resources: [\'network\'].", "detail": ""}}'
)


#: One minute before the look.
SINCE = "2026-11-21 11:59 UTC"


def building() -> model.Observed:
    """A cluster whose last worker is being built: its server is not there yet."""
    observed = builders.observed()
    machine, server = observed.machines[-1], observed.servers[-1]
    builders.say(machine, "Ready", "False", "* InfrastructureReady: not yet")
    builders.say(machine, "InfrastructureReady", "False", "not yet")
    builders.say(machine, "NodeHealthy", "Unknown", "Waiting for OpenStackMachine")
    del machine["status"]["nodeRef"]
    server["status"].update(instanceState="BUILDING", ready=False)
    builders.say(server, "Ready", "False")
    builders.say(server, "InstanceReady", "False", reason="InstanceNotReady")
    return observed


def reason(observed: model.Observed, group: str | None = None, **state: Any) -> str:
    verdict = status.evaluate(observed, builders.state(**state), NOW)
    texts = {one.name: one.reason for one in verdict.groups}
    return str(texts[group] if group else verdict.reason)


class DeepestTest(testtools.TestCase):
    """Each fault stands on its own object, and is told from there."""

    def test_only_slow(self):
        self.assertEqual(
            "waiting: 1 of 2 default-worker machines are ready; the server for machine "
            f"{builders.RELEASE}-default-worker-m1 is being created, since 2026-11-21 11:10 UTC",
            reason(building()),
        )

    def test_nova_quota_stands_on_the_server_only(self):
        observed = building()
        builders.say(observed.servers[-1], "InstanceReady", "False", QUOTA, "InstanceCreateFailed")
        for text in (reason(observed), reason(observed, "default-worker")):
            self.assertEqual(
                "quota: Quota exceeded for cores: Requested 4, but already used 8 of 10 cores "
                f"(server {builders.RELEASE}-default-worker-m1); "
                "1 of 2 default-worker machines are ready",
                text,
            )
        verdict = status.evaluate(observed, builders.state(), NOW)
        self.assertEqual("CREATE_IN_PROGRESS", verdict.status)

    def test_another_groups_fault_is_not_a_groups_reason(self):
        observed = building()
        builders.say(observed.servers[-1], "InstanceReady", "False", QUOTA, "InstanceCreateFailed")
        builders.say(observed.control_plane, "RollingOut", "True")
        self.assertNotIn("quota", reason(observed, "default-master"))

    def test_a_server_in_error_is_told_by_nova(self):
        observed = building()
        observed.servers[-1]["status"]["instanceState"] = "ERROR"
        builders.say(observed.servers[-1], "InstanceReady", "False", "", "InstanceStateError")
        failed = status.servers_in_error(observed)
        self.assertEqual((observed.servers[-1]["status"]["instanceID"],), failed)
        self.assertIn("internal: the server is in ERROR and Nova gives no reason", reason(observed))
        told = {failed[0]: "No valid host was found. There are not enough hosts available."}
        told_by_nova = reason(dataclasses.replace(observed, server_faults=told))
        self.assertTrue(told_by_nova.startswith("capacity: No valid host was found."))

    def test_nova_gives_up_and_the_last_hypervisor_says_why(self):
        observed = building()
        server = observed.servers[-1]
        server["status"]["instanceState"] = "ERROR"
        builders.say(server, "InstanceReady", "False", "", "InstanceStateError")
        failed = server["status"]["instanceID"]
        for last, wanted in (
            (
                "Insufficient compute resources: Free memory 40.00 MB < requested 4096 MB.",
                "capacity: 3 hosts failed to start the server, the last one: Insufficient compute "
                "resources: Free memory 40.00 MB < requested 4096 MB (server "
                f"{builders.RELEASE}-default-worker-m1); 1 of 2 default-worker machines are ready",
            ),
            (
                "Failed to deploy instance: disk is full",
                "internal: 3 hosts failed to start the server, the last one: Failed to deploy "
                "instance: "
                f"disk is full (server {builders.RELEASE}-default-worker-m1); "
                "1 of 2 default-worker machines are ready",
            ),
        ):
            text = (
                "Exceeded maximum number of retries. Exceeded max scheduling attempts 3 for "
                f"instance {failed}. Last exception: {last}"
            )
            told = dataclasses.replace(observed, server_faults={failed: text})
            self.assertEqual(wanted, reason(told))

    def test_the_clusters_reason_is_about_one_group(self):
        """The fault of the group that is waited for, not of one whose name sorts before."""
        wanted = {"late": 1, "early": 1}
        observed = builders.observed(wanted)
        words = {}
        for machine, server in zip(observed.machines[-2:], observed.servers[-2:], strict=True):
            builders.say(machine, "Ready", "False", "* InfrastructureReady: not yet")
            server["status"]["instanceState"] = "ERROR"
            builders.say(server, "InstanceReady", "False", "", "InstanceStateError")
            words[server["status"]["instanceID"]] = f"No valid host was found. {machine['kind']}"
        observed = dataclasses.replace(observed, server_faults=words)
        late, early = (one["metadata"]["name"] for one in observed.servers[-2:])
        self.assertIn(early, reason(observed, "early", groups=wanted))
        told = reason(observed, groups=wanted)
        self.assertIn(late, told)
        self.assertTrue(told.endswith("; 0 of 1 late machine is ready"), told)

    def test_a_server_whose_image_is_not_found_says_nothing(self):
        observed = building()
        observed.servers[-1]["status"] = {}
        self.assertTrue(
            reason(observed).startswith("image: the image, flavor or network of server")
        )
        observed.servers[-1]["metadata"]["creationTimestamp"] = "2026-11-21T11:59:50Z"
        self.assertTrue(reason(observed).startswith("waiting:"))

    def test_network_quota_stands_on_the_openstack_cluster(self):
        observed = builders.observed()
        builders.say(observed.infrastructure, "NetworkReady", "False", NETWORK_QUOTA)
        builders.say(observed.infrastructure, "Ready", "False", "failed", "OpenStackError")
        self.assertTrue(
            reason(observed).startswith(
                "quota: Quota exceeded for resources: ['network']; the network"
            )
        )

    def test_a_silent_openstack_cluster(self):
        observed = builders.observed()
        observed.infrastructure["status"] = {}
        said = (
            "the OpenStack provider reports nothing (check network, load balancer and credential), "
            "since 2026-11-21 11:00 UTC"
        )
        self.assertTrue(reason(observed).endswith(said), reason(observed))
        # CAPO before 0.14 has no conditions, and says nothing of a network that is gone.
        unset = {"ready": False, "externalNetwork": {"id": "e"}, "network": {"id": "", "name": ""}}
        observed.infrastructure["status"] = unset
        self.assertTrue(reason(observed).endswith(said), reason(observed))
        unset["network"] = {"id": "n"}
        self.assertNotIn("reports nothing", reason(observed))

    def test_a_load_balancer_in_error(self):
        """Cluster API waits for it without a word; its name says which one the tenant deletes."""
        observed = builders.observed()
        observed.infrastructure["status"] = {}
        observed = dataclasses.replace(observed, failed_balancer="k8s-clusterapi-x-kubeapi")
        self.assertEqual(
            "network: load balancer k8s-clusterapi-x-kubeapi is in ERROR; delete it and Cluster "
            "API creates a "
            "new one; the network and the API load balancer are being created",
            reason(observed),
        )

    def test_when_octavia_is_asked(self):
        """About a load balancer that is waited for, and no other."""
        observed = builders.observed()
        self.assertFalse(infrastructure.is_balancer_awaited(observed))
        observed.infrastructure["status"] = {}
        self.assertTrue(infrastructure.is_balancer_awaited(observed))
        observed.infrastructure["metadata"]["creationTimestamp"] = "2026-11-21T11:59:50Z"
        self.assertFalse(infrastructure.is_balancer_awaited(observed))
        observed.infrastructure["metadata"]["creationTimestamp"] = "2026-11-21T11:00:00Z"
        observed.infrastructure["spec"]["apiServerLoadBalancer"] = {"enabled": False}
        self.assertFalse(infrastructure.is_balancer_awaited(observed))
        for missing in model.Missing:
            lost = dataclasses.replace(observed, infrastructure=missing)
            self.assertFalse(infrastructure.is_balancer_awaited(lost))

    def test_a_node_that_does_not_join(self):
        observed = building()
        machine = observed.machines[-1]
        builders.say(machine, "InfrastructureReady", "True")
        builders.say(machine, "NodeHealthy", "Unknown", "Waiting for a Node to exist")
        self.assertTrue(reason(observed).startswith("bootstrap: machine"), reason(observed))
        fresh = "2026-11-21T11:58:00Z"
        builders.say(machine, "InfrastructureReady", "True", lastTransitionTime=fresh)
        self.assertIn("runs, its node has not joined yet", reason(observed))
        message = "Health check failed:\n  * Node failed to report startup in 10m0s"
        builders.say(machine, "HealthCheckSucceeded", "False", message, "NodeStartupTimeout")
        self.assertIn("bootstrap: machine", reason(observed))
        self.assertIn("Health check failed: Node failed to report startup", reason(observed))

    def test_the_fault_of_a_server_that_is_replaced_stays_until_the_next_one_has_its_own(self):
        observed = building()
        owner = observed.machine_sets[0]
        gone = f"{owner['metadata']['name']}-gone1"
        before = (
            "internal: 3 hosts failed to start the server, the last one: Failed to deploy (server "
            f"{gone}); 1 of 2 default-worker machines are ready"
        )
        self.assertEqual(before, reason(observed, status_reason=before))
        going = builders.machine("default-worker", 7)
        going["metadata"].update(name=gone, deletionTimestamp="2026-11-21T11:59:00Z")
        both = dataclasses.replace(observed, machines=(*observed.machines, going))
        self.assertEqual(before, reason(both, status_reason=before))
        del going["metadata"]["deletionTimestamp"]
        self.assertNotIn(gone, reason(both, status_reason=before), "it has its own conditions")
        other = before.replace(gone, "another-set-gone1")
        self.assertIn("waiting: ", reason(observed, status_reason=other), "not of this group")
        owner["spec"]["replicas"] = 0
        self.assertIn("waiting: ", reason(observed, status_reason=before), "of an old MachineSet")

    def test_the_fault_of_a_server_that_nova_has_deleted_is_the_reported_one(self) -> None:
        observed = building()
        server = observed.servers[-1]
        server["status"]["instanceState"] = "ERROR"
        builders.say(server, "InstanceReady", "False", "", "InstanceStateError")
        self.assertIn("Nova gives no reason", reason(observed))
        before = (
            f"capacity: No valid host was found (server {server['metadata']['name']}); "
            "1 of 2 default-worker machines are ready"
        )
        self.assertEqual(before, reason(observed, status_reason=before))

    def test_a_node_that_has_not_joined_is_not_waited_for(self) -> None:
        observed = building()
        machine = observed.machines[-1]
        builders.say(machine, "InfrastructureReady", "True")
        said = "Waiting for a Node with spec.providerID openstack:///a to exist"
        builders.say(machine, "NodeHealthy", "Unknown", said)
        name = machine["metadata"]["name"]
        self.assertIn(f"bootstrap: machine {name}: its node has not joined", reason(observed))
        [controller] = [a for a in observed.addons if addons.component(a) == "ccm-openstack"]
        # Its Pods need a node: that it is not through is what follows, and no cause.
        controller["status"] = {"phase": "Installing"}
        self.assertIn(f"bootstrap: machine {name}: its node has not joined", reason(observed))
        controller["status"] = {"phase": "Failed", "failureMessage": "no image"}
        self.assertIn("addon: ccm-openstack: no image", reason(observed))

    def test_what_only_the_machine_repeats(self):
        for reason_, message, wanted in (
            ("LoadBalancerMemberError", "Reconciling member failed: gone", "network: machine"),
            ("FloatingIPError", "Quota exceeded for resources: ['floatingip']", "quota: machine"),
            ("OpenStackError", "got 401 instead: Unauthorized", "credential: machine"),
            ("WaitingForBootstrapData", "", "waiting:"),
            ("NotReady", "OpenStackMachine status.initialization.provisioned is false", "waiting:"),
        ):
            observed = building()
            machine = observed.machines[-1]
            builders.say(machine, "InfrastructureReady", "False", message, reason_)
            self.assertTrue(reason(observed).startswith(wanted), reason(observed))

    def test_bootstrap_data_that_cannot_be_made(self):
        for message, wanted in (
            ("* DataSecretAvailable: Failed to generate bootstrap data", "bootstrap: machine"),
            ("* DataSecretAvailable: Waiting for Cluster control plane", "waiting:"),
            ("KubeadmConfig status.initialization.dataSecretCreated is false", "waiting:"),
        ):
            observed = building()
            builders.say(observed.machines[-1], "BootstrapConfigReady", "False", message)
            self.assertTrue(reason(observed).startswith(wanted), reason(observed))

    def test_an_image_with_another_kubelet(self):
        observed = builders.observed()
        builders.say(
            observed.machines[-1],
            "UpToDate",
            "False",
            "* Node.status.nodeInfo.kubeletVersion v1.30.0, v1.34.4 required",
        )
        self.assertTrue(
            reason(observed).startswith(
                f"image: machine {builders.RELEASE}-default-worker-m1 runs kubelet v1.30.0 "
                "instead of v1.34.4: the image does not match its property kube_version; "
            ),
            reason(observed),
        )
        # Nobody needs another image for a machine that goes.
        observed.machines[-1]["metadata"]["deletionTimestamp"] = "2026-11-21T11:59:00Z"
        self.assertIn("waiting: 1 of 2 default-worker machines are ready", reason(observed))

    def test_another_kubelet_with_an_older_cluster_api(self):
        """Before its release 1.13 Cluster API reports the kubelet, and compares it with nothing."""
        for version, wanted in (
            (
                "v1.30.0",
                f"image: machine {builders.RELEASE}-default-worker-m1 runs kubelet v1.30.0",
            ),
            ("v1.34.4", ""),
            ("v1.34.4+vendor.1", ""),
            ("", ""),
            (None, ""),
            (7, ""),
        ):
            observed = builders.observed()
            machine = observed.machines[-1]
            machine["spec"]["version"] = "v1.34.4"
            machine["status"]["nodeInfo"] = {"kubeletVersion": version}
            found = reason(observed)
            self.assertEqual(bool(wanted), "kubelet" in found, (version, found))
            self.assertTrue(found.startswith(wanted), found)
            verdict = status.evaluate(observed, builders.state(), NOW)
            self.assertEqual(bool(wanted), not verdict.fingerprint, version)

    def test_a_group_newer_than_its_control_plane(self):
        """Cluster API 1.14 accepts it and makes no machine; only the MachineSet says why."""
        observed = builders.observed()
        observed = dataclasses.replace(observed, machines=observed.machines[:-1])
        words = (
            "* MachineSet version (1.35.0) and ControlPlane version (1.34.4) do not conform to the "
            "kubernetes version skew policy as MachineSet version is higher than ControlPlane "
            'version ("KubernetesVersionSkew" preflight check failed)\n'
            "* MachineSet version (1.35.0) and ControlPlane version (1.34.4) do not conform to "
            "kubeadm version skew policy as kubeadm only supports joining with the same "
            'major+minor version as the control plane ("KubeadmVersionSkew" preflight check failed)'
        )
        owner = observed.machine_sets[0]
        message = f"Scaling up from 1 to 2 replicas is blocked because:\n{words}"
        builders.say(owner, "ScalingUp", "True", message)
        self.assertEqual(
            f"request: {owner['metadata']['name']} creates no machines: its version is 1.35.0, and "
            "that of the control plane is 1.34.4 (KubernetesVersionSkew); "
            "1 of 2 default-worker machines are ready",
            reason(observed),
        )

    def test_a_held_back_machine_set(self):
        skew = '* MachineSet version is newer ("KubernetesVersionSkew" preflight check failed)'
        stable = '* The control plane is upgrading ("ControlPlaneIsStable" preflight check failed)'
        for why, wanted in ((skew, "request: "), (stable, "wait until the control plane")):
            observed = builders.observed()
            observed = dataclasses.replace(observed, machines=observed.machines[:-1])
            message = f"Scaling up from 1 to 2 replicas is blocked because:\n{why}"
            builders.say(observed.machine_sets[0], "ScalingUp", "True", message)
            self.assertIn(wanted, reason(observed))

    def test_events_are_the_last_witness(self):
        observed = building()
        name = observed.servers[-1]["metadata"]["name"]
        del observed.servers[-1]["status"]["instanceID"]
        told = builders.event("OpenStackServer", name, "Failedcreateport", NETWORK_QUOTA)
        with_event = dataclasses.replace(observed, events=(told,))
        self.assertTrue(reason(with_event).startswith("quota: Quota exceeded for resources"))
        old = builders.event(
            "OpenStackServer",
            name,
            "Failedcreateport",
            NETWORK_QUOTA,
            NOW - datetime.timedelta(minutes=31),
        )
        fine = builders.event(
            "OpenStackServer",
            observed.servers[0]["metadata"]["name"],
            "Failedcreateport",
            NETWORK_QUOTA,
        )
        normal = builders.event("OpenStackServer", name, "Successfulcreateserver", "Created server")
        for quiet in (old, fine, normal):
            self.assertTrue(
                reason(dataclasses.replace(observed, events=(quiet,))).startswith("waiting")
            )

    def test_a_fault_that_healed_leaves_nothing(self):
        observed = builders.observed()
        name = observed.servers[-1]["metadata"]["name"]
        told = builders.event("OpenStackServer", name, "Failedcreateserver", QUOTA)
        observed = dataclasses.replace(observed, events=(told,))
        first = status.evaluate(observed, builders.state(), NOW)
        second = status.evaluate(observed, builders.state(ready_fingerprint=first.fingerprint), NOW)
        self.assertEqual(("CREATE_COMPLETE", None), (second.status, second.reason))

    def test_stages_of_a_machine(self):
        name = f"machine {builders.RELEASE}-control-plane-m0"
        just_now = {"lastTransitionTime": "2026-11-21T11:59:00Z"}
        for kind, wanted in (
            ("BootstrapConfigReady", f"{name} waits for its bootstrap data"),
            ("InfrastructureReady", f"the server for {name} is being created"),
            ("NodeHealthy", f"{name} is not ready: Node.Ready: cni"),
        ):
            observed = builders.observed()
            builders.say(observed.machines[0], "Ready", "False", "...")
            builders.say(observed.machines[0], "InfrastructureReady", "True", **just_now)
            builders.say(observed.machines[0], kind, "False", "* Node.Ready: cni", **just_now)
            line = f"waiting: 2 of 3 control plane machines are ready; {wanted}, since {SINCE}"
            self.assertEqual(line, reason(observed))

    def test_a_stage_is_not_taken_back_while_a_change_of_the_machine_is_unseen(self):
        """Each outcome goes into the spec, which Cluster API looks at a moment later."""
        observed = building()
        machine = observed.machines[-1]
        builders.say(machine, "InfrastructureReady", "False", "not yet", observedGeneration=2)
        machine["metadata"]["generation"] += 1
        machine["spec"].update(bootstrap={"dataSecretName": ""}, providerID="")
        self.assertIn("waits for its bootstrap data", reason(observed))
        machine["spec"]["bootstrap"]["dataSecretName"] = "worker-m1"
        self.assertIn("is being created", reason(observed))
        machine["spec"]["providerID"] = "openstack:///f3a1"
        self.assertIn("runs, its node has not joined yet", reason(observed))


class WordsTest(testtools.TestCase):
    """Classes, unwrapping and bounds."""

    def test_classes(self):
        for text, cause in (
            (QUOTA, Cause.QUOTA),
            ("No valid host was found. There are not enough hosts", Cause.CAPACITY),
            ("got 401 instead: Unauthorized", Cause.CREDENTIAL),
            ("The request you have made requires authentication", Cause.CREDENTIAL),
            ("got 403 instead: Policy doesn't allow os_compute_api", Cause.PERMISSION),
            ("no images were found with the given image filter", Cause.IMAGE),
            ("no flavors were found: name=m1", Cause.REQUEST),
            ("Failed to create load balancer: provider gone", Cause.NETWORK),
            ("kubelet did not answer", Cause.BOOTSTRAP),
            ("something else", Cause.INTERNAL),
        ):
            self.assertIs(cause, issue.cause_of(text), text)

    def test_unwrapping(self):
        for text, wanted in (
            (QUOTA, "Quota exceeded for cores: Requested 4, but already used 8 of 10 cores"),
            (NETWORK_QUOTA, "Quota exceeded for resources: ['network']."),
            ('500: {"faultstring": "Provider down", "debuginfo": null}', "Provider down"),
            ('{"a": 1} then {"badRequest": {"message": "no"}}', "no"),
            ("plain words", "plain words"),
            ("a {template} that is no JSON", "a {template} that is no JSON"),
            ('{"code": 3}', '{"code": 3}'),
        ):
            self.assertEqual(wanted, issue.unwrap_message(text), text)

    def test_one_bounded_line(self):
        observed = building()
        builders.say(observed.servers[-1], "InstanceReady", "False", "quota\n" + "very long " * 200)
        for text in (reason(observed), reason(observed, "default-worker")):
            self.assertTrue(len(text) <= issue.REASON_LIMIT and "\n" not in text, text)
            self.assertTrue(text.startswith("quota: "))
            self.assertTrue(text.endswith("; 1 of 2 default-worker machines are ready"), text)
