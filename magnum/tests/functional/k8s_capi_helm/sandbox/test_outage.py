# SPDX-License-Identifier: Apache-2.0
"""The management cluster does not answer: nobody lies, and all goes on by itself afterwards."""

from __future__ import annotations

from collections.abc import Callable
import re

from magnum.tests.functional.k8s_capi_helm.sandbox import management
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows

_FAULT = "management-api-stopped"
#: Magnum's health poll comes once a minute.
_HEALTH = 150.0
_SINCE = re.compile(r"unreachable since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Outage(Life):
    """Two clusters when the management API stops: one is at rest, one is asked to grow."""

    name = "outage"
    resting: Customer

    @step
    def create(self) -> None:
        """Both are there, and the one at rest is called healthy."""
        self.resting = Customer.new("resting")
        self.resting.create()
        self.customer.create()
        for one in (self.resting, self.customer):
            one.cluster.complete("CREATE")
        self.resting.cluster.until(_is("HEALTHY"), "health", _HEALTH)

    @step
    def stop(self) -> None:
        """In progress stays in progress; health becomes UNKNOWN; nothing is called gone."""
        self.fault(_FAULT, True)
        self.customer.resize(2)

        def honest(rows: Rows) -> bool:
            grown = self.cluster.rows()
            begun = grown.groups["default-worker"]["node_count"] == 2
            assert not (begun and grown.status == "UPDATE_COMPLETE"), grown
            assert not grown.status.endswith("_FAILED"), grown
            assert rows.status == "CREATE_COMPLETE", rows
            return _is("UNKNOWN")(rows)

        rows = self.resting.cluster.until(honest, "UNKNOWN", _HEALTH)
        told = rows.cluster["health_status_reason"]
        assert _SINCE.fullmatch(told["management"]), told
        self.cluster.says("management: the management cluster cannot be read; what it does goes on")

    @step
    def go_on(self) -> None:
        """Once it answers again the resize goes through, and health comes back."""
        self.fault(_FAULT, False)
        assert management.answers(30), "the management API does not answer again"
        self.cluster.complete()
        self.resting.cluster.until(_is("HEALTHY"), "health", _HEALTH)

    @ending
    def delete(self) -> None:
        """Both at once."""
        self.fault(_FAULT, False)
        for one in (self.resting, self.customer):
            one.magnum.delete(one.cluster.uuid)
        for one in (self.resting, self.customer):
            one.cluster.gone()
            one.leave()


def _is(health: str) -> Callable[[Rows], bool]:
    return lambda rows: rows.cluster.get("health_status") == health


class TestOutage(LifeCase, life=Outage):
    """create, stop, go on, delete."""
