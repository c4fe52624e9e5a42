# SPDX-License-Identifier: Apache-2.0
"""Health: four keys that dashboards know, and never a good word about what is not known."""

from __future__ import annotations

import dataclasses
import datetime

import testtools

from magnum.drivers.k8s_capi_helm import model, status
from magnum.drivers.k8s_capi_helm.model import Missing, names
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.builders import NOW

FINE = dict.fromkeys(("cluster", "infrastructure", "controlplane", "nodegroup"), "Ready")


class HealthCase(testtools.TestCase):
    def judge(self, observed: model.Observed, **state: object) -> tuple[str, dict[str, str]]:
        verdict = status.evaluate(observed, builders.state("UPDATE_COMPLETE", **state), NOW)
        for text in verdict.health_reason.values():
            self.assertIsInstance(text, str)
        return verdict.health, dict(verdict.health_reason)

    def check(self, observed: model.Observed, health: str, key: str, text: str) -> None:
        found, reasons = self.judge(observed)
        self.assertEqual(health, found, reasons)
        self.assertIn(text, reasons[key])


class HealthTest(HealthCase):
    def test_all_is_well(self):
        for version in ("v1beta2", "v1beta1"):
            health, reasons = self.judge(builders.observed(version=version))
            self.assertEqual(("HEALTHY", {**FINE, "api": "ok"}), (health, reasons))

    def test_unreachable_since_when(self):
        lost = dataclasses.replace(builders.observed(), unreachable="connection refused")
        health, reasons = self.judge(lost)
        self.assertEqual("UNKNOWN", health)
        self.assertEqual({"management": "unreachable since 2026-11-21T12:00:00Z"}, reasons)
        before = {"management": "unreachable since 2026-11-21T09:00:00Z"}
        self.assertEqual((("UNKNOWN"), before), self.judge(lost, health_reason=before))

    def test_an_old_look_is_unknown(self):
        old = dataclasses.replace(builders.observed(), at=NOW - datetime.timedelta(minutes=6))
        self.assertEqual("UNKNOWN", self.judge(old)[0])

    def test_three_ways_not_to_know(self):
        for kind, key in (
            ("cluster", "cluster"),
            ("infrastructure", "infrastructure"),
            ("control_plane", "controlplane"),
        ):
            for why, text in (
                (Missing.UNREADABLE, "cannot be read"),
                (Missing.NOT_FOUND, "not found"),
            ):
                self.check(
                    dataclasses.replace(builders.observed(), **{kind: why}), "UNKNOWN", key, text
                )
        for kind in ("machine_deployments", "machine_sets", "machines"):
            self.check(
                dataclasses.replace(builders.observed(), **{kind: Missing.UNREADABLE}),
                "UNKNOWN",
                "nodegroup",
                "cannot be read",
            )
        stale = builders.observed()
        stale.cluster["metadata"]["generation"] = 3
        self.check(stale, "UNKNOWN", "cluster", "its last change is not")

    def test_a_node_down_is_named_as_kubectl_names_it(self):
        observed = builders.observed()
        observed.machines[-1]["status"]["nodeRef"] = {"name": "node-7"}
        builders.say(
            observed.machines[-1], "Ready", "False", "* NodeHealthy: Node.Ready is Unknown"
        )
        self.check(
            observed,
            "UNHEALTHY",
            "nodegroup",
            "default-worker: node-7: NodeHealthy: Node.Ready is Unknown",
        )
        observed = builders.observed()
        builders.say(observed.machines[0], "Ready", "False", "* EtcdMemberHealthy: no")
        self.check(observed, "UNHEALTHY", "controlplane", "EtcdMemberHealthy: no")

    def test_a_kubelet_that_is_silent_is_a_fault(self):
        """Cluster API calls it Unknown, as Kubernetes does; it is known that the node is lost."""
        said = "* NodeHealthy: Node.Ready: Kubelet stopped posting node status."
        wanted = "default-worker: node-7: NodeHealthy: Node.Ready: Kubelet stopped posting node"
        for reason, verdict in (
            ("NodeReadyUnknown", "UNHEALTHY"),
            # Cluster API does not reach the cluster, so that nothing is known of its nodes.
            ("ConnectionDown", "UNKNOWN"),
            ("InspectionFailed", "UNKNOWN"),
        ):
            observed = builders.observed()
            machine = observed.machines[-1]
            machine["status"]["nodeRef"] = {"name": "node-7"}
            builders.say(machine, "NodeReady", "Unknown", said, reason=reason)
            builders.say(machine, "Ready", "Unknown", said)
            self.check(observed, verdict, "nodegroup", wanted)
        observed = builders.observed()
        master = observed.machines[0]
        builders.say(master, "NodeReady", "Unknown", said, reason="NodeReadyUnknown")
        builders.say(master, "Ready", "Unknown", said)
        self.check(observed, "UNHEALTHY", "controlplane", "Kubelet stopped posting")
        # One of an older spec says nothing of now.
        generation = {"observedGeneration": master["metadata"]["generation"] - 1}
        builders.say(master, "NodeReady", "Unknown", said, reason="NodeReadyUnknown", **generation)
        self.check(observed, "UNKNOWN", "controlplane", "Kubelet stopped posting")

    def test_missing_machines_count(self):
        observed = builders.observed()
        fewer = dataclasses.replace(observed, machines=observed.machines[:-1])
        self.check(fewer, "UNHEALTHY", "nodegroup", "default-worker: 1 of 2 machines")
        without = dataclasses.replace(observed, servers=observed.servers[:-1])
        self.check(without, "UNHEALTHY", "nodegroup", "has no OpenStackServer")

    def test_a_group_that_is_not_there(self):
        state = builders.state("UPDATE_COMPLETE", {"default-worker": 2, "gpu": 1})
        verdict = status.evaluate(builders.observed(), state, NOW)
        self.assertEqual("UNHEALTHY", verdict.health)
        self.assertIn("gpu: not found", verdict.health_reason["nodegroup"])

    def test_parts(self):
        for kind, condition, state, key, health in (
            ("cluster", "Available", "False", "cluster", "UNHEALTHY"),
            ("cluster", "RemoteConnectionProbe", "False", "api", "UNKNOWN"),
            ("control_plane", "Available", "False", "controlplane", "UNHEALTHY"),
            ("infrastructure", "APIEndpointReady", "False", "infrastructure", "UNHEALTHY"),
        ):
            observed = builders.observed()
            builders.say(getattr(observed, kind), condition, state, "the words")
            self.check(observed, health, key, "the words")
        observed = builders.observed()
        builders.say(observed.control_plane, "Available", "True", "* 1 of 3 etcd members")
        self.check(observed, "UNHEALTHY", "controlplane", "1 of 3 etcd members")
        observed = builders.observed()
        observed.infrastructure["status"] = {"failureMessage": "network filter matches nothing"}
        self.check(observed, "UNHEALTHY", "infrastructure", "network filter matches nothing")

    def test_a_network_that_is_only_being_made_is_no_fault(self):
        observed = builders.observed()
        observed.infrastructure["status"] = {}
        self.check(observed, "UNKNOWN", "infrastructure", "are being created")

    def test_what_nobody_can_see_is_not_known_to_be_bad(self):
        observed = builders.observed()
        builders.say(observed.cluster, "Available", "False", "* RemoteConnectionProbe: failed")
        builders.say(observed.cluster, "RemoteConnectionProbe", "False", "Probe failed")
        self.check(observed, "UNKNOWN", "cluster", "Probe failed")

    def test_a_core_addon_that_was_taken_away(self):
        observed = dataclasses.replace(builders.observed(), addons=builders.core_addons()[1:])
        self.check(observed, "UNHEALTHY", "addons", "cni-calico")

    def test_a_whole_answer_of_openstack_is_told_in_its_own_words(self):
        observed = builders.observed()
        whole = (
            "Failed to find network: Expected HTTP response code [200] when accessing [GET "
            "http://127.0.0.1/v2.0/networks/7], but got 404 instead: "
            '{"NeutronError": {"type": "NetworkNotFound", '
            '"message": "Network 7 could not be found."}}'
        )
        builders.say(observed.infrastructure, "NetworkReady", "False", whole)
        _, reasons = self.judge(observed)
        self.assertEqual("NetworkReady: Network 7 could not be found.", reasons["infrastructure"])

    def test_on_a_management_cluster_without_it_nothing_is_known(self):
        """It may be the wrong one, so that no addon is there is no word on the tenant's."""
        observed = dataclasses.replace(
            builders.observed(),
            cluster=Missing.NOT_FOUND,
            infrastructure=Missing.NOT_FOUND,
            control_plane=Missing.NOT_FOUND,
            machine_deployments=(),
            machine_sets=(),
            machines=(),
            servers=(),
            addons=(),
        )
        self.check(observed, "UNKNOWN", "cluster", "not found on the management cluster")


