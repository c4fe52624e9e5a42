# SPDX-License-Identifier: Apache-2.0
"""What a billing system hears of a cluster on the message bus: each change once.

It is here because only this sandbox has Magnum's message bus, and two conductors, each of which
runs Magnum's periodic tasks for every cluster.
"""

from __future__ import annotations

import threading
from typing import Any

from oslo_config import cfg
import oslo_messaging

from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management
from sandbox.cloud.config import Paths

_WORKERS = "default-worker"
_LABELS = {"auto_scaling_enabled": "true", "min_node_count": "1", "max_node_count": "3"}
#: Magnum's control exchange and the topic of oslo.messaging's notifications.
_TARGET = oslo_messaging.Target(exchange="magnum", topic="notifications")
_NO_NODE = "node-never-joins"
#: Minutes in which a creation has to be complete, and is not.
_SHORT = 2
#: Magnum's health poll comes once a minute in each conductor, so once more in both after an event.
_POLLED = 75.0
#: Seconds in which an event has to arrive.
_ARRIVES = 60.0
Event = tuple[str, str, int]


class Listener:
    """Collects what Magnum sends about clusters; it leaves no message in the queue."""

    def __init__(self) -> None:
        conf = cfg.ConfigOpts()
        conf(["--config-file", str(Paths.of(setting.state()).conf("magnum"))], project="magnum")
        transport = oslo_messaging.get_notification_transport(conf)
        self._arrived = threading.Condition()
        self._events: dict[str, list[Event]] = {}
        self._listener = oslo_messaging.get_notification_listener(
            transport, [_TARGET], [self], executor="threading"
        )
        self._listener.start()

    def info(self, _context: Any, _publisher: str, kind: str, event: Any, _meta: Any) -> None:
        """A notification of priority INFO: something begins, or has succeeded."""
        self._note(kind, event)

    def error(self, _context: Any, _publisher: str, kind: str, event: Any, _meta: Any) -> None:
        """A notification of priority ERROR: something has failed."""
        assert event["outcome"] == "failure", event
        self._note(kind, event)

    def _note(self, kind: str, event: Any) -> None:
        if kind.startswith("magnum.cluster."):
            (attachment,) = event["target"]["attachments"]
            found = event["action"], event["outcome"], int(attachment["content"]["node_count"])
            with self._arrived:
                self._events.setdefault(event["target"]["id"], []).append(found)
                self._arrived.notify_all()

    def events(self, cluster: str, count: int, seconds: float) -> list[Event]:
        """Action, outcome and number of nodes of all events about a cluster so far.

        :param count: of events to wait for, for some seconds at most.
        """
        with self._arrived:
            found = self._events.setdefault(cluster, [])
            self._arrived.wait_for(lambda: len(found) >= count, seconds)
            return list(found)

    def stop(self) -> None:
        """End it."""
        self._listener.stop()
        self._listener.wait()


class Billed(Life):
    """A creation that fails and recovers, the autoscaler, a nodegroup, the deletion."""

    name = "billed"
    _listener: Listener

    def new_customer(self) -> Customer:
        self._listener = Listener()
        self._expected: list[Event] = []
        return super().new_customer()

    @step
    def failure(self) -> None:
        """No machine joins in time: Magnum's own job tells the failure."""
        template = self.customer.template(labels=_LABELS)
        self.customer.create(template=template, create_timeout=_SHORT)
        self.cluster.begun()
        self.fault(_NO_NODE, True, f"^{self.cluster.release}-")
        self.cluster.until(lambda rows: rows.status == "CREATE_FAILED", "failure", fail=False)
        self._hears(("create", "pending", 1), ("create", "failure", 1))

    @step
    def recovery(self) -> None:
        """The health poll of one of the two conductors sends its success."""
        self.fault(_NO_NODE, False)
        self.cluster.until(lambda rows: rows.status == "CREATE_COMPLETE", "recovery", fail=False)
        self._hears(("create", "success", 1), quiet=_POLLED)

    @step
    def autoscaler(self) -> None:
        """Another number without a request."""
        (deployment,) = management().objects("MachineDeployment", self.customer.tenant.namespace)
        (program,) = management().objects("Deployment", self.customer.tenant.namespace)
        account = program["spec"]["template"]["spec"]["serviceAccountName"]
        name, namespace = deployment["metadata"]["name"], self.customer.tenant.namespace
        management().scale(namespace, name, 2, account)
        self.cluster.intent = self.cluster.intent.with_groups(default_worker=2)
        self.cluster.until(lambda rows: rows.groups[_WORKERS]["node_count"] == 2, "two nodes")
        self._hears(("update", "success", 2), quiet=_POLLED)

    @step
    def nodegroup(self) -> None:
        """Magnum itself does not tell that it begins."""
        self.customer.create_group("more", 1)
        self.cluster.complete()
        self._hears(("update", "pending", 3), ("update", "success", 3))

    @ending
    def delete(self) -> None:
        self.fault(_NO_NODE, False)
        self.customer.delete()
        self._hears(("delete", "pending", 3), ("delete", "success", 3))
        self._listener.stop()
        self.customer.leave()

    def _hears(self, *more: Event, quiet: float = 5.0) -> None:
        """These come, once each and no others, also within some seconds afterwards."""
        self._expected += more
        count = len(self._expected)
        for number, seconds in ((count, _ARRIVES), (count + 1, quiet)):
            heard = self._listener.events(self.cluster.uuid, number, seconds)
            assert heard == self._expected, heard
        self.say(f"heard: {', '.join(map(str, more))}")


class TestBilled(LifeCase, life=Billed):
    """failure, recovery, autoscaler, nodegroup, delete."""
