# SPDX-License-Identifier: Apache-2.0
"""Which objects of a release ``clusterctl move`` takes, and that ``complete-move`` takes the rest.

Two API servers, clusterctl and Helm are real, and the driver has the rights of its own RBAC
manifest on both; no manager runs, so that status and owner references are written here.
"""

from __future__ import annotations

from pathlib import Path
import tempfile
import types
from typing import Any
import unittest
import uuid

from magnum.drivers.k8s_capi_helm.helm import HelmClient
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.lease import codec, ReleaseLeases
from magnum.drivers.k8s_capi_helm.model import (
    ApplicationCredential,
    Chart,
    Json,
    names,
    secrets,
)
from magnum.drivers.k8s_capi_helm.reconcile.ownership import moved_release
from magnum.drivers.k8s_capi_helm.reconcile.ownership.moved_release import Move
from magnum.drivers.k8s_capi_helm.reconcile.process import clients
from magnum.drivers.k8s_capi_helm.reconcile.release import project_namespace
from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.clusterctl import program
from sandbox import management, processes
from sandbox.management import binaries, clusterctl, server
from sandbox.management.connection import Connection
from sandbox.management.releases import Providers
from sandbox.state import State

RELEASE = "demo-abcdefghijkl"
PROJECT = "p1"
NAMESPACE = names.namespace("magnum", PROJECT)
CLUSTER = f"/apis/cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/clusters/{RELEASE}"
MERGE = "application/merge-patch+json"
#: What controllers let a Cluster own.
OWNED = (
    names.MACHINE_DEPLOYMENT,
    names.CONTROL_PLANE,
    names.OPENSTACK_CLUSTER,
    names.MACHINE_TEMPLATE,
    names.BOOTSTRAP_TEMPLATE,
    names.MACHINE_HEALTH_CHECK,
    names.HELM_RELEASE,
    names.MANIFESTS,
)


class Side:
    """A management cluster, as its administrator and as the driver see it."""

    def __init__(self, directory: Path) -> None:
        self.state = State(directory)
        management.up_api(self.state, webhooks=False)
        clusterctl.initialize(self.state, Providers(), webhooks=False)
        self.admin = Connection(management.kubeconfig(self.state))
        self.kube = KubeClient(str(server.driver_kubeconfig(self.state)))
        helm = str(binaries.build(Providers()) / "helm")
        self.clients = clients.Clients(
            kube=self.kube,
            leases=ReleaseLeases(self.kube, holder="test", lease_duration=60),
            helm=HelmClient(self.kube, executable=helm, timeout=60),
            charts=types.SimpleNamespace(),  # type: ignore[arg-type]
        )

    def titles(self) -> set[str]:
        """Kind and name of all that is in the project's namespace, without Events."""
        admin = KubeClient(str(management.kubeconfig(self.state)))
        return {
            f"{kind.name} {obj['metadata']['name']}"
            for kind in admin.namespaced_kinds()
            for obj in admin.list(kind, NAMESPACE, metadata_only=True)
            if kind.name != "Event"
        }