class OperatorsTest(HealthCase):
    """Credential, certificates and autoscaler, of which no Cluster API object tells."""

    def test_a_dead_credential(self):
        dead = dataclasses.replace(builders.observed(), credential="Keystone does not accept it.")
        self.check(dead, "UNHEALTHY", "credential", "Keystone does not accept it.")

    def certified(self, days: int, machine: int = 0) -> model.Observed:
        observed = builders.observed()
        for number, one in enumerate(observed.machines[:3]):
            end = NOW + datetime.timedelta(days=days if number == machine else 300)
            one["status"]["certificatesExpiryDate"] = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        return observed

    def test_certificates(self):
        node = f"{builders.RELEASE}-control-plane-m1"
        for days, health, text in (
            (15, "HEALTHY", "Ready"),
            (
                13,
                "UNHEALTHY",
                f"the certificates of {node} expire on 2026-12-04, and nothing renews them",
            ),
            (-1, "UNHEALTHY", f"the certificates of {node} expired on 2026-11-20"),
        ):
            self.check(self.certified(days, 1), health, "certificates", text)

    def test_certificates_that_nobody_tells_of_have_no_key(self):
        self.assertNotIn("certificates", self.judge(builders.observed())[1])

    def test_the_autoscaler(self):
        def runs(state: str) -> dict[str, object]:
            made = builders.thing(names.DEPLOYMENT, "autoscaler")
            builders.say(made, "Available", state, "no minimum availability")
            return made

        silent = builders.thing(names.DEPLOYMENT, "autoscaler")
        for found, health, text in (
            ((runs("True"),), "HEALTHY", "Ready"),
            ((runs("False"),), "UNHEALTHY", "does not run"),
            ((), "UNHEALTHY", "does not exist"),
            ((silent,), "HEALTHY", "not reported"),
            (Missing.UNREADABLE, "HEALTHY", "not reported"),
        ):
            observed = dataclasses.replace(builders.observed(), autoscaler=found)
            self.check(observed, health, "autoscaler", text)


class MissingGroupTest(testtools.TestCase):
    """A group without a MachineDeployment."""

    def health(self, group_status: str) -> str | None:
        state = builders.state("UPDATE_COMPLETE")
        group = model.GroupState("gpu", group_status, 1)
        state = dataclasses.replace(state, groups=(*state.groups, group))
        return status.evaluate(builders.observed(), state, NOW).health

    def test_one_that_was_refused_does_not_make_the_cluster_sick(self) -> None:
        self.assertEqual("HEALTHY", self.health("CREATE_FAILED"))

    def test_one_that_is_not_there_yet_is_not_judged(self) -> None:
        self.assertEqual("UNKNOWN", self.health("CREATE_IN_PROGRESS"))

    def test_one_that_was_there_is_missed(self) -> None:
        for group_status in ("CREATE_COMPLETE", "UPDATE_IN_PROGRESS"):
            self.assertEqual("UNHEALTHY", self.health(group_status), group_status)
