# SPDX-License-Identifier: Apache-2.0
"""A cluster goes to the next minor release of Kubernetes, and gets a new credential."""

from __future__ import annotations

from magnum.tests.functional.k8s_capi_helm.sandbox.customer import VERSION
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management

_OLD = "v1.33.8"


class Upgrade(Life):
    """One control plane machine and one worker, first at the older version."""

    name = "upgrade"

    @step
    def create(self) -> None:
        self.customer.create(version=_OLD).complete("CREATE")

    @step
    def rotate(self) -> None:
        """The cluster has another credential, and goes on with it."""
        before = self.customer.tenant.credentials()
        self.customer.magnum.rotate_credential(self.cluster.uuid)
        after = self.customer.tenant.credentials()
        assert before < after, (before, after)
        self.customer.resize(2)
        self.cluster.complete()

    @step
    def upgrade(self) -> None:
        """No worker goes before the control plane is through; at the end all are new."""
        old = set(self.customer.tenant.servers())
        seen: list[tuple[str, ...]] = []

        def watched(rows: Rows) -> bool:
            versions = tuple(sorted(f"{role} {text}" for role, text in self._machines()))
            if not seen or seen[-1] != versions:
                seen.append(versions)
            return rows.status == "UPDATE_COMPLETE"

        self.customer.upgrade(VERSION)
        self.cluster.until(watched, "the upgrade")
        self.say(" -> ".join(", ".join(one) for one in seen))
        for versions in seen:
            if f"worker {VERSION}" in versions:
                assert f"control-plane {_OLD}" not in versions, seen
        self.cluster.complete()
        assert not old & set(self.customer.tenant.servers())
        assert self.cluster.rows().cluster["coe_version"] == VERSION

    @ending
    def delete(self) -> None:
        self.customer.delete()
        self.customer.leave()

    def _machines(self) -> list[tuple[str, str]]:
        """Component and version of every Machine that is not on its way out."""
        found = management().objects("Machine", self.customer.tenant.namespace)
        return [
            (one["metadata"]["labels"]["capi.stackhpc.com/component"], one["spec"]["version"])
            for one in found
            if "deletionTimestamp" not in one["metadata"]
        ]


class TestUpgrade(LifeCase, life=Upgrade):
    """Create, rotate the credential, upgrade, delete."""
