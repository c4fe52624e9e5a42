# SPDX-License-Identifier: Apache-2.0
"""The order of a deletion, and that nothing unread or unproved is ever taken for gone."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import given, strategies
import testtools

from magnum.drivers.k8s_capi_helm import model
from magnum.drivers.k8s_capi_helm.model import Missing, names
from magnum.drivers.k8s_capi_helm.status.deletion import order as deletion_order
from magnum.drivers.k8s_capi_helm.status.deletion.order import DeletionAction
from magnum.tests.unit.drivers.k8s_capi_helm import builders

LISTS = ("servers", "machines", "machine_sets", "machine_deployments", "addons")
SINGLES = ("control_plane", "infrastructure", "cluster")
COUNTED = (*LISTS[:-1], *SINGLES)


def nothing() -> model.Observed:
    """A look at a management cluster that has nothing of the cluster, and could be read."""
    empty: dict[str, Any] = dict.fromkeys(LISTS, ())
    return model.Observed(at=builders.NOW, **empty, **dict.fromkeys(SINGLES, Missing.NOT_FOUND))


def going() -> model.Observed:
    """A cluster of which everything has been told to go."""
    observed = builders.observed()
    for thing in builders.objects(observed):
        thing["metadata"]["deletionTimestamp"] = "2026-11-21T11:58:00Z"
        thing["metadata"]["finalizers"] = ["example.org/finalizer"]
    return observed


def step(observed: model.Observed, **more: Any) -> deletion_order.DeletionStep:
    given_by_default = {"proof": True, "release_present": False, "secrets_present": False}
    return deletion_order.next_step(observed, **{**given_by_default, **more})


class OrderTest(testtools.TestCase):
    """The Cluster object, the release, the waiting, the Secrets, the tombstone."""

    def test_the_whole_way(self):
        everything = {"release_present": True, "secrets_present": True}
        for observed, more, wanted in (
            (builders.observed(), everything, DeletionAction.DELETE_CLUSTER),
            (going(), everything, DeletionAction.UNINSTALL),
            (going(), {"secrets_present": True}, DeletionAction.WAIT),
            (nothing(), everything, DeletionAction.UNINSTALL),
            (nothing(), {"secrets_present": True}, DeletionAction.REMOVE_SECRETS),
            (nothing(), {}, DeletionAction.BURY),
            (nothing(), {"has_tombstone": True}, DeletionAction.DONE),
        ):
            self.assertEqual(wanted, step(observed, **more).action)

    def test_the_cluster_object_only(self):
        [target] = step(builders.observed()).targets
        self.assertEqual((names.CLUSTER, builders.RELEASE), (target.kind, target.name))
        self.assertEqual(f"uid-clusters-{builders.RELEASE}", target.uid)

    def test_what_no_controller_ever_saw_is_deleted_too(self):
        orphaned = dataclasses.replace(builders.observed(), cluster=Missing.NOT_FOUND)
        found = step(orphaned)
        kinds = [target.kind for target in found.targets]
        self.assertEqual(DeletionAction.DELETE_CLUSTER, found.action)
        self.assertEqual(
            [names.MACHINE_DEPLOYMENT, names.CONTROL_PLANE, names.OPENSTACK_CLUSTER], kinds
        )

    def test_without_proof_nothing_is_touched(self):
        for observed in (builders.observed(), going(), nothing()):
            found = step(observed, proof=False, release_present=True, secrets_present=True)
            self.assertEqual(DeletionAction.NO_PROOF, found.action)
            self.assertIn("does not count as deleted", found.reason)

    def test_what_stops_a_pass(self):
        self.assertEqual(
            {DeletionAction.WAIT, DeletionAction.DONE, DeletionAction.NO_PROOF},
            set(deletion_order.STOPS),
        )


class UnreadableTest(testtools.TestCase):
    """Unreadable is never gone."""

    def test_each_kind(self):
        for kind in COUNTED:
            observed = dataclasses.replace(nothing(), **{kind: Missing.UNREADABLE})
            self.assertEqual(DeletionAction.WAIT, step(observed).action, kind)
            self.assertFalse(deletion_order.is_cluster_deleted(observed), kind)

    def test_what_helm_or_the_secrets_say(self):
        for unknown in ("release_present", "secrets_present"):
            self.assertEqual(DeletionAction.WAIT, step(nothing(), **{unknown: None}).action)

    def test_an_unreachable_management_cluster(self):
        found = step(dataclasses.replace(nothing(), unreachable="refused"))
        self.assertEqual(DeletionAction.WAIT, found.action)
        self.assertIn("management:", found.reason)

    @given(
        strategies.dictionaries(
            strategies.sampled_from(COUNTED),
            strategies.sampled_from(["there", "unreadable"]),
            min_size=1,
        ),
        strategies.booleans(),
        strategies.booleans(),
    )
    def test_anything_left_or_unread_is_not_gone(self, left, release_present, secrets_present):
        whole = going()
        parts = {
            kind: Missing.UNREADABLE if how == "unreadable" else getattr(whole, kind)
            for kind, how in left.items()
        }
        observed = dataclasses.replace(nothing(), **parts)
        found = step(observed, release_present=release_present, secrets_present=secrets_present)
        self.assertFalse(deletion_order.is_cluster_deleted(observed))
        self.assertNotIn(
            found.action, (DeletionAction.REMOVE_SECRETS, DeletionAction.BURY, DeletionAction.DONE)
        )


class BlockingTest(testtools.TestCase):
    """A deletion that hangs names what it hangs on."""

    def test_the_deepest_object_and_who_holds_it(self):
        self.assertEqual(
            f"waiting: deletion of OpenStackServer {builders.RELEASE}-control-plane-m0 "
            "(5 machines left): requested at 2026-11-21 11:58 UTC, "
            "held by example.org/finalizer",
            step(going()).reason,
        )

    def test_the_controllers_own_words(self):
        observed = dataclasses.replace(going(), servers=())
        builders.say(
            observed.machines[0],
            "Deleting",
            "True",
            "* Drain not completed yet:\n  * Pod a/b: cannot evict, disruption budget",
        )
        self.assertIn("Drain not completed yet: Pod a/b: cannot evict", step(observed).reason)

    def test_who_holds_what_its_own_controller_has_let_go(self):
        observed = dataclasses.replace(going(), servers=())
        builders.say(
            observed.machines[0], "Deleting", "True", "Deletion completed", "DeletionCompleted"
        )
        self.assertIn("held by example.org/finalizer", step(observed).reason)

    def test_a_failed_event_of_the_object(self):
        observed = dataclasses.replace(nothing(), infrastructure=going().infrastructure)
        text = 'got 409: {"NeutronError": {"message": "One or more ports have an IP allocation"}}'
        told = builders.event("OpenStackCluster", builders.RELEASE, "Faileddeletesubnet", text)
        found = step(dataclasses.replace(observed, events=(told,)))
        self.assertIn("One or more ports have an IP allocation", found.reason)

    def test_a_network_in_use(self):
        """Of Neutron's long sentence the ports; the rest is on the object already."""
        observed = dataclasses.replace(nothing(), infrastructure=going().infrastructure)
        words = (
            "Unable to complete operation on network net-7. There are one or more ports still in "
            "use on the network"
        )
        ports = ", id for these ports is: "
        for more, wanted in (
            ("", ""),
            (f"{ports}port-1", " by port port-1"),
            (f"{ports}port-1,port-2", " by 2 ports"),
        ):
            body = '{"NeutronError": {"type": "NetworkInUse", "message": "%s%s.", "detail": ""}}'
            text = f"Failed to delete network n with id net-7: got 409: {body % (words, more)}"
            told = builders.event("OpenStackCluster", builders.RELEASE, "Faileddeletenetwork", text)
            found = step(dataclasses.replace(observed, events=(told,)))
            end = f"deletion of OpenStackCluster {builders.RELEASE}: its network is in use{wanted}"
            self.assertEqual(f"waiting: {end}", found.reason)

    def test_a_server_that_nova_does_not_delete(self):
        observed = going()
        builders.say(
            observed.servers[0],
            "InstanceReady",
            "False",
            "volume is in use",
            "InstanceDeleteFailed",
        )
        self.assertIn("volume is in use", step(observed).reason)

    def test_a_paused_cluster(self):
        observed = going()
        builders.say(observed.cluster, "Paused", "True")
        self.assertIn(f"Cluster {builders.RELEASE} is paused", step(observed).reason)
