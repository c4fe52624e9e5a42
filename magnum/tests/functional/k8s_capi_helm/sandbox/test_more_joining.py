# SPDX-License-Identifier: Apache-2.0
"""A machine that never joins, one that falls silent, and nodes that are chosen to go."""

from __future__ import annotations

from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows

_FAULT, _SILENT = "node-never-joins", "node-not-ready"
#: Longer than two of Magnum's periodic passes.
_STEADY = 30.0


class Joining(Life):
    """Kubeadm ends on no machine of one nodegroup."""

    name = "joining"

    @step
    def create(self) -> None:
        self.customer.create().complete("CREATE")

    @step
    def never_joins(self) -> None:
        """The server runs, the node does not come: in progress, with a reason that says so."""
        release = self.cluster.release
        self.fault(_FAULT, True, f"^{release}-late-")
        self.customer.create_group("late", 1)
        self.cluster.until(lambda _: self._active() == 3, "the late server")
        said = (
            "waiting: 0 of 1 late machine is ready; the server for machine <machine> runs, its "
            "node "
            "has not joined yet, since <time>"
        )
        for group in ("", "late"):
            self.cluster.says(said, group)
        self.cluster.steady(self._is_waiting, _STEADY)
        self.explained(_FAULT, "its node has not joined yet")

    @step
    def joins(self) -> None:
        """When the machine comes good everything comes good by itself."""
        self.fault(_FAULT, False)
        self.cluster.complete()

    @step
    def silent(self) -> None:
        """A kubelet that falls silent: the health names the node, and so does ``why``."""
        self.fault(_SILENT, True, f"^{self.cluster.release}-late-")
        self.cluster.until(
            lambda rows: rows.cluster["health_status"] == "UNHEALTHY", "an unhealthy cluster"
        )
        self.explained(_SILENT, "Kubelet stopped posting node status")
        self.fault(_SILENT, False)
        self.cluster.until(
            lambda rows: rows.cluster["health_status"] == "HEALTHY", "a healthy cluster"
        )

    @step
    def wrong_nodes(self) -> None:
        """A node that is not there is refused with a sentence; counts and machines stay."""
        before = set(self.customer.tenant.servers())
        self.customer.magnum.resize(self.cluster.uuid, 0, nodes_to_remove=["nobody"])
        self.cluster.refused("'nobody'", 1)
        assert set(self.customer.tenant.servers()) == before

    @step
    def resize_after_refusal(self) -> None:
        """The next request, a proper one, goes through and clears the refusal."""
        self.customer.resize(3)
        self.cluster.until(lambda rows: rows.status != "UPDATE_FAILED", "the resize", fail=False)
        self.cluster.complete()

    @step
    def chosen_nodes(self) -> None:
        """Exactly the named nodes go: one by its server's id, one by its name."""
        workers = self._workers()
        first, kept, last = sorted(workers)
        self.customer.resize(1, nodes_to_remove=[first, workers[last]])
        self.cluster.complete()
        assert set(self._workers()) == {kept}, (workers, self._workers())

    @ending
    def delete(self) -> None:
        self.fault(_FAULT, False)
        self.fault(_SILENT, False)
        self.customer.delete()
        self.customer.leave()

    def _workers(self) -> dict[str, str]:
        """Servers of the default worker group: id -> name."""
        found = self.customer.tenant.connection.compute.servers()
        return {one.id: one.name for one in found if "-default-worker-" in one.name}

    @staticmethod
    def _is_waiting(rows: Rows) -> bool:
        groups = {name: row["status"] for name, row in rows.groups.items()}
        return (
            rows.status == "UPDATE_IN_PROGRESS"
            and groups["late"] == "CREATE_IN_PROGRESS"
            and groups["default-worker"].endswith("_COMPLETE")
        )

    def _active(self) -> int:
        return list(self.customer.tenant.servers().values()).count("ACTIVE")


class TestJoining(LifeCase, life=Joining):
    """A node never joins, then does; one falls silent; nodes_to_remove; delete."""
