# SPDX-License-Identifier: Apache-2.0
"""A cluster of Magnum 20 goes on under 21, 22 and 23: no node rolls, each request is carried out.

Only Magnum is upgraded, as its operators do: its programs end, ``magnum-db-manage upgrade`` of the
next release runs, and that release's programs start.
"""

from __future__ import annotations

from magnum.tests.functional.k8s_capi_helm.releases.moving import Moving, OLD
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import VERSION
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, LifeCase, step


class Upgrade(Moving):
    """One control plane machine and one worker; a request after each upgrade of Magnum."""

    name = "releases"

    @step
    def create(self) -> None:
        self.customer.create(version=OLD).complete("CREATE")
        self.cluster.check_release()

    @step
    def under_21(self) -> None:
        """More workers; those that are there stay."""
        before = self.move_to("21")
        self.customer.resize(2)
        self.cluster.complete()
        assert before < set(self.customer.tenant.servers())

    @step
    def under_22(self) -> None:
        """The next minor release of Kubernetes, and a nodegroup."""
        self.move_to("22")
        self.customer.upgrade(VERSION)
        self.cluster.complete()
        assert self.cluster.rows().cluster["coe_version"] == VERSION
        self.customer.create_group("second", 1)
        self.cluster.complete()

    @step
    def under_23(self) -> None:
        """What no earlier release could: another credential."""
        self.move_to("23")
        known = self.customer.tenant.credentials()
        self.customer.magnum.rotate_credential(self.cluster.uuid)
        assert known < self.customer.tenant.credentials()
        self.customer.resize(1)
        self.cluster.complete()
        self.cluster.check_release()

    @ending
    def delete(self) -> None:
        self.customer.delete()
        self.customer.leave()


class TestUpgrade(LifeCase, life=Upgrade):
    """Create under Magnum 20; 21, 22, 23; delete."""
