# SPDX-License-Identifier: Apache-2.0
"""A look: everything of one release and nothing of another, and never an exception."""

from __future__ import annotations

import testtools

from magnum.drivers.k8s_capi_helm import errors, status
from magnum.drivers.k8s_capi_helm.kube.watch import snapshot
from magnum.drivers.k8s_capi_helm.model import Missing, names, Observed
from magnum.tests.unit.drivers.k8s_capi_helm import builders, fakes

KINDS = {
    "Cluster": names.CLUSTER,
    "OpenStackCluster": names.OPENSTACK_CLUSTER,
    "KubeadmControlPlane": names.CONTROL_PLANE,
    "MachineDeployment": names.MACHINE_DEPLOYMENT,
    "MachineSet": names.MACHINE_SET,
    "Machine": names.MACHINE,
    "OpenStackServer": names.OPENSTACK_SERVER,
    "HelmRelease": names.HELM_RELEASE,
    "Manifests": names.MANIFESTS,
    "Event": names.EVENT,
}
FIELDS = (
    "cluster",
    "infrastructure",
    "control_plane",
    "machine_deployments",
    "machine_sets",
    "machines",
    "servers",
    "addons",
    "events",
)


def filled() -> fakes.FakeKube:
    """A management cluster with one cluster in place, and a stranger's in the same namespace."""
    kube = fakes.FakeKube()
    for thing in builders.objects(builders.observed()):
        kube.put(KINDS[thing["kind"]], thing)
    kube.put(names.MANIFESTS, builders.addon("extra", kind=names.MANIFESTS))
    for name in (builders.RELEASE, "stranger-abcdefghijkl"):
        kube.put(names.EVENT, builders.event("Cluster", name, "FailedProvisioning", "it is not"))
    kube.put(
        names.EVENT, builders.event("Cluster", f"{builders.RELEASE}-x", "Provisioned", "it is")
    )
    stranger = builders.machine("default-worker", 9)
    stranger["metadata"]["labels"][names.LABEL_CLUSTER_NAME] = "stranger-abcdefghijkl"
    stranger["metadata"]["name"] = "stranger"
    kube.put(names.MACHINE, stranger)
    return kube


def look(kube: fakes.FakeKube) -> Observed:
    return snapshot.take_snapshot(kube, builders.NAMESPACE, builders.RELEASE, builders.NOW)


class LookTest(testtools.TestCase):
    def test_everything_of_the_release_and_nothing_else(self):
        observed = look(filled())
        self.assertEqual(builders.NOW, observed.at)
        self.assertEqual("", observed.unreachable)
        self.assertEqual(builders.RELEASE, observed.cluster["metadata"]["name"])
        self.assertEqual(builders.RELEASE, observed.infrastructure["metadata"]["name"])
        counts = {field: len(getattr(observed, field)) for field in FIELDS[3:]}
        self.assertEqual(
            {
                "machine_deployments": 1,
                "machine_sets": 1,
                "machines": 5,
                "servers": 5,
                "addons": 5,
                "events": 1,
            },
            counts,
        )

    def test_what_was_looked_at_is_judged_as_in_place(self):
        for thing in builders.objects(builders.observed()):
            self.assertIn(thing["kind"], KINDS)
        verdict = status.evaluate(look(filled()), builders.state(), builders.NOW)
        self.assertNotEqual("", verdict.fingerprint, verdict.reason)

    def test_an_empty_management_cluster(self):
        observed = look(fakes.FakeKube())
        for field in FIELDS[:3]:
            self.assertIs(Missing.NOT_FOUND, getattr(observed, field), field)
        for field in FIELDS[3:]:
            self.assertEqual((), getattr(observed, field), field)

    def test_an_unreachable_one_is_asked_once(self):
        kube = filled()
        kube.unreachable = True
        observed = look(kube)
        for field in FIELDS:
            self.assertIs(Missing.UNREADABLE, getattr(observed, field), field)
        self.assertIn("connection refused", observed.unreachable)
        self.assertEqual(1, len(kube.calls))

    def test_a_management_cluster_that_goes_away_between_two_reads(self):
        kube = filled()

        def leave(verb: str, kind: names.Kind, name: str) -> None:
            kube.unreachable = kind is names.MACHINE

        kube.before = leave
        observed = look(kube)
        self.assertEqual(1, len(observed.machine_sets))
        self.assertIs(Missing.UNREADABLE, observed.machines)
        self.assertIs(Missing.UNREADABLE, observed.addons)
        self.assertTrue(observed.unreachable)

    def test_a_kind_that_is_refused_does_not_hide_the_others(self):
        kube = filled()
        kube.unserved.add(names.HELM_RELEASE)
        observed = look(kube)
        self.assertIs(Missing.UNREADABLE, observed.addons)
        self.assertEqual(5, len(observed.machines))
        self.assertEqual("", observed.unreachable)

    def test_any_refusal_of_any_call_is_in_the_look(self):
        for refused in KINDS.values():
            kube = filled()

            def refuse(verb: str, kind: names.Kind, name: str, no: names.Kind = refused) -> None:
                if kind is no:
                    raise errors.ManagementRefused("No.", "forbidden")

            kube.before = refuse
            observed = look(kube)
            unreadable = [f for f in FIELDS if getattr(observed, f) is Missing.UNREADABLE]
            self.assertEqual(1, len(unreadable), refused)

    def test_objects_that_cluster_api_has_not_labelled_yet(self):
        kube = filled()
        for kind, name in (
            (names.OPENSTACK_CLUSTER, builders.RELEASE),
            (names.CONTROL_PLANE, names.kubeadm_control_plane(builders.RELEASE)),
        ):
            fresh = kube.get(kind, builders.NAMESPACE, name)
            del fresh["metadata"]["labels"]
            kube.put(kind, fresh)
        observed = look(kube)
        self.assertEqual(builders.RELEASE, observed.infrastructure["metadata"]["name"])
        self.assertIsInstance(observed.control_plane, dict)
        kube.remove(names.CLUSTER, builders.NAMESPACE, builders.RELEASE)
        self.assertIsInstance(look(kube).infrastructure, dict)
