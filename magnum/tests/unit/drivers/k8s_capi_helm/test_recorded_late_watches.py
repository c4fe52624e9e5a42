# SPDX-License-Identifier: Apache-2.0
"""Recorded documents that come late, out of order or not at all: no good word that is not true.

A watch may be behind with any object, and with each by another time. So every object of a look is
taken from some moment up to then, some are left out, and lists come in any order. What was asked
for is always known: it stands in Magnum's rows and in the record.
"""

from __future__ import annotations

import functools

from hypothesis import given, strategies
import testtools

from magnum.drivers.k8s_capi_helm import model, status
from magnum.drivers.k8s_capi_helm.model import conditions
from magnum.drivers.k8s_capi_helm.status.deletion import order as deletion_order
from magnum.tests.unit.drivers.k8s_capi_helm import oracle, recordings_player
from magnum.tests.unit.drivers.k8s_capi_helm.recordings_player import Film
from magnum.tests.unit.drivers.k8s_capi_helm.status_case import after

#: Of what a lost document could not be missed by anybody: it may be gone as well.
_MAY_GO = ("Event", "OpenStackMachine")


@functools.cache
def films() -> tuple[Film, ...]:
    """Every cluster of the project's own recordings at both versions."""
    return tuple(
        film
        for path in recordings_player.own()
        for core in ("v1beta2", "v1beta1")
        for film in recordings_player.films(path, core)
    )


@functools.cache
def true_moments(film: Film) -> frozenset[int]:
    """The moments at which everything was there, of what the specs asked for."""
    numbers = range(len(film.moments))
    return frozenset(number for number in numbers if oracle.truth(film.observed(number)))


@strategies.composite
def shown(draw: strategies.DrawFn) -> tuple[Film, int, model.Observed, bool]:
    """A film, a moment, what is shown of it, and whether something is left out."""
    film = draw(strategies.sampled_from(films()))
    number = draw(strategies.integers(0, len(film.moments) - 1))
    tracks = film.tracks(number)
    late = draw(
        strategies.dictionaries(
            strategies.sampled_from(tracks), strategies.integers(0, number + 1), max_size=8
        )
        if tracks
        else strategies.just({})
    )
    kinds = draw(
        strategies.dictionaries(
            strategies.sampled_from(sorted({kind for kind, _ in tracks}) or [""]),
            strategies.integers(0, 60),
            max_size=4,
        )
    )
    lost = draw(strategies.none() | strategies.sampled_from(tracks)) if tracks else None
    if lost and lost[0] in _MAY_GO:
        lost = None

    def behind(kind: str, name: str) -> int | None:
        if (kind, name) == lost:
            return None
        return max(late.get((kind, name), 0), kinds.get(kind, 0))

    seed = draw(strategies.randoms(use_true_random=False))
    observed = film.observed(number, behind, lambda listed: seed.sample(listed, len(listed)))
    return film, number, observed, lost is not None


class LateTest(testtools.TestCase):
    @given(shown())
    def test_never_complete_wrongly(self, case):
        film, number, observed, _ = case
        state, at = film.state(number), film.moments[number].at
        first = status.evaluate(observed, state, at)
        second = status.evaluate(observed, after(first, state), at)
        if second.status != "UPDATE_COMPLETE":
            self.assertEqual("", first.fingerprint)
            return
        begun = film.moments[number].begun
        self.assertIsNotNone(begun, film.title)
        self.assertTrue(oracle.truth(observed), (film.title, number))
        since = true_moments(film) & set(range(begun, number + 1))
        self.assertTrue(since, f"{film.title}: never true from {begun} to {number}")

    @given(shown())
    def test_never_healthy_wrongly(self, case):
        film, number, observed, _ = case
        state = film.state(number)
        verdict = status.evaluate(observed, state, film.moments[number].at)
        if verdict.health == "HEALTHY":
            # A late document can show a MachineDeployment whose deletion was requested as one that
            # stays, without its machines: Magnum's record of the nodegroup decides.
            leaving = {group.name for group in state.groups if group.status.startswith("DELETE_")}
            machines = [
                machine
                for machine in oracle.wanted_machines(observed)
                if oracle.group_of(machine) not in leaving
            ]
            self.assertTrue(machines and all(map(oracle.has_node, machines)), film.title)
            expected = observed.control_plane["spec"]["replicas"] + sum(
                deployment["spec"]["replicas"]
                for deployment in observed.machine_deployments
                if not conditions.is_terminating(deployment)
                and oracle.group_of(deployment) not in leaving
            )
            self.assertEqual(expected, len(machines))

    @given(shown())
    def test_never_deleted_wrongly(self, case):
        film, number, observed, lossy = case
        verdict = status.evaluate(observed, film.state(number), film.moments[number].at)
        groups = {oracle.group_of(one) for one in observed.machines}
        self.assertEqual(set(), groups & {row.name for row in verdict.groups if row.is_deleted})
        if deletion_order.is_cluster_deleted(observed):
            self.assertEqual(((), ()), (observed.machines, observed.servers))
            left = film.observed(number)
            self.assertLessEqual(len(left.machines) + len(left.servers), int(lossy), film.title)
