# SPDX-License-Identifier: Apache-2.0
"""Recordings judged by a conductor that has just begun, beside one that has watched all along.

What a process has seen itself is gone with it. At any look, also long after everything has come to
a halt, the new one says what the old one said: the Leases of controllers tell it what time it is
there, and where it may not read those the rows have what was told already.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime

import testtools

from magnum.drivers.k8s_capi_helm import model, status
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.process.controller_check import ControllerCheck
from magnum.tests.unit.drivers.k8s_capi_helm import builders, recordings_player
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.recordings_player import Film

LEASE = "capi-system/controller-leader-election-capi"
PATIENCE = datetime.timedelta(minutes=3)
#: Between two of these everything stands still, past each limit that there is.
PAUSES = tuple(datetime.timedelta(minutes=one) for one in (0, 4, 12, 45))
WORDS = ("CREATE_IN_PROGRESS", "UPDATE_FAILED", "UPDATE_COMPLETE", "DELETE_IN_PROGRESS")
STEP = 41


class Process:
    """A conductor's process, in the time of a film."""

    def __init__(self, kube: FakeKube, began: datetime.datetime) -> None:
        self._kube, self._began, self._now = kube, began, began
        self._controllers = ControllerCheck([LEASE], PATIENCE, clock=self._seconds)

    def _seconds(self) -> float:
        return (self._now - self._began).total_seconds()

    def verdict(
        self, look: model.Observed, state: model.MagnumState, now: datetime.datetime
    ) -> model.Verdict:
        self._now = now
        said = "\n".join((state.status_reason or "", *state.health_reason.values()))
        look = dataclasses.replace(look, at=now, asof=None)
        look = self._controllers.observe_controllers(self._kube, look, said)
        return status.evaluate(look, state, now)


def renewed(kube: FakeKube, at: datetime.datetime) -> None:
    namespace, _, name = LEASE.partition("/")
    spec = {"renewTime": f"{at:%Y-%m-%dT%H:%M:%S.%fZ}", "leaseDurationSeconds": 15}
    kube.put(names.LEASE, {"metadata": {"name": name, "namespace": namespace}, "spec": spec})


def after(state: model.MagnumState, verdict: model.Verdict) -> model.MagnumState:
    """The rows once a verdict was written; no look of it is kept, so that nothing ends."""
    told = {one.name: one for one in verdict.groups}
    return dataclasses.replace(
        state,
        status_reason=verdict.reason,
        health_reason=verdict.health_reason,
        groups=tuple(
            dataclasses.replace(one, reason=told[one.name].reason) for one in state.groups
        ),
    )


class TestRemediation(testtools.TestCase):
    """A machine whose node never came is deleted, and another one is made in its place."""

    def test_the_cause_stays_until_the_next_one_is_there(self) -> None:
        group, look = "default-worker", builders.observed({"default-worker": 2})
        old = next(one for one in look.machines if one["metadata"]["name"].endswith("worker-m1"))
        name, made = f"{builders.RELEASE}-{group}-rs1-m1", "2026-11-21T11:59:00Z"
        old["metadata"]["name"] = name
        builders.say(old, "Ready", "False", "* HealthCheckSucceeded: failed")
        failed = "Health check failed: Node failed to report startup in 10m0s"
        builders.say(old, "HealthCheckSucceeded", "False", failed)
        state = builders.state("UPDATE_IN_PROGRESS", groups={group: 2})
        stages = [copy.deepcopy(look)]
        old["metadata"].update(generation=7, deletionTimestamp=made)
        for condition in old["status"]["conditions"]:
            condition["observedGeneration"] = 6
        stages.append(look)
        rest = tuple(one for one in look.machines if one is not old)
        stages.append(dataclasses.replace(look, machines=rest))
        new = builders.machine(group, 7)
        builders.say(new, "Ready", "False", "* NodeHealthy: waiting")
        builders.say(new, "InfrastructureReady", "False", "not yet")
        del new["status"]["nodeRef"]
        stages.append(dataclasses.replace(look, machines=(*rest, new)))
        begin = f"bootstrap: machine {name}: {failed}; "
        for number, one in enumerate(stages):
            verdict = status.evaluate(one, state, builders.NOW)
            self.assertTrue((verdict.reason or "").startswith(begin), (number, verdict.reason))
            state = after(state, verdict)
        builders.say(new, "BootstrapConfigReady", "False", "bootstrap data failed: no space")
        verdict = status.evaluate(stages[-1], state, builders.NOW)
        own = f"bootstrap: machine {new['metadata']['name']}: bootstrap data failed"
        self.assertTrue((verdict.reason or "").startswith(own), verdict.reason)


class TestRestarts(testtools.TestCase):
    def films(self) -> list[Film]:
        paths = (*recordings_player.own(), *recordings_player.others())
        return [film for path in paths for film in recordings_player.films(path, "v1beta2")]

    def play(self, *, leases: bool, dead: bool = False) -> int:
        """Judge each look as both, and demand the same words; returns how many reasons there were.

        :param leases: whether the driver may read any.
        :param dead: whether the controllers have stopped with the film.
        """
        reasons = set()
        for film in self.films():
            for count, number in enumerate(range(0, len(film.moments), STEP)):
                at = film.moments[number].at
                kube = FakeKube()
                if leases:
                    renewed(kube, at)
                old, state = Process(kube, at), film.state(number, WORDS[count % 4])
                for pause in PAUSES:
                    look, now = film.observed(number), at + pause
                    if leases and not dead:
                        renewed(kube, now)
                    first = old.verdict(look, state, now)
                    state = after(state, first)
                    new = Process(kube, now - datetime.timedelta(days=1))
                    second = new.verdict(look, state, now)
                    self.assertEqual(first, second, (film.title, number, pause))
                    reasons.add(first.reason)
        return len(reasons)

    def test_the_same_words_while_controllers_live(self) -> None:
        self.assertGreater(self.play(leases=True), 20)

    def test_the_same_words_while_they_are_gone(self) -> None:
        self.assertGreater(self.play(leases=True, dead=True), 20)

    def test_the_same_words_without_their_leases(self) -> None:
        self.assertGreater(self.play(leases=False), 20)
