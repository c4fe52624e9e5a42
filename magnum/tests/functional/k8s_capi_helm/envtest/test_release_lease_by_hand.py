# SPDX-License-Identifier: Apache-2.0
"""A cluster whose project and user are gone: the step of the operator's page, word for word.

The API server is real and holds what has finalizers; no controller takes them away, as none can
that does not get into the cloud.
"""

from __future__ import annotations

import datetime
import os
from pathlib import Path
import re
import subprocess
import types
from typing import Any
import uuid

from magnum.drivers import k8s_capi_helm
from magnum.drivers.k8s_capi_helm.cloud.access.services import Services
from magnum.drivers.k8s_capi_helm.cloud.resources.cluster_resources import ClusterResources
from magnum.drivers.k8s_capi_helm.cloud.resources.orphans import Orphans
from magnum.drivers.k8s_capi_helm.helm import HelmClient
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.lease import ReleaseLeases
from magnum.drivers.k8s_capi_helm.model import ApplicationCredential, Chart, names, secrets
from magnum.drivers.k8s_capi_helm.reconcile.deletion import deletion as reconcile_deletion
from magnum.drivers.k8s_capi_helm.reconcile.process import clients
from magnum.drivers.k8s_capi_helm.status.deletion import order as deletion_order
from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.envtest import helm
from magnum.tests.functional.k8s_capi_helm.envtest.test_charts import ChartCase
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeOpenStack

PAGE = Path(k8s_capi_helm.__file__).parents[3] / "doc/source/admin/deletion.rst"
RELEASE = "demo-abcdefghijkl"
HELD = (names.CLUSTER, names.MACHINE_DEPLOYMENT, names.CONTROL_PLANE, names.OPENSTACK_CLUSTER)
TIMEOUT = 120


class GoneCloud:
    """A cloud that has forgotten the project: Keystone lets nobody in, Nova still answers."""

    def __init__(self) -> None:
        self.openstack = FakeOpenStack()
        self.belongings = ClusterResources(Services(self.openstack))
        self.remains = Orphans(Services(self.openstack))
        self.deleted: list[str] = []

    def accepts(self, credential: ApplicationCredential) -> bool:
        return False

    def delete_credential(self, user_id: str, credential_id: str) -> None:
        self.deleted.append(credential_id)

    def credential_names(self, user_id: str, project_id: str) -> dict[str, str]:
        return {}


class TestLettingGo(ChartCase):
    def setUp(self) -> None:
        super().setUp()
        self.kube = KubeClient(self.kubeconfig)
        self.owner = secrets.Owner(RELEASE, self.namespace, "p1", "u1", str(uuid.uuid4()))
        self.ports = clients.Clients(
            kube=self.kube,
            leases=ReleaseLeases(self.kube, holder="test", lease_duration=60),
            helm=HelmClient(self.kube, executable=helm(), timeout=60),
            charts=types.SimpleNamespace(delete_unused=lambda *of: None),  # type: ignore[arg-type]
        )
        self.cloud = GoneCloud()
        self.make()

    def make(self) -> None:
        """What create leaves, with the finalizers and labels of the controllers."""
        self.ports.leases.open(
            self.namespace, RELEASE, cluster_uuid=self.owner.cluster_uuid, project_id="p1"
        )
        text = secrets.clouds_yaml(
            ApplicationCredential("ac-1", "s3cret"),
            auth_url="http://keystone/v3",
            region=None,
            interface="public",
            verify=True,
        )
        self.kube.apply(names.SECRET, secrets.credential_secret(self.owner, text, ""))
        scenario = rendering.scenarios(rendering.CLUSTER)["minimal"]
        chart = Chart(names.CLUSTER_CHART, "", str(rendering.CLUSTER), names.CHART_FAMILY)
        self.ports.helm.apply(self.namespace, RELEASE, chart, scenario.values)
        mark = {
            "labels": {names.LABEL_CLUSTER_NAME: RELEASE},
            "finalizers": ["example.org/needs-the-cloud"],
        }
        for kind in HELD:
            for one in self.kube.list(kind, self.namespace):
                name = one["metadata"]["name"]
                self.kube.patch(kind, self.namespace, name, {"metadata": mark})

    def advance(self) -> deletion_order.DeletionStep:
        now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=2)
        options = types.SimpleNamespace(capi_helm=types.SimpleNamespace(lock_wait=5))
        cloud: Any = self.cloud
        return reconcile_deletion.advance_deletion(
            self.ports, self.owner, lambda: cloud, options, now
        )

    def test_the_page_finishes_the_job(self) -> None:
        step = self.advance()
        self.assertEqual(deletion_order.DeletionAction.WAIT, step.action)
        self.assertIn("credential: Keystone does not accept", step.reason)
        self.assertEqual(deletion_order.DeletionAction.WAIT, self.advance().action)

        self.let_go()
        for kind in HELD:
            self.assertEqual([], self.kube.list(kind, self.namespace), kind.name)
        server = self.cloud.openstack.leave("servers", name=f"{RELEASE}-control-plane-x2b4c")
        self.assertIn(server.name, self.advance().reason)
        self.cloud.openstack.left["servers"].clear()
        self.assertEqual(deletion_order.DeletionAction.DONE, self.advance().action)
        self.assertEqual(["ac-1"], self.cloud.deleted)
        marks = {names.LABEL_UUID: self.owner.cluster_uuid}
        self.assertEqual([], self.kube.list(names.SECRET, self.namespace, marks))

    def test_a_move_takes_release_and_credential_along(self) -> None:
        """``clusterctl move`` takes what has its label, and no other Secret of ours."""
        taken = self.kube.list(names.SECRET, self.namespace, {names.LABEL_MOVE: ""})
        found = {one["metadata"]["name"] for one in taken}
        wanted = {f"sh.helm.release.v1.{RELEASE}.v1", names.credential_secret(RELEASE)}
        self.assertEqual(wanted, found)

    def let_go(self) -> None:
        """Run what the page says, as it says it."""
        found = re.search(r":name: let-go\n\n((?:      .*\n|\n)+)", PAGE.read_text())
        assert found is not None, f"{PAGE} has no block named let-go"
        environment = {
            **os.environ,
            "KUBECONFIG": self.kubeconfig,
            "NAMESPACE": self.namespace,
            "RELEASE": RELEASE,
        }
        script = re.sub(r"(?m)^      ", "", found.group(1))
        done = subprocess.run(
            ["bash", "-euc", script],
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert done.returncode == 0, done.stderr + done.stdout
