# SPDX-License-Identifier: Apache-2.0
"""Nova's quota: the reason is there to be read, and raising the quota is all it takes."""

from __future__ import annotations

from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows
from magnum.tests.functional.k8s_capi_helm.sandbox.tenant import Tenant

_FAULT = "quota"
#: Seconds until a refusal of Nova has to be readable in Magnum.
_TOLD_AFTER = 180.0


class Quota(Life):
    """A resize beyond Nova's quota, in the tenant that the sandbox's fault is about."""

    name = "crowded"  # and not the word that is looked for in the reason

    def new_customer(self) -> Customer:
        return Customer(Tenant.demo(), self.name)

    @step
    def create(self) -> None:
        self.customer.create().complete("CREATE")

    @step
    def say_why(self) -> None:
        """In progress, with the quota in the reason of cluster and group; never COMPLETE."""
        self.fault(_FAULT, True)
        self.customer.resize(2)

        def told(rows: Rows) -> bool:
            group = rows.groups["default-worker"]
            if group["node_count"] != 2:
                return False  # Magnum has not begun
            assert rows.status != "UPDATE_COMPLETE", rows
            return "quota" in rows.reason.lower()

        rows = self.cluster.until(told, "a reason with 'quota'", _TOLD_AFTER)
        assert rows.status == "UPDATE_IN_PROGRESS", rows
        group = self.customer.magnum.group(self.cluster.uuid, "default-worker")
        assert "quota" in (group["status_reason"] or "").lower(), group
        self.say(f"{rows.reason} / {group['status_reason']}")

    @step
    def heal(self) -> None:
        """Once the quota is raised the resize goes through by itself, and the reason goes."""
        self.fault(_FAULT, False)
        self.cluster.complete()

    @ending
    def delete(self) -> None:
        self.fault(_FAULT, False)
        self.customer.delete()
        self.cluster.swept()


class TestQuota(LifeCase, life=Quota):
    """create, say why, heal, delete."""
