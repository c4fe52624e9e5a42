# SPDX-License-Identifier: Apache-2.0
"""Played: the data plane of Octavia. What is PENDING becomes ACTIVE after a while (with a fault
ERROR); nothing is forwarded.

The status goes the way of every provider driver, through Octavia's driver agent code, which
also returns quota and removes rows and VIP ports.
https://docs.openstack.org/octavia/latest/contributor/guides/providers.html
"""

from collections.abc import Iterator
import os
import threading
import time
from typing import Any

from octavia.api.drivers.driver_agent import driver_updater
from octavia.common import constants
from octavia.db import api as database
from octavia.db import models
from octavia_lib.api.drivers import provider_base
from oslo_log import log as logging

from sandbox.cloud import faults

LOG = logging.getLogger(__name__)

# Seconds that a load balancer stays PENDING after each change.
SETTLE_SECONDS = float(os.environ.get("SANDBOX_LOAD_BALANCER_SETTLE", "0.5"))
LOOK_EVERY_SECONDS = 0.1

Statuses = dict[str, list[dict[str, str]]]


def _accepted(_driver: Any, *_args: Any, **_kwargs: Any) -> None:
    """Octavia has recorded the request; the settling thread finds it."""


class Driver(provider_base.ProviderDriver):  # type: ignore[misc]
    """A provider that accepts everything. Octavia makes the VIP ports itself, on Neutron."""

    _thread: threading.Thread | None = None
    _thread_lock = threading.Lock()

    def __init__(self) -> None:
        super().__init__()
        with Driver._thread_lock:
            if Driver._thread is None:
                Driver._thread = threading.Thread(target=_settle_forever, daemon=True)
                Driver._thread.start()

    def get_supported_flavor_metadata(self) -> dict[str, str]:
        """No flavor keys."""
        return {}

    def get_supported_availability_zone_metadata(self) -> dict[str, str]:
        """The one key of a zone profile."""
        return {"compute_zone": "name of a compute zone"}

    loadbalancer_create = loadbalancer_update = loadbalancer_delete = _accepted
    loadbalancer_failover = _accepted
    listener_create = listener_update = listener_delete = _accepted
    pool_create = pool_update = pool_delete = _accepted
    member_create = member_update = member_delete = member_batch_update = _accepted
    health_monitor_create = health_monitor_update = health_monitor_delete = _accepted
    l7policy_create = l7policy_update = l7policy_delete = _accepted
    l7rule_create = l7rule_update = l7rule_delete = _accepted
    validate_flavor = validate_availability_zone = _accepted


def _settle_forever() -> None:
    """Settle what has been PENDING for long enough, also what was so before a restart."""
    since: dict[str, float] = {}
    while True:
        time.sleep(LOOK_EVERY_SECONDS)
        try:
            now = time.monotonic()
            since = {lb_id: since.get(lb_id, now) for lb_id in _pending()}
            for lb_id in [key for key, begin in since.items() if now - begin >= SETTLE_SECONDS]:
                _settle(lb_id)
                del since[lb_id]
        except Exception:  # the thread must outlive a locked database
            LOG.exception("Settling load balancers failed; it is tried again")


def _pending() -> list[str]:
    session = database.get_session()
    with session.begin():
        state = models.LoadBalancer.provisioning_status
        return [
            row.id for row in session.query(models.LoadBalancer.id).filter(state.like("PENDING%"))
        ]


def _settle(lb_id: str) -> None:
    session = database.get_session()
    with session.begin():
        balancer = session.get(models.LoadBalancer, lb_id)
        failed = faults.hits(faults.LOAD_BALANCER_FAILS, balancer.name)
        statuses = in_error(lb_id) if failed else settled(balancer)
    answer = driver_updater.DriverUpdater().update_loadbalancer_status(statuses)
    if answer.get("status_code") != 200:
        LOG.error("Octavia refused the status of load balancer %s: %s", lb_id, answer)


def in_error(lb_id: str) -> Statuses:
    """What a load balancer says whose amphora cannot be made, changed or deleted."""
    error = {"provisioning_status": constants.ERROR, "operating_status": constants.OFFLINE}
    return {"loadbalancers": [{"id": lb_id, **error}]}


def settled(balancer: Any) -> Statuses:
    """The final state of a pending load balancer and of everything in it.

    :param balancer: an ``octavia.db.models.LoadBalancer`` or something of its shape.
    """
    goes = balancer.provisioning_status == constants.PENDING_DELETE
    statuses: Statuses = {}
    for kind, item in _children(balancer):
        if goes or item.provisioning_status == constants.PENDING_DELETE:
            update = {"provisioning_status": constants.DELETED}
        elif item.provisioning_status.startswith("PENDING"):
            watched = kind != "members" or item.pool.health_monitor
            update = {
                "provisioning_status": constants.ACTIVE,
                "operating_status": constants.ONLINE if watched else constants.NO_MONITOR,
            }
        else:
            continue
        statuses.setdefault(kind, []).append({"id": item.id, **update})
    statuses["loadbalancers"] = [
        {
            "id": balancer.id,
            "provisioning_status": constants.DELETED if goes else constants.ACTIVE,
            "operating_status": constants.OFFLINE if goes else constants.ONLINE,
        }
    ]
    return statuses


def _children(balancer: Any) -> Iterator[tuple[str, Any]]:
    for listener in balancer.listeners:
        yield "listeners", listener
        for policy in listener.l7policies:
            yield "l7policies", policy
            yield from (("l7rules", rule) for rule in policy.l7rules)
    for pool in balancer.pools:
        yield "pools", pool
        yield from (("members", member) for member in pool.members)
        if pool.health_monitor:
            yield "healthmonitors", pool.health_monitor
