# SPDX-License-Identifier: Apache-2.0
"""The management cluster does not answer, or does nothing, or is another one: nobody lies, every
reason is told word for word, and all goes on by itself afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
import re

from magnum.tests.functional.k8s_capi_helm.sandbox import management, provider
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows
from magnum.tests.functional.k8s_capi_helm.sandbox.own_network import OwnNetwork

_NETWORK = "late"
_STOPPED, _IDLE = "management-api-stopped", "controllers-idle"
_DEGRADED = "management-api-degraded"
_GONE, _OTHER = "controllers-stopped", "wrong-management-cluster"
#: Magnum's health poll comes once a minute.
_HEALTH = 150.0
_SINCE = re.compile(r"unreachable since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
#: Two minutes for each change, and no word on whose turn it is.
_SHORT: dict[str, dict[str, object]] = {"capi_helm": {"update_timeout": 2, "controller_silence": 0}}


class Outage(Life):
    """Two clusters when the management cluster fails: one is at rest, one is asked to grow; and a
    third one whose network goes before anybody has looked at it.
    """

    name = "outage"
    resting: Customer
    late: Customer
    network: OwnNetwork

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
        self._outage(_STOPPED, None, 2)

    @step
    def hang(self) -> None:
        """The same when it takes connections and answers nothing: no thread waits for ever."""
        self._outage(_STOPPED, "hang", 1)

    @step
    def fail(self) -> None:
        """The same when it answers each request with an internal error."""
        self._outage(_DEGRADED, None, 2)

    @step
    def slow(self) -> None:
        """Each answer takes a second: all is carried out, and health stays what it was."""
        self.fault(_DEGRADED, True, "slow")
        self.customer.resize(1)
        self.cluster.complete()
        rows = self.resting.cluster.rows()
        assert _is("HEALTHY")(rows), rows.cluster
        self.fault(_DEGRADED, False)

    @step
    def idle(self) -> None:
        """Controllers that do nothing: what waits for them, and then that it was not in time."""
        self.late = Customer.new("late")
        self.network = OwnNetwork(self.late.tenant.connection, _NETWORK)
        template = self.late.template(fixed_network=_NETWORK, fixed_subnet=_NETWORK)
        provider.reconfigure(_SHORT)
        self.fault(_IDLE, True)
        self.late.create(template=template)
        self.customer.resize(2)
        said = (
            "waiting: Cluster API has not processed the change of nodegroup default-worker yet, "
            "since <time>"
        )
        for group in ("", "default-worker"):
            self.cluster.says(said, group)
        made = "waiting: the network and the API load balancer are being created, since <time>"
        self.late.cluster.says(made)
        rows = self.cluster.says(f"timeout: not finished within 2 minutes; {said}", fail=False)
        assert rows.status == "UPDATE_FAILED", rows
        self.explained(_IDLE, "Cluster API has not processed the change")

    @step
    def network_gone(self) -> None:
        """The tenant's network was deleted before anybody had looked: that is what is said."""
        self.network.remove()
        self.fault(_IDLE, False)
        self.late.cluster.says(
            f"network: Network {self.network.id} could not be found; the network and the API load "
            "balancer are being created"
        )

    @step
    def go_on(self) -> None:
        """What was late comes good by itself; what has no network can be deleted."""
        provider.reconfigure({})
        self.cluster.until(
            lambda rows: rows.status == "UPDATE_COMPLETE", "what was late", _HEALTH, fail=False
        )
        self.cluster.complete()
        self.late.delete()
        self.late.leave()

    @step
    def no_webhooks(self) -> None:
        """Without controllers nothing can be applied; the reason says who does not answer."""
        self.fault(_GONE, True, "^capi-core$")
        self.customer.resize(1)
        said = (
            "management: A webhook of the management cluster does not answer, so the chart cannot "
            "be applied. The webhook is 'default.cluster.cluster.x-k8s.io'. It will be retried; if "
            "this persists, ask the operator to check Cluster API's controllers."
        )
        rows = self.cluster.says(said)
        assert rows.status == "UPDATE_IN_PROGRESS", rows
        self.explained(_GONE, "A webhook of the management cluster does not answer")
        self.fault(_GONE, False)
        self.cluster.complete()

    @step
    def wrong_one(self) -> None:
        """On a management cluster that never had it a cluster is not taken for deleted."""
        self.fault(_OTHER, True)
        self.resting.magnum.delete(self.resting.cluster.uuid)
        said = (
            "management: nothing on this management cluster proves that it ever had the cluster, "
            "neither a Lease nor a credential Secret. The cluster may be on another one, so it "
            "does not count as deleted. Ask the operator to check which management cluster the "
            "driver's kubeconfig names."
        )
        rows = self.resting.cluster.says(said, fail=False)
        assert rows.status == "DELETE_FAILED", rows
        rows = self.resting.cluster.until(_is("UNKNOWN"), "UNKNOWN", _HEALTH, fail=False)
        told = rows.cluster["health_status_reason"]
        assert told["cluster"] == "not found on the management cluster", told
        self.explained(_OTHER, "The release has no Lease", self.resting.cluster)
        self.fault(_OTHER, False)
        self.resting.cluster.until(
            lambda rows: rows.status == "DELETE_IN_PROGRESS", "the deletion", _HEALTH, fail=False
        )
        self.resting.cluster.gone()

    @ending
    def delete(self) -> None:
        """Nothing of them is left."""
        for fault in (_STOPPED, _DEGRADED, _IDLE, _OTHER):
            self.fault(fault, False)
        provider.reconfigure({})
        both = (self.resting, self.customer)
        for one in both:
            if one.magnum.rows(one.cluster.uuid) is not None:
                one.delete()
        for one in both:
            one.leave()

    def _outage(self, fault: str, how: str | None, count: int) -> None:
        """Nobody answers for a while: what both clusters say, and that all goes on afterwards."""
        self.fault(fault, True, how)
        self.customer.resize(count)

        def honest(rows: Rows) -> bool:
            grown = self.cluster.rows()
            group = grown.groups["default-worker"]
            # The cluster's row follows the group's when the driver has been asked, which takes its
            # time while nobody answers.
            said = {grown.status, group["status"]}
            assert (group["node_count"], said) != (count, {"UPDATE_COMPLETE"}), grown
            assert not grown.status.endswith("_FAILED"), grown
            assert rows.status == "CREATE_COMPLETE", rows
            return _is("UNKNOWN")(rows)

        rows = self.resting.cluster.until(honest, "UNKNOWN", _HEALTH)
        told = rows.cluster["health_status_reason"]
        self.say(str(told))
        assert _SINCE.fullmatch(told["management"]), told
        self.cluster.says(
            "management: the management cluster cannot be reached; changes already applied continue"
        )
        self.explained(fault, "management")
        self.fault(fault, False)
        assert management.answers(30), "the management API does not answer again"
        self.cluster.complete()
        self.resting.cluster.until(_is("HEALTHY"), "health", _HEALTH)


def _is(health: str) -> Callable[[Rows], bool]:
    return lambda rows: rows.cluster.get("health_status") == health


class TestOutage(LifeCase, life=Outage):
    """create, stop, hang, fail, slow, idle, network gone, go on, no webhooks, wrong one, delete."""
