# SPDX-License-Identifier: Apache-2.0
"""``why`` names the cause as the driver's own status does, and says what to do next."""

from __future__ import annotations

from collections.abc import Callable
import json
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.why import advice
from magnum.drivers.k8s_capi_helm.errors import Cause
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.status.objects import addons
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    CRITICAL,
    OK,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE, SECRET_TEXT
from magnum.tests.unit.drivers.k8s_capi_helm.house import messages

_UUID = "9f0c7c4e-0000-4777-8666-555555555555"


class WhyCase(CommandCase):
    def why(self, name: str = "demo", status: int = CRITICAL) -> list[str]:
        """The lines that are printed."""
        printed = self.command("why", name)
        self.assertEqual(status, printed.status, printed.out + printed.error)
        self.assertEqual("", printed.error)
        lines = printed.out.splitlines()
        self.assertTrue(lines[0].startswith("Cause:"), lines[0])
        self.assertTrue(lines[-1].startswith("Next:"), lines[-1])
        return lines

    def change(self, kind: names.Kind, change: Callable[[Any], None]) -> None:
        """A controller writes something into the first object of a kind."""
        obj = self.kube.list(kind, NAMESPACE)[0]
        change(obj)
        self.kube.put(kind, obj)

    def say(self, kind: names.Kind, condition: str, message: str, reason: str = "Because") -> None:
        def write(obj: Any) -> None:
            builders.say(obj, condition, "False", message, reason)

        self.change(kind, write)

    def break_server(self) -> None:
        def write(obj: Any) -> None:
            obj["status"]["instanceState"] = "ERROR"
            builders.say(obj, "InstanceReady", "False", "", "InstanceNotReady")
            self.cloud.faults[obj["status"]["instanceID"]] = "No valid host was found."

        self.change(names.OPENSTACK_SERVER, write)

    def fail_addon(self) -> None:
        def write(obj: Any) -> None:
            obj["status"] = {"phase": "Failed", "failureMessage": "image pull failed"}

        self.change(names.HELM_RELEASE, write)


