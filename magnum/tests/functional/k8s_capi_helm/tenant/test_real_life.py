# SPDX-License-Identifier: Apache-2.0
"""A cluster's life on a real API server: what is simulated elsewhere decides here."""

from __future__ import annotations

from collections import Counter
import os

from magnum.tests.functional.k8s_capi_helm.sandbox.customer import VERSION
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.tenant import inside
from magnum.tests.functional.k8s_capi_helm.waiting import until
from sandbox import cli
from sandbox.management import tenant_api
from sandbox.state import State

_OLD = "v1.33.8"
_HEALTH = 200.0
#: Programs of a cluster with one machine of the control plane.
_PROGRAMS = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}


def missing() -> str:
    """Why these tests cannot run, "" if they can."""
    if tenant_api.chosen(State(cli.default_directory())) == tenant_api.REAL:
        return ""
    return "the clusters of this sandbox have no real API servers; see `up --tenant-api real`"


class RealLife(Life):
    """One machine of the control plane and one worker, then more, then a newer Kubernetes."""

    name = "real"

    @classmethod
    def missing(cls) -> str:
        return missing()

    @step
    def create(self) -> None:
        self.customer.create(version=_OLD).complete("CREATE")
        self.cluster.check_release()
        self.cluster.until(lambda rows: rows.health == "HEALTHY", "health", _HEALTH)
        self.say(f"{len(inside.children(self.cluster.release))} processes of the cluster")

    @step
    def programs(self) -> None:
        """Every program runs once, and shows itself as kubeadm's machines do."""
        lines = inside.children(self.cluster.release).values()
        assert Counter(os.path.basename(line.split()[0]) for line in lines) == Counter(_PROGRAMS)
        workload = self.cluster.workload()
        found = inside.pods(workload, "kube-system", "?labelSelector=tier%3Dcontrol-plane")
        assert {one["metadata"]["labels"]["component"] for one in found} == _PROGRAMS, found
        leases = inside.ask(
            workload, "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        )
        names = {node["metadata"]["name"] for node in workload.nodes()}
        assert {one["metadata"]["name"] for one in leases["items"]} == names, leases

    @step
    def kubeadm(self) -> None:
        """What kubeadm makes on a machine is there, made by kubeadm itself."""
        workload = self.cluster.workload()
        for path in (
            "/api/v1/namespaces/kube-system/configmaps/kubeadm-config",
            "/api/v1/namespaces/kube-system/configmaps/kubelet-config",
            "/api/v1/namespaces/kube-public/configmaps/cluster-info",
            "/apis/apps/v1/namespaces/kube-system/deployments/coredns",
            "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy",
        ):
            assert inside.ask(workload, "GET", path)["metadata"]["name"], path

    @step
    def rights(self) -> None:
        """A service account has no rights but those that a role gives; a schema is held."""
        workload = self.cluster.workload()
        review = {
            "spec": {
                "user": "system:serviceaccount:default:default",
                "resourceAttributes": {"verb": "list", "resource": "nodes"},
            }
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        assert not inside.ask(workload, "POST", path, review)["status"]["allowed"]
        pod = {"metadata": {"name": "none"}, "spec": {"containers": []}}
        assert inside.refusal(workload, "POST", "/api/v1/namespaces/default/pods", pod) == 422
        assert inside.refusal(workload, "POST", "/api/v1/namespaces/no-such/pods", pod) == 404

    @step
    def grow(self) -> None:
        """1 -> 2."""
        self.customer.resize(2)
        self.cluster.complete()

    @step
    def drain(self) -> None:
        """2 -> 1: a PodDisruptionBudget holds the machine, and Magnum says so; then it goes."""
        workload = self.cluster.workload()
        node = inside.deploy_guard(workload)
        (server,) = (
            one["spec"]["providerID"].rpartition("/")[2]
            for one in workload.nodes()
            if one["metadata"]["name"] == node
        )
        self.customer.resize(1, nodes_to_remove=[server])
        rows = self.cluster.until(
            lambda rows: inside.GUARD in (rows.reason or ""), "a reason that names the pod", 200.0
        )
        self.say(rows.reason)
        assert rows.status == "UPDATE_IN_PROGRESS", rows
        assert inside.guard_node(workload) == node, "the pod was evicted against its budget"
        inside.release_guard(workload)
        self.cluster.complete()
        assert until(lambda: inside.guard_node(workload), "the pod") != node

    @step
    def upgrade(self) -> None:
        """Every machine is replaced; the content of the cluster is what it was."""
        workload = self.cluster.workload()
        before = inside.ask(workload, "GET", "/api/v1/namespaces/kube-system")["metadata"]["uid"]
        self.customer.upgrade(VERSION)
        self.cluster.until(lambda rows: rows.status == "UPDATE_COMPLETE", "the upgrade", 900.0)
        self.cluster.complete()
        after = inside.ask(workload, "GET", "/api/v1/namespaces/kube-system")["metadata"]["uid"]
        assert before == after, "this is another etcd"
        assert until(lambda: inside.guard_node(workload), "the pod")
        lines = inside.children(self.cluster.release).values()
        assert Counter(os.path.basename(line.split()[0]) for line in lines) == Counter(_PROGRAMS)

    @ending
    def delete(self) -> None:
        """No process of the cluster is left."""
        release = self.cluster.release
        self.customer.delete()
        until(lambda: not inside.children(release), "no process", 30.0)
        self.customer.leave()


class TestRealLife(LifeCase, life=RealLife):
    """create, programs, kubeadm, rights, grow, drain, upgrade, delete."""
