# SPDX-License-Identifier: Apache-2.0
"""What the played load balancer provider makes of what is PENDING."""

from types import SimpleNamespace
import unittest

from sandbox.cloud.plugins.loadbalancer import in_error, settled


def item(name: str, status: str, **parts: object) -> SimpleNamespace:
    return SimpleNamespace(id=name, provisioning_status=status, **parts)


def balancer(status: str, member: str, monitor: bool = True) -> SimpleNamespace:
    pool = item("pool", "ACTIVE", members=[], health_monitor=None)
    pool.members = [item("member", member, pool=pool)]
    pool.health_monitor = item("monitor", "PENDING_CREATE") if monitor else None
    listener = item("listener", "PENDING_UPDATE", l7policies=[])
    return item("lb", status, listeners=[listener], pools=[pool])


class TestSettled(unittest.TestCase):
    def test_what_was_pending_is_active_and_the_rest_is_left_alone(self) -> None:
        online = {"provisioning_status": "ACTIVE", "operating_status": "ONLINE"}
        self.assertEqual(
            {
                "listeners": [{"id": "listener", **online}],
                "members": [{"id": "member", **online}],
                "healthmonitors": [{"id": "monitor", **online}],
                "loadbalancers": [{"id": "lb", **online}],
            },
            settled(balancer("PENDING_UPDATE", "PENDING_CREATE")),
        )

    def test_a_member_that_nobody_watches_has_no_monitor(self) -> None:
        found = settled(balancer("PENDING_UPDATE", "PENDING_CREATE", monitor=False))
        self.assertEqual("NO_MONITOR", found["members"][0]["operating_status"])

    def test_a_deleted_member_goes_alone(self) -> None:
        found = settled(balancer("PENDING_UPDATE", "PENDING_DELETE"))
        self.assertEqual([{"id": "member", "provisioning_status": "DELETED"}], found["members"])
        self.assertEqual("ACTIVE", found["loadbalancers"][0]["provisioning_status"])

    def test_a_deleted_load_balancer_takes_everything_along(self) -> None:
        found = settled(balancer("PENDING_DELETE", "ACTIVE"))
        kinds = {
            kind
            for kind, items in found.items()
            for i in items
            if i["provisioning_status"] == "DELETED"
        }
        self.assertEqual(
            {"listeners", "pools", "members", "healthmonitors", "loadbalancers"}, kinds
        )

    def test_one_that_fails_is_in_error_and_not_pending_for_ever(self) -> None:
        (told,) = in_error("lb")["loadbalancers"]
        self.assertEqual(("lb", "ERROR"), (told["id"], told["provisioning_status"]))