class TestCause(WhyCase):
    def begun(self) -> None:
        """A cluster that is being created, all of whose objects are in place."""
        self.create()
        self.capi_converges()

    def assert_cause(self, fault: Callable[[], None], cause: str, subject: str) -> None:
        """The first line is the reason that the driver writes for the same fault."""
        self.begun()
        fault()
        self.status_task()
        reason = self.cluster().status_reason
        self.assertTrue(reason.startswith(f"{cause}: "), reason)
        lines = self.why()
        self.assertEqual(f"Cause: {reason.replace(':', '', 1)}", lines[0])
        self.assertEqual(f"Next:  {advice.ADVICE[Cause(cause)]}", lines[-1])
        self.assertEqual(1, sum(line.strip().startswith(subject) for line in lines), lines)

    def test_a_quota_that_is_exceeded(self) -> None:
        text = "Quota exceeded for cores: Requested 4, but already used 10 of 10 cores"
        self.assert_cause(
            lambda: self.say(names.OPENSTACK_SERVER, "InstanceReady", text),
            "quota",
            "OpenStackServer ",
        )

    def test_a_server_that_no_host_takes(self) -> None:
        self.assert_cause(self.break_server, "capacity", "Nova server id-")

    def test_a_network_that_is_wrong(self) -> None:
        self.assert_cause(
            lambda: self.say(names.OPENSTACK_CLUSTER, "NetworkReady", "no subnet found"),
            "network",
            "OpenStackCluster ",
        )

    def test_an_addon_that_has_failed(self) -> None:
        self.assert_cause(self.fail_addon, "addon", "HelmRelease ")

    def test_an_addon_without_which_no_node_is_ready(self) -> None:
        """Machines that are unhealthy for lack of a network are no cause: the addon is."""

        def write(obj: Any) -> None:
            node = (
                "* Node.Ready: container runtime network not ready: NetworkReady=false "
                "reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not "
                "initialized"
            )
            builders.say(obj, "NodeHealthy", "False", node, "NodeUnhealthy")
            check = "Condition Ready on Node is reporting status False with reason KubeletNotReady"
            builders.say(obj, "HealthCheckSucceeded", "False", f"Health check failed: {check}")

        def no_network() -> None:
            (addon,) = (
                obj
                for obj in self.kube.list(names.HELM_RELEASE, NAMESPACE)
                if addons.component(obj) in addons.NETWORK
            )
            addon["status"] = {"phase": "Failed", "failureMessage": "image pull failed"}
            self.kube.put(names.HELM_RELEASE, addon)
            self.change(names.MACHINE, write)

        self.assert_cause(no_network, "addon", "HelmRelease ")

    def test_words_that_say_more_than_the_class(self) -> None:
        server = "3 hosts failed to start the server"
        self.assertIn("nova-compute", advice.advice("internal", server, _UUID))
        self.assertEqual(
            advice.ADVICE[Cause.INTERNAL], advice.advice("internal", "a defect", _UUID)
        )
        foreign = "deletion of OpenStackCluster a: its network is in use by port 4"
        self.assertIn("openstack port show", advice.advice("", foreign, _UUID))
        self.assertIn("Wait: ", advice.advice("", "deletion of Machine a", _UUID))

    def test_words_are_those_of_the_driver(self) -> None:
        """Each stands on the page of all sentences, but for those of Kubernetes itself."""
        page = messages.PAGE.read_text(encoding="utf-8")
        others = [words for words in advice.SPECIAL if words not in page]
        self.assertEqual(["Kubelet stopped posting node status"], others)

    def test_nothing_is_wrong(self) -> None:
        self.made()
        self.health_task()
        lines = self.why(status=OK)
        self.assertEqual("Cause:  nothing is wrong", lines[0])
        self.assertEqual(f"Next:  {advice.FINE}", lines[-1])

    def test_what_only_takes_time_is_a_warning(self) -> None:
        self.create()
        lines = self.why(status=WARNING)
        self.assertRegex(lines[0], "^Cause: waiting [^:]+")
        self.assertIn("Wait: ", lines[-1])

    def test_a_complete_cluster_that_is_ill(self) -> None:
        self.made()
        self.say(names.MACHINE, "Ready", "node is gone")
        lines = self.why()
        self.assertIn("node is gone", lines[0])
        self.assertTrue(any("Health controlplane" in line for line in lines), lines)

    def test_a_credential_that_is_dead(self) -> None:
        self.made()
        self.cloud.dead |= set(self.cloud.credentials)
        lines = self.why()
        self.assertIn("credential", lines[0])
        self.assertIn(f"'openstack coe credential rotate {self.cluster().uuid}'", lines[-1])

    def test_a_management_cluster_that_is_away(self) -> None:
        self.made()
        self.kube.unreachable = True
        lines = self.why()
        self.assertRegex(lines[0], "^Cause: management .*connection refused")
        self.assertIn("k8s-capi-helm check", lines[-1])

    def test_a_request_that_cannot_be_applied(self) -> None:
        """Only a conductor tries to; what it has said of its last attempt is the cause."""
        self.made()
        self.helm.refusal = errors.ManagementUnreachable("A webhook does not answer.")
        self.resize(3)
        self.status_task()
        reason = self.cluster().status_reason
        self.assertIn("management: A webhook does not answer", reason)
        lines = self.why()
        self.assertEqual(f"Cause: {reason.replace(':', '', 1)}", lines[0])
        self.assertEqual(f"Next:  {advice.ADVICE[Cause.MANAGEMENT]}", lines[-1])

    def test_a_request_that_is_applied_later(self) -> None:
        """What was said of an attempt before is over with it."""
        self.made()
        self.helm.refusal = errors.ManagementUnreachable("A webhook does not answer.")
        self.resize(3)
        self.status_task()
        self.helm.refusal = None
        reason = self.cluster().status_reason
        self.status_task()
        cluster = self.cluster()
        cluster.status_reason = reason
        cluster.save()
        self.assertNotIn("webhook", self.why(status=WARNING)[0])

    def test_a_cluster_without_a_lease(self) -> None:
        self.made()
        self.kube.remove(names.LEASE, NAMESPACE, names.lease(RELEASE))
        self.assertIn(f"The release has no Lease. Release '{RELEASE}' is", self.why()[0])

    def test_a_cluster_of_another_driver(self) -> None:
        cluster = self.made()
        cluster.stack_id = "kube-abcde"
        cluster.save()
        self.assertIn("was not created by this driver", self.why()[0])

    def test_a_create_that_was_refused(self) -> None:
        self.create(labels={"boot_volume_size": "huge"})
        lines = self.why()
        self.assertIn("boot_volume_size", lines[0])

    def test_a_change_that_was_refused_is_no_waiting(self) -> None:
        cluster = self.made()
        cluster.status, cluster.status_reason = "UPDATE_FAILED", "The image is unknown."
        cluster.save()
        lines = self.why()
        self.assertEqual("Cause: request The image is unknown.", lines[0])
        self.assertEqual(f"Next:  {advice.ADVICE[Cause.REQUEST]}", lines[-1])

    def test_a_refusal_that_is_over_is_still_told(self) -> None:
        self.made()
        self.health_task()
        cluster = self.cluster()
        cluster.status, cluster.status_reason = "UPDATE_COMPLETE", "The image is unknown."
        cluster.save()
        said = "nothing is wrong, and the last request was refused: The image is unknown."
        self.assertEqual(f"Cause:  {said}", self.why(status=OK)[0])

    def test_a_deletion_names_what_it_waits_for(self) -> None:
        self.made()
        self.delete()
        self.assertIn("deletion of", self.why(status=WARNING)[0])


