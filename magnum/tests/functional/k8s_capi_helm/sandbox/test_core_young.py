# SPDX-License-Identifier: Apache-2.0
"""A cluster that is deleted while it is being created."""

from __future__ import annotations

from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step


class Young(Life):
    """Second thoughts."""

    name = "young"

    @step
    def begin(self) -> None:
        """The first server is on its way."""
        tenant = self.customer.tenant
        self.customer.create()
        self.cluster.until(lambda _: bool(tenant.servers()), "the first server")

    @ending
    def delete(self) -> None:
        """The half-made cluster goes whole."""
        self.customer.delete()

    @ending
    def sweep(self) -> None:
        self.customer.leave()


class TestYoung(LifeCase, life=Young):
    """begin, delete, sweep."""
