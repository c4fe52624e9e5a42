# SPDX-License-Identifier: Apache-2.0
"""Core addons that fail and that take long: what Magnum says, word for word."""

from __future__ import annotations

from magnum.tests.functional.k8s_capi_helm.sandbox.cluster import TOLD_AFTER
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management

#: Seconds until the sandbox has machines and nodes.
_BUILT_AFTER = 600.0
_FAILS, _STUCK = "addon-fails", "addon-stuck"


class AddonsFail(Life):
    """A cluster whose network addon cannot be installed, and whose storage addon does not end."""

    name = "addons"

    @step
    def fails(self) -> None:
        """The cluster's reason is the addon's own message."""
        self.fault(_FAILS, True, "^addons-.*-cni-calico$")
        self.fault(_STUCK, True, "^addons-.*-csi-cinder$")
        self.customer.create()
        said = (
            "addon: cni-calico: this failure was asked for with the fault `fail`; "
            "0 of 1 control plane machine is ready"
        )
        rows = self.cluster.says(said, limit=_BUILT_AFTER)
        assert rows.status == "CREATE_IN_PROGRESS", rows
        self.explained(_FAILS, "cni-calico: this failure was asked for")

    @step
    def slow(self) -> None:
        """All machines are there: nodegroups are complete, the cluster is not."""
        self.fault(_FAILS, False)
        self._try_again("cni-calico")
        said = "waiting: 3 of 4 core addons are deployed, waiting for csi-cinder, since <time>"
        self.cluster.says(said, limit=_BUILT_AFTER)
        rows = self.cluster.until(_all_groups_complete, "all nodegroups", TOLD_AFTER)
        assert rows.status == "CREATE_IN_PROGRESS", rows
        self.cluster.says(said)
        self.explained(_STUCK, "waiting for csi-cinder")

    @step
    def heals(self) -> None:
        """When the addon is there, so is the cluster."""
        self.fault(_STUCK, False)
        self.cluster.complete("CREATE")

    @ending
    def delete(self) -> None:
        self.fault(_FAILS, False)
        self.fault(_STUCK, False)
        self.customer.delete()
        self.customer.leave()

    def _try_again(self, addon: str) -> None:
        """What an operator does: the addon provider looks again when the annotations change."""
        name = f"{self.cluster.release}-{addon}"
        change = {"metadata": {"annotations": {"example.org/try": "again"}}}
        management().patch("HelmRelease", self.customer.tenant.namespace, name, change)


def _all_groups_complete(rows: Rows) -> bool:
    return {row["status"] for row in rows.groups.values()} == {"CREATE_COMPLETE"}


class TestAddonsFail(LifeCase, life=AddonsFail):
    """An addon fails, then another is slow, then all is well; delete."""