class TestTree(WhyCase):
    def test_what_is_pending_stands_below_the_lease(self) -> None:
        self.made()
        self.resize(3)
        lines = [line.strip() for line in self.why(status=WARNING)]
        place = lines.index(f"Lease {names.lease(RELEASE)} free")
        self.assertRegex(
            lines[place + 1], r"^Operation resize default-worker pending since .+, until "
        )
        self.assertRegex(lines[place + 2], rf"^Release {RELEASE} deployed revision 2, chart ")

    def test_a_server_stands_below_its_machine(self) -> None:
        self.made()
        self.break_server()
        lines = self.why()
        [place] = [i for i, line in enumerate(lines) if line.strip().startswith("Nova server")]
        names_of = [line.strip().split()[0] for line in lines[place - 2 : place]]
        self.assertEqual(["Machine", "OpenStackServer"], names_of)
        depths = [len(line) - len(line.lstrip()) for line in lines[place - 2 : place + 1]]
        self.assertEqual([6, 8, 10], depths)
        self.assertTrue(lines[place].endswith("flavor m1.small; image i; No valid host was found."))

    def test_a_server_that_runs_without_a_node_has_its_id(self) -> None:
        self.made()
        self.say(names.MACHINE, "Ready", "node is gone")
        server = self.kube.list(names.OPENSTACK_SERVER, NAMESPACE)[0]
        lines = [line.strip() for line in self.why()]
        self.assertIn(
            f"Nova server {server['status']['instanceID']} ACTIVE flavor m1.small; image i", lines
        )

    def test_a_server_whose_machine_is_gone_is_shown(self) -> None:
        self.made()
        machine = self.kube.list(names.MACHINE, NAMESPACE)[-1]
        name = machine["metadata"]["name"]
        self.kube.remove(names.MACHINE, NAMESPACE, name)
        self.assertNotIn(f"OpenStackServer {name}", "".join(self.why()), "it is a bastion")
        for server in self.kube.list(names.OPENSTACK_SERVER, NAMESPACE):
            server["metadata"]["ownerReferences"] = [{"kind": "OpenStackMachine", "name": name}]
            self.kube.put(names.OPENSTACK_SERVER, server)
        lines = [line.strip() for line in self.why()]
        self.assertIn(f"OpenStackServer {name} ACTIVE", lines)

    def test_a_machine_with_another_kubelet_is_shown(self) -> None:
        self.made()

        def write(obj: Any) -> None:
            obj["status"]["nodeInfo"] = {"kubeletVersion": "v1.30.0"}

        self.change(names.MACHINE, write)
        machine = self.kube.list(names.MACHINE, NAMESPACE)[0]
        lines = [line.strip() for line in self.why(status=OK)]
        found = [line for line in lines if line.startswith("Machine ")]
        self.assertEqual([f"Machine {machine['metadata']['name']}"], [one.strip() for one in found])

    def test_what_a_deletion_has_taken_away_is_no_fault(self) -> None:
        self.made()
        self.delete()
        self.kube.remove(names.CONTROL_PLANE, NAMESPACE, f"{RELEASE}-control-plane")
        lines = [line.strip() for line in self.why(status=WARNING)]
        self.assertIn("KubeadmControlPlane deleted", lines)
        self.assertFalse([line for line in lines if line.startswith("Health")])

    def test_objects_that_are_missing_are_named(self) -> None:
        self.made()
        self.kube.remove(names.CONTROL_PLANE, NAMESPACE, f"{RELEASE}-control-plane")
        self.assertIn("    KubeadmControlPlane not found ", self.why(status=WARNING))

    def test_each_part_has_columns_for_programs(self) -> None:
        self.made()
        printed = self.command("why", "demo", "-f", "json")
        rows = json.loads(printed.out)
        self.assertEqual({"Object", "State", "Message"}, set(rows[0]))
        self.assertEqual(["Cause:", "Next:"], [rows[0]["Object"], rows[-1]["Object"]])

    def test_nothing_is_changed(self) -> None:
        self.made()
        self.resize(2)
        before = (list(self.kube.everything()), self.cluster().as_dict())
        self.kube.calls.clear()
        self.command("why", "demo")
        self.assertEqual(before, (list(self.kube.everything()), self.cluster().as_dict()))
        self.assertEqual({"get", "list"}, {verb for verb, _, _, _ in self.kube.calls})

    def test_no_secret_is_printed(self) -> None:
        self.made()
        for argv in (("why", "demo"), ("list",), ("check",)):
            printed = self.command("-vvv", *argv)
            self.assertNotIn(SECRET_TEXT, printed.out + printed.error)


class TestWhich(WhyCase):
    def test_by_uuid_name_and_release(self) -> None:
        uuid = self.made().uuid
        for text in (uuid, "demo", RELEASE):
            self.assertIn(f"Cluster demo {uuid}", "\n".join(self.why(text, OK)))

    def test_there_is_none(self) -> None:
        for text in ("nothing", "99999999-0000-4777-8666-555555555555"):
            printed = self.command("why", text)
            self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))
            self.assertIn(f"'{text}' is no UUID", printed.error)

    def test_two_have_the_name(self) -> None:
        first = self.made()
        second = self.create(uuid="11111111-8888-4777-8666-555555555555")
        printed = self.command("why", "demo")
        self.assertEqual(UNKNOWN, printed.status)
        for uuid in (first.uuid, second.uuid):
            self.assertIn(f"{uuid} (project p1)", printed.error)


class TestAdvice(WhyCase):
    def test_there_is_some_for_each_class(self) -> None:
        self.assertEqual(set(Cause), set(advice.ADVICE))
        self.assertEqual(len(Cause), len({advice.advice(cause, "", _UUID) for cause in Cause}))
