# SPDX-License-Identifier: Apache-2.0
"""Nova's quota: what cannot fit is refused, what is overtaken says why and heals."""

from __future__ import annotations

from magnum.tests.functional.k8s_capi_helm.sandbox.cluster import DEFAULT_GROUP
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management
from magnum.tests.functional.k8s_capi_helm.sandbox.tenant import Tenant

_FAULT = "quota"


class Quota(Life):
    """Resizes beyond Nova's quota, in the tenant that the sandbox's fault is about."""

    name = "crowded"  # and not the word that is looked for in the reason

    def new_customer(self) -> Customer:
        return Customer(Tenant.demo(), self.name)

    @step
    def create(self) -> None:
        self.customer.create().complete("CREATE")

    @step
    def refuse(self) -> None:
        """A resize that cannot fit is refused with its numbers, and nothing has changed."""
        before = self._revision()
        self.fault(_FAULT, True)
        self.customer.resize(2)
        rows = self.cluster.refused("servers: 1 needed, 0 free of ", 1)
        assert self._revision() == before, "Helm has made a revision"
        self.say(rows.reason)

    @step
    def say_why(self) -> None:
        """A quota that is lowered in between: in progress, with the quota as the reason; never
        COMPLETE.
        """
        self.fault(_FAULT, False)
        self._pause(True)
        self.customer.resize(2)
        before = self._revision()
        self.cluster.until(lambda rows: self._revision() > before, "Helm's revision", fail=False)
        self.fault(_FAULT, True)
        self._pause(False)

        said = (
            "quota: Quota exceeded for instances: Requested 1, but already used 2 of 2 instances "
            "(server <machine>); 1 of 2 default-worker machines are ready"
        )
        for group in ("", DEFAULT_GROUP):
            rows = self.cluster.says(said, group)
        assert rows.status == "UPDATE_IN_PROGRESS", rows

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

    def _revision(self) -> int:
        release = management().release(self.customer.tenant.namespace, self.cluster.release)
        assert release is not None, "there is no Helm release"
        return int(release["version"])

    def _pause(self, paused: bool) -> None:
        """Keep Cluster API from making machines, until the quota is what it is to be."""
        namespace, change = self.customer.tenant.namespace, {"spec": {"paused": paused}}
        management().patch("Cluster", namespace, self.cluster.release, change)


class TestQuota(LifeCase, life=Quota):
    """create, refuse, say why, heal, delete."""
