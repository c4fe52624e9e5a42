# SPDX-License-Identifier: Apache-2.0
"""The lives that are recorded: each asks Magnum, and marks what is true by what is really there."""

from __future__ import annotations

import abc
from collections.abc import Callable
import functools
import sys
import time

import keystoneauth1.exceptions
import urllib3

from magnum.tests.functional.k8s_capi_helm.recording.stream import Stream
from magnum.tests.functional.k8s_capi_helm.sandbox import setting, truth
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer, VERSION
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management
from sandbox.cloud import seed

_OLD = "v1.33.8"
_INTERVAL = 0.5
#: Seconds in which one step has to be through on two busy cores.
_LIMIT = 900.0
#: Seconds between the last look and a mark: so late may a watch be with what was seen by reading.
_SETTLE = 0.5
_NO_ANSWER = (OSError, keystoneauth1.exceptions.ClientException, urllib3.exceptions.HTTPError)
#: Seconds for which a fault is looked at.
_LOOK = 15.0
_KINDS = ("Cluster", "OpenStackCluster", "OpenStackServer", "Machine")


class Story(abc.ABC):
    """One customer's cluster, recorded from its first object to its last.

    :cvar name: of the recording.
    """

    name = "story"

    def __init__(self) -> None:
        self.customer = Customer.new(self.name)
        self.stream = Stream(self.customer.tenant.namespace)

    def tell(self) -> None:
        """All of it. What goes wrong is marked and ends the story."""
        with self.stream.open():
            self._try(self.live)
            self._try(self.leave)

    def _try(self, part: Callable[[], None]) -> None:
        try:
            part()
        except Exception as error:
            self.stream.trouble = f"{part.__name__}: {type(error).__name__}: {error}"
            self.mark(f"broken off: {self.stream.trouble[:300]}")

    @abc.abstractmethod
    def live(self) -> None:
        """What happens to the cluster."""

    def leave(self) -> None:
        """Delete the cluster and see it go."""
        self.mark("delete the cluster")
        self.customer.magnum.delete(self.customer.cluster.uuid)
        self._until(lambda: not self._there(), "gone")
        self.mark("reached: gone")
        self.customer.cluster.gone()
        self.customer.leave()

    def ask(self, what: str, request: Callable[[], object]) -> None:
        """Ask Magnum for something, and mark when Helm has handed it over."""
        before = self._revision()
        self.mark(f"apply: {what}")
        request()
        self._until(lambda: self._revision() > before, "Helm's revision")
        intent = self.customer.cluster.intent
        time.sleep(_SETTLE)
        self.stream.mark("applied", version=intent.version, wanted=dict(intent.counts))

    def see(self, what: str) -> None:
        """Wait until what was asked for is there, at two looks, and mark it; then until it is said.

        Before Magnum has said so it refuses, without a word, what is asked for next.
        """
        self._until(lambda: not self._untruths(), what)
        self._until(lambda: not self._untruths(), what)
        time.sleep(_SETTLE)
        self.mark(f"reached: {what}")
        self._until(self._told, f"Magnum's word: {what}")
        self.mark(f"told: {what}")

    def fault(self, name: str, pattern: str | None) -> None:
        """Begin a fault for names that match, or end it for None."""
        self.mark(f"fault: {name} {'on' if pattern else 'off'}")
        setting.fault(name, pattern is not None, pattern)

    def watch(self, what: str, shown: Callable[[], bool]) -> None:
        """Wait until a fault shows, and look at it for some time."""
        self._until(shown, what)
        time.sleep(_LOOK)
        self.mark(f"NOT reached: {what}")

    def mark(self, text: str) -> None:
        """A mark, which who watches the run sees too."""
        sys.stderr.write(f"{self.name}: {text}\n")
        self.stream.mark(text)

    def pause(self, paused: bool) -> None:
        """Keep Cluster API from working on the cluster, or let it go on."""
        self.mark("pause" if paused else "unpause")
        namespace, change = self.customer.tenant.namespace, {"spec": {"paused": paused}}
        management().patch("Cluster", namespace, self.customer.cluster.release, change)

    def _there(self) -> list[str]:
        namespace = self.customer.tenant.namespace
        return [
            one["metadata"]["name"]
            for kind in _KINDS
            for one in management().objects(kind, namespace)
        ]

    def _untruths(self) -> list[str]:
        look = truth.Look(self.customer.tenant, self.customer.cluster.release)
        return truth.untruths(look, self.customer.cluster.intent)

    def _told(self) -> bool:
        return self.customer.cluster.rows().status.endswith("_COMPLETE")

    def _revision(self) -> int:
        if not hasattr(self.customer, "cluster"):
            return 0
        if not self.customer.cluster.rows().cluster.get("cluster_id"):
            return 0
        release = management().release(
            self.customer.tenant.namespace, self.customer.cluster.release
        )
        # Helm writes a revision down before it changes anything, and calls it deployed at the end.
        deployed = release is not None and release["info"]["status"] == "deployed"
        return int(release["version"]) if release and deployed else 0

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline, trouble = time.monotonic() + _LIMIT, ""
        while True:
            try:
                if holds():
                    return
            except _NO_ANSWER as error:
                # A service of a busy machine: the next look is as good.
                trouble = f"; last {type(error).__name__}: {error}"
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not after {_LIMIT:.0f} s{trouble}")
            time.sleep(_INTERVAL)


