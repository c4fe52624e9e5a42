# SPDX-License-Identifier: Apache-2.0
"""Requests about nodegroups that many callers make at once, and what they come to in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
import concurrent.futures
import contextlib
import dataclasses
import random
import time

from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from magnum.tests.functional.k8s_capi_helm.sandbox.cluster import Cluster, INTERVAL
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Json, Refused, Rows
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management
from sandbox.cloud import conductors

CALLERS = 20
#: Seconds in which all that was asked for has to be there, on two busy cores.
LIMIT = 900.0
#: Seconds after which a request is not in the broker's queue any more.
_QUEUED = 60.0
#: Of the reason of a group whose request was lost before its server group was made.
_INTERRUPTED = "was interrupted before its server group was created"
#: Groups that may have a machine in one storm: a storm is about requests.
_MACHINES = 2
#: Helm's subcommand that changes a release.
_CHANGE = "upgrade"
_CREATE, _RESIZE, _UPDATE, _DELETE = "create", "resize", "update", "delete"


@dataclasses.dataclass(frozen=True)
class Wish:
    """One request about a group.

    :ivar value: number of machines, or for an update the upper bound.
    """

    verb: str
    group: str
    value: int = 0

    def __str__(self) -> str:
        return f"{self.verb} {self.group} {self.value}"


def mixed(seed: int, size: int, prefix: str) -> list[list[Wish]]:
    """So many requests about some groups, the same ones for the same seed.

    Those about one group are in the order in which its owner makes them, as of two that are on
    their way together Magnum may take the second first.
    """
    lot = random.Random(seed)  # noqa: S311
    chains: list[list[Wish]] = []
    grown: set[str] = set()
    for _ in range(size):
        open_ones = [chain for chain in chains if chain[-1].verb != _DELETE]
        if len(open_ones) < 3 or lot.random() < 0.3:
            chains.append([Wish(_CREATE, f"{prefix}-{len(chains)}")])
            continue
        chain = lot.choice(open_ones)
        verb, group = lot.choice((_RESIZE, _RESIZE, _UPDATE, _DELETE)), chain[0].group
        value = 0
        if verb == _UPDATE:
            value = lot.randint(3, 9)
        elif verb == _RESIZE and (group in grown or len(grown) < _MACHINES):
            value = lot.randint(0, 1)
            grown.add(group)
        chain.append(Wish(verb, group, value))
    return chains


@dataclasses.dataclass(frozen=True)
class Runs:
    """Helm's work on one release.

    :ivar started: runs of each of its subcommands, those that failed or were killed too.
    :ivar revision: of the release.
    """

    started: Counter[str]
    revision: int


class Storm:
    """What is asked of one cluster by many at once.

    :param say: for who watches.
    """

    def __init__(self, customer: Customer, say: Callable[[str], None]) -> None:
        self.customer = customer
        self.say = say

    @property
    def cluster(self) -> Cluster:
        return self.customer.cluster

    def create(self, names: Iterable[str], *, seed: int = 0, wait: bool = True) -> None:
        """Groups without machines, all at once.

        :param seed: of their order.
        :param wait: for their rows.
        """
        self.rage([[Wish(_CREATE, name)] for name in _shuffled(names, seed)], wait=wait)

    def delete(self, names: Iterable[str], *, seed: int = 0) -> None:
        """Groups go, all at once.

        :param seed: of their order.
        """
        self.rage([[Wish(_DELETE, name)] for name in _shuffled(names, seed)])

    def rage(self, chains: list[list[Wish]], *, wait: bool = True) -> None:
        """Ask for all of it, each group's requests one after the other, the groups side by side.

        :param wait: for a row to say it before the next request about the same group.
        """
        begin, wishes = time.monotonic(), [wish for chain in chains for wish in chain]
        last = {wish.group: wish for wish in wishes if wish.verb != _UPDATE}
        counts = {name: _count(wish) for name, wish in last.items()}
        self.cluster.intent = self.cluster.intent.with_groups(**counts)
        with concurrent.futures.ThreadPoolExecutor(CALLERS) as callers:
            for done in [callers.submit(self._live, chain, wait) for chain in chains]:
                done.result()
        self.say(f"{len(wishes)} requests in {time.monotonic() - begin:.1f} s")

    def see_through(self, what: str, before: Runs) -> int:
        """Wait until all of it is there, in Magnum's rows, in the release and in the objects.

        :param before: what :meth:`runs` said before the storm.
        :returns: how often helm was started since then in order to change the release.
        """
        begin = time.monotonic()
        self.cluster.complete(limit=LIMIT, none_fails=True)
        self.cluster.check_release()
        seconds, runs = time.monotonic() - begin, self.runs()
        started = runs.started - before.started
        self.say(
            f"{what}: all there {seconds:.1f} s later; Helm started: {_listed(started)}; "
            f"{runs.revision - before.revision} revisions of the release"
        )
        return started[_CHANGE]

    def runs(self) -> Runs:
        """Of Helm, up to now."""
        release = management().release(self.customer.tenant.namespace, self.cluster.release)
        assert release is not None, "there is no Helm release"
        started = conductors.helm_runs(setting.state(), self.cluster.release)
        assert started[_CHANGE], "no conductor has logged a run of helm: nothing can be counted"
        return Runs(started, int(release["version"]))

    def again(self, names: Iterable[str]) -> tuple[list[str], list[str]]:
        """Ask again for groups that were lost with a conductor, as their owner would.

        oslo.messaging takes a request from the broker before it is carried out: what a conductor
        had just taken when it was killed is known to nobody but the caller, and there is no row.
        A group whose server group was not made yet fails and says so, as nobody but its owner can
        have one made.

        :returns: names of the groups without a row, and of those that had failed.
        """
        wanted, begin = set(names), time.monotonic()

        def settled(rows: Rows) -> bool:
            states = [rows.groups[name]["status"] for name in wanted & set(rows.groups)]
            if any(state.endswith("_IN_PROGRESS") for state in (rows.status, *states)):
                return False
            return len(states) == len(wanted) or time.monotonic() - begin > _QUEUED

        rows = self.cluster.until(settled, "the end of all that goes on", LIMIT)
        lost = sorted(wanted - set(rows.groups))
        failed = sorted(name for name in wanted if rows.has_failed(name))
        for name in failed:
            reason = self.customer.magnum.group(self.cluster.uuid, name)["status_reason"]
            assert _INTERRUPTED in reason, f"{name}: {reason}"
            self.customer.magnum.delete_group(self.cluster.uuid, name)
        self.cluster.until(lambda rows: not set(failed) & set(rows.groups), "their end", LIMIT)
        for name in (*lost, *failed):
            self.customer.magnum.create_group(self.cluster.uuid, name, 0, min_node_count=0)
        return lost, failed

    def insist(self, name: str) -> None:
        """Ask for a group until Magnum lets it through: the cluster has to have an address."""
        deadline = time.monotonic() + LIMIT
        while True:
            try:
                self.customer.create_group(name, 0, min_node_count=0)
            except Refused as refusal:
                assert refusal.status < 500, refusal
                assert time.monotonic() < deadline, refusal
                time.sleep(INTERVAL)
            else:
                status = self.cluster.rows().status
                self.say(f"{name} is let through, the cluster is {status}")
                return

    def _live(self, chain: list[Wish], wait: bool) -> None:
        for wish in chain:
            self._ask(wish)
            if wait and wish.verb in (_CREATE, _RESIZE):
                self._until(wish, lambda row, wish=wish: row["node_count"] == wish.value)

    def _ask(self, wish: Wish) -> None:
        magnum, uuid = self.customer.magnum, self.cluster.uuid
        if wish.verb == _CREATE:
            magnum.create_group(uuid, wish.group, wish.value, min_node_count=0)
        elif wish.verb == _DELETE:
            magnum.delete_group(uuid, wish.group)
        elif wish.verb == _UPDATE:
            # Magnum's conductor drops an update of a group in another state, without a word.
            self._until(wish, lambda row: str(row["status"]).endswith("_COMPLETE"))
            magnum.update_group(uuid, wish.group, max_node_count=wish.value)
            self._until(wish, lambda row: row["max_node_count"] == wish.value)
        else:
            magnum.resize(uuid, wish.value, nodegroup=wish.group)

    def _until(self, wish: Wish, holds: Callable[[Json], bool]) -> None:
        """Wait until the group's row is so."""
        deadline = time.monotonic() + LIMIT
        row: Json = {}
        while True:
            with contextlib.suppress(Refused):  # Magnum makes the row after its API has answered
                row = self.customer.magnum.group(self.cluster.uuid, wish.group)
                if holds(row):
                    return
            assert time.monotonic() < deadline, f"{wish}: after {LIMIT:.0f} s the row is {row}"
            time.sleep(INTERVAL)


def _count(wish: Wish) -> int | None:
    return None if wish.verb == _DELETE else wish.value


def _shuffled(names: Iterable[str], seed: int) -> list[str]:
    found = list(names)
    random.Random(seed).shuffle(found)  # noqa: S311
    return found


def _listed(started: Counter[str]) -> str:
    return ", ".join(f"{verb} {number}" for verb, number in sorted(started.items())) or "never"
