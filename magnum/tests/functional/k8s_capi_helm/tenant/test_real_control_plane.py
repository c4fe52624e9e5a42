# SPDX-License-Identifier: Apache-2.0
"""Three machines of the control plane: three members of a real etcd, and one that is lost."""

from __future__ import annotations

from collections import Counter
import os

from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.management import Json, management
from magnum.tests.functional.k8s_capi_helm.tenant import inside
from magnum.tests.functional.k8s_capi_helm.tenant.test_real_life import missing
from magnum.tests.functional.k8s_capi_helm.waiting import until

_LABEL = "cluster.x-k8s.io/control-plane"
#: Seconds: five minutes until a node counts as unhealthy, and the time of a new machine.
_REPLACED = 900.0
_POD_GONE = 180.0


class RealControlPlane(Life):
    """A cluster of which a server of the control plane is deleted behind Magnum's back."""

    name = "members"

    @classmethod
    def missing(cls) -> str:
        return missing()

    @step
    def create(self) -> None:
        self.customer.create(masters=3).complete("CREATE")
        self.cluster.check_release()

    @step
    def members(self) -> None:
        """Each machine has an API server and a member of the one etcd."""
        self._check_members()
        path = "/api/v1/namespaces/default/configmaps"
        body = {"metadata": {"name": "kept"}, "data": {"written": "before"}}
        inside.ask(self.cluster.workload(), "POST", path, body)

    @step
    def lost(self) -> None:
        """Cluster API removes the member and the machine; Magnum says so meanwhile."""
        # What an earlier poll has written is of the creation.
        self.cluster.until(lambda rows: rows.health == "HEALTHY", "health", 300.0)
        machine = self._machines()[0]
        name = machine["metadata"]["name"]
        server = machine["spec"]["providerID"].rpartition("/")[2]
        self.customer.tenant.connection.compute.delete_server(server)
        # The kubelet, which is simulated, does not end with its server.
        setting.fault("node-not-ready", True, name)
        rows = self.cluster.until(lambda rows: rows.health == "UNHEALTHY", "its health", 300.0)
        reasons = rows.cluster["health_status_reason"]
        self.say(str(reasons))
        assert name in str(reasons), reasons
        until(lambda: name not in self._names() and len(self._names()) == 3, name, _REPLACED)
        setting.fault("node-not-ready", False)

    @step
    def whole(self) -> None:
        """The content is there, on three members again, and the cluster is healthy."""
        self.cluster.until(lambda rows: rows.health == "HEALTHY", "health", _REPLACED)
        self.cluster.complete("CREATE")
        self._check_members()
        path = "/api/v1/namespaces/default/configmaps/kept"
        assert inside.ask(self.cluster.workload(), "GET", path)["data"] == {"written": "before"}

    @ending
    def delete(self) -> None:
        """No process of the cluster is left."""
        setting.fault("node-not-ready", False)
        release = self.cluster.release
        self.customer.delete()
        until(lambda: not inside.children(release), "no process", 30.0)
        self.customer.leave()

    def _machines(self) -> list[Json]:
        found = management().objects("Machine", self.customer.tenant.namespace)
        return [one for one in found if _LABEL in one["metadata"]["labels"]]

    def _names(self) -> list[str]:
        return sorted(one["metadata"]["name"] for one in self._machines())

    def _check_members(self) -> None:
        lines = inside.children(self.cluster.release).values()
        running = Counter(os.path.basename(line.split()[0]) for line in lines)
        assert running["etcd"] == running["kube-apiserver"] == 3, running
        # Kubernetes collects the Pod of a node that is gone some time after it.
        until(lambda: self._nodes_of_etcd() == self._names(), "its Pods of etcd", _POD_GONE)
        for machine in self._machines():
            states = {one["type"]: one["status"] for one in machine["status"]["conditions"]}
            assert states["EtcdMemberHealthy"] == "True", machine["metadata"]["name"]

    def _nodes_of_etcd(self) -> list[str]:
        query = "?labelSelector=component%3Detcd"
        found = inside.pods(self.cluster.workload(), "kube-system", query)
        return sorted(one["spec"]["nodeName"] for one in found)


class TestRealControlPlane(LifeCase, life=RealControlPlane):
    """create, members, lost, whole, delete."""