class TestMoveObjects(unittest.TestCase):
    here: Side
    there: Side
    owner = secrets.Owner(RELEASE, NAMESPACE, PROJECT, "u1", str(uuid.uuid4()))

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        if why := program.missing(clusterctl.program()):
            raise unittest.SkipTest(why)
        root = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        for name in ("here", "there"):
            cls.addClassCleanup(processes.stop_all, State(root / name))
            setattr(cls, name, Side(root / name))

    def test_there_and_back(self) -> None:
        """Each object and each annotation of the Lease is there afterwards, and nothing is left."""
        self._make()
        before, record = self.here.titles(), self._record(self.here)
        for source, target in ((self.here, self.there), (self.there, self.here)):
            clusterctl.move(source.state, target.state, NAMESPACE)
            left = source.titles()
            self.assertIn(f"Lease {names.lease(RELEASE)}", left)
            self.assertIn(f"Deployment {RELEASE}-autoscaler", left)
            self.assertNotIn(f"Cluster {RELEASE}", left)
            self.assertIn(f"Cluster {RELEASE}", target.titles())
            self._wait_for_garbage_collection(source)
            self._complete(source, target)
            self.assertEqual(set(), before - target.titles())
            self.assertEqual(record, self._record(target))
            self.assertIsNone(source.kube.get(names.NAMESPACE, None, NAMESPACE) and source.titles())
            self._upgrade(target)
            self._act_as_controllers(target)
            before, record = target.titles(), self._record(target)

    def _make(self) -> None:
        """A release with an autoscaler, as the driver makes it, and what controllers add."""
        side = self.here
        project_namespace.create_namespace(side.clients, NAMESPACE, PROJECT, "restricted")
        project_namespace.bind_role(side.clients, NAMESPACE)
        side.clients.leases.open(
            NAMESPACE, RELEASE, cluster_uuid=self.owner.cluster_uuid, project_id=PROJECT
        )
        note = {"metadata": {"annotations": {codec.CHART_SOURCE: "bundled", "of/a-test": "1"}}}
        side.kube.patch(names.LEASE, NAMESPACE, names.lease(RELEASE), note)
        text = secrets.clouds_yaml(
            ApplicationCredential("ac-1", "s3cret"),
            auth_url="http://keystone/v3",
            region=None,
            interface="public",
            verify=True,
        )
        side.kube.apply(names.SECRET, secrets.credential_secret(self.owner, text, ""))
        for manifest in secrets.ca_secrets(
            self.owner, {one: secrets.KeyPair("a", "b") for one in names.CA_PURPOSES}
        ):
            side.kube.apply(names.SECRET, manifest)
        self._upgrade(side)
        self._act_as_controllers(side)

    def _upgrade(self, side: Side) -> None:
        """A run of Helm with the driver's rights; objects that are there are changed, not made."""
        scenario = rendering.scenarios(rendering.CLUSTER)["standard"]
        chart = Chart(names.CLUSTER_CHART, "", str(rendering.CLUSTER), names.CHART_FAMILY)
        side.clients.helm.apply(NAMESPACE, RELEASE, chart, scenario.values)

    def _act_as_controllers(self, side: Side) -> None:
        cluster: Json = side.admin.request("GET", CLUSTER)
        owner = {key: cluster[key] for key in ("apiVersion", "kind")}
        owner |= {key: cluster["metadata"][key] for key in ("name", "uid")}
        for kind in OWNED:
            for obj in side.kube.list(kind, NAMESPACE):
                mark = {"metadata": {"ownerReferences": [owner]}}
                side.kube.patch(kind, NAMESPACE, obj["metadata"]["name"], mark)
        condition: dict[str, Any] = {
            "type": "ControlPlaneInitialized",
            "status": "True",
            "reason": "Initialized",
            "message": "",
            "lastTransitionTime": "2026-11-28T00:00:00Z",
        }
        done = {"infrastructureProvisioned": True, "controlPlaneInitialized": True}
        status = {"status": {"initialization": done, "conditions": [condition]}}
        side.admin.request("PATCH", f"{CLUSTER}/status", body=status, content_type=MERGE)

    def _wait_for_garbage_collection(self, source: Side) -> None:
        """Addons go with their Cluster."""
        for _ in range(600):
            if not source.kube.list(names.HELM_RELEASE, NAMESPACE):
                return
            source.clients.pause(0.2)
        self.fail(f"garbage collection has left {source.titles()}")

    def _complete(self, source: Side, target: Side) -> None:
        move = Move(target.clients, source.kube, self.owner, "restricted")
        first = {change.title: change.text for change in moved_release.complete_move(move)}
        self.assertIn(f"Lease {names.lease(RELEASE)}", first)
        for _ in range(600):
            if source.kube.get(names.NAMESPACE, None, NAMESPACE) is None:
                break
            source.clients.pause(0.2)
        again = {change.title: change.text for change in moved_release.complete_move(move)}
        self.assertEqual({}, again)

    def _record(self, side: Side) -> dict[str, str]:
        lease = side.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
        assert lease is not None
        return dict(lease["metadata"]["annotations"])