class Everyday(Story):
    """One control plane machine: create, scale, add a group, roll and remove it, delete."""

    name = "everyday"

    def live(self) -> None:
        customer = self.customer
        self.ask("create: 1 control plane machine, 1 worker", customer.create)
        self.see("all there")
        for count in (2, 1):
            self.ask(f"default-worker to {count}", functools.partial(customer.resize, count))
            self.see(f"default-worker is {count}")
        labels = {"pool": "first"}
        self.ask("add group extra", lambda: customer.create_group("extra", 1, node_labels=labels))
        self.see("extra there")
        self.ask("labels of extra: other nodes", self._label)
        self.see("rolled out")
        self.ask("remove group extra", lambda: customer.delete_group("extra"))
        self.see("extra gone")

    def _label(self) -> None:
        change = {"node_labels/pool": "second"}
        self.customer.magnum.update_group(self.customer.cluster.uuid, "extra", **change)


class Upgrade(Story):
    """Three control plane machines: create, upgrade, delete."""

    name = "upgrade"

    def live(self) -> None:
        customer = self.customer
        self.ask(
            "create: 3 control plane machines, 1 worker",
            lambda: customer.create(version=_OLD, masters=3),
        )
        self.see("all there")
        self.ask("upgrade, control plane first", lambda: customer.upgrade(VERSION))
        self.see("upgraded")


class Faults(Story):
    """A node that never joins, one that falls silent, a wrong kubelet, a quota, a pause."""

    name = "faults"

    def live(self) -> None:
        customer = self.customer
        self.ask("create: 1 control plane machine, 1 worker", customer.create)
        self.see("all there")
        release = customer.cluster.release
        self.fault("node-never-joins", f"^{release}-late-")
        self.ask("add group late", lambda: customer.create_group("late", 1))
        self.watch("a server without node", lambda: self._is("late", "InfrastructureReady"))
        self.fault("node-never-joins", None)
        self.see("late has joined")
        self.fault("node-not-ready", f"^{release}-late-")
        self.watch("a silent node", lambda: not self._is("late", "NodeReady"))
        self.fault("node-not-ready", None)
        self.see("late is back")
        self.fault("wrong-kubelet", f"^{release}-skewed-")
        self.ask("add group skewed", lambda: customer.create_group("skewed", 1))
        self.watch("a node of another version", lambda: self._is("skewed", "NodeReady"))
        self.ask("remove group skewed", lambda: customer.delete_group("skewed"))
        self.fault("wrong-kubelet", None)
        self.see("skewed gone")
        self._crowd()

    def _is(self, group: str, condition: str) -> bool:
        """Whether a condition of the group's only machine is true."""
        machines = management().objects("Machine", self.customer.tenant.namespace)
        name = f"{self.customer.cluster.release}-{group}"
        mine = [one for one in machines if one["metadata"]["name"].startswith(f"{name}-")]
        return bool(mine) and truth.condition(mine[0], condition) == "True"

    def _is_refused(self) -> bool:
        servers = management().objects("OpenStackServer", self.customer.tenant.namespace)
        return any("Quota exceeded" in str(one.get("status")) for one in servers)

    def _crowd(self) -> None:
        """Nova refuses a server that the driver had counted as fitting."""
        self.pause(True)
        self.ask("default-worker to 2, while paused", lambda: self.customer.resize(2))
        self.watch("nothing, while paused", lambda: True)
        self._quota(len(self.customer.tenant.servers()))
        self.pause(False)
        self.watch("a server over the quota", self._is_refused)
        self._quota(seed.COMPUTE_QUOTA["instances"])
        self.see("default-worker is 2")

    def _quota(self, servers: int) -> None:
        self.mark(f"quota: {servers} servers")
        compute = seed.connect(setting.state(), "admin").compute
        compute.update_quota_set(self.customer.tenant.project_id, instances=servers, force=True)


STORIES: tuple[type[Story], ...] = (Everyday, Upgrade, Faults)
