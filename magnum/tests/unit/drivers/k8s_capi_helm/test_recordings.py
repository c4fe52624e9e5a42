# SPDX-License-Identifier: Apache-2.0
"""Recordings of real controllers, look by look: no word before the truth, and the word after it.

The truth is told by another kind of evidence than the judge takes: by nodes and servers, and by the
templates that machines were made of. The judge remembers nothing but the last look, and is asked
here after every single change: so whenever a conductor starts to look, and however often it looks,
its looks are among these.

The project's own recordings are always replayed (``make record`` makes them anew); those of the
directory that the environment variable ``K8S_CAPI_HELM_RECORDINGS`` names widen the run.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator
import dataclasses
import datetime
import gzip
import itertools
import pathlib
import re

import testtools

from magnum.drivers.k8s_capi_helm import model, status
from magnum.drivers.k8s_capi_helm.status.deletion import order as deletion_order
from magnum.tests.unit.drivers.k8s_capi_helm import oracle, recordings_player
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one
from magnum.tests.unit.drivers.k8s_capi_helm.recordings_player import Film
from magnum.tests.unit.drivers.k8s_capi_helm.status_case import after

VERSIONS = ("v1beta2", "v1beta1")
STARTS = tuple(
    f"{verb}_{stage}" for verb in ("CREATE", "UPDATE") for stage in ("IN_PROGRESS", "FAILED")
)
#: What a reason says of a machine on its way, in the only order in which that can be.
STAGES = (
    r"machine (\S+) waits for its bootstrap data",
    r"the server for machine (\S+) is being created",
    r"the server for machine (\S+) runs, its node has not joined yet",
    r"machine (\S+) is not ready",
    r"machine (\S+) is being deleted",
)
#: What joining sentences must not leave: a full stop or a colon where the line goes on or ends.
_CLUMSY = re.compile(r"(?<!\.)\.[,;]|(?<!\.)\. \(|:(?:[;,]|$)|[,;:] [,;:]|\* ")
#: So late, in seconds, may the mark of a true moment be: its driver looks now and then, and twice.
LATENESS = 10.0


def texts(verdict: model.Verdict) -> list[str]:
    """Everything that a tenant reads of a verdict."""
    reasons = (verdict.reason, *(one.reason for one in verdict.groups))
    return [*(one for one in reasons if one), *verdict.health_reason.values()]


def films(paths: Iterable[pathlib.Path]) -> Iterator[Film]:
    """Every cluster of every recording at both versions."""
    for path, core in itertools.product(paths, VERSIONS):
        yield from recordings_player.films(path, core)


class Replay(abc.ABC):
    """What holds for every recording, every look, both API versions."""

    @abc.abstractmethod
    def files(self) -> list[pathlib.Path]:
        """The recordings, or the test is skipped."""

    def test_no_word_before_the_truth_and_the_word_after_it(self):
        for film in films(at_least_one(self.files())):
            self.replay(film)

    def replay(self, film: Film) -> None:
        """Look after every change; where a mark says so, it has to be COMPLETE at the second."""
        looks: dict[str, str] = {}
        stages: dict[str, int] = {}
        due = reached(film)
        for number, moment in enumerate(film.moments):
            word = STARTS[number % len(STARTS)]
            state, observed = film.state(number, word), film.observed(number)
            when = f"{film.title} at {moment.at} {moment.mark}"
            if moment.mark:
                self.arrive(film, number, when)
                continue
            known = dataclasses.replace(
                state, ready_fingerprint=looks.get("", ""), groups=_known(state, looks)
            )
            verdict = status.evaluate(observed, known, moment.at)
            looks = {
                "": verdict.fingerprint,
                **{one.name: one.fingerprint for one in verdict.groups},
            }
            if verdict.fingerprint:
                self.assertTrue(oracle.truth(observed), when)
                self.assertFalse(self.is_early(film, number, due[number]), when)
            complete = verdict.status.endswith("_COMPLETE")
            self.assertEqual(complete, verdict.fingerprint == known.ready_fingerprint != "", when)
            self.assertEqual(complete, verdict.reason is None, when)
            self.groups(observed, verdict, when)
            self.health(observed, verdict, when)
            self.assertEqual([], [one for one in texts(verdict) if _CLUMSY.search(one)], when)
            for name, stage in told_stages(verdict):
                self.assertGreaterEqual(stage, stages.get(name, 0), (when, verdict.reason))
                stages[name] = stage

    @staticmethod
    def is_early(film: Film, number: int, due: datetime.datetime) -> bool:
        """Before the marked moment, as far as the recording can tell.

        Where it does not say what was asked for, that is known when the specs have arrived.
        """
        moment = film.moments[number]
        begun = film.moments[moment.begun or 0].at
        settled = moment.wanted is not None or (moment.at - begun).total_seconds() > 1
        return settled and (due - moment.at).total_seconds() > LATENESS

    def arrive(self, film: Film, number: int, when: str) -> None:
        """A true moment: complete within two looks, whatever the rows say."""
        moment, observed = film.moments[number], film.observed(number)
        if moment.mark.startswith("reached") and (moment.begun is None and not observed.machines):
            self.assertTrue(deletion_order.is_cluster_deleted(observed), when)
            return
        if not moment.mark.startswith("reached") or moment.begun is None:
            return
        for word in STARTS:
            state = film.state(number, word)
            if state.groups:
                first = status.evaluate(observed, state, moment.at)
                second = status.evaluate(observed, after(first, state), moment.at)
                self.assertEqual(f"{word.partition('_')[0]}_COMPLETE", second.status, (when, first))
                self.assertIsNone(second.reason)

    def groups(self, observed: model.Observed, verdict: model.Verdict, when: str) -> None:
        """A nodegroup is complete with its nodes, and gone without any machine."""
        for row in verdict.groups:
            mine = [one for one in observed.machines if oracle.group_of(one) == row.name]
            if row.status.endswith("_COMPLETE"):
                self.assertTrue(all(map(oracle.has_node, mine)), (when, row))
                self.assertTrue(all(oracle.is_new(one, observed) for one in mine), (when, row))
            if row.is_deleted:
                self.assertEqual([], mine, (when, row))

    def health(self, observed: model.Observed, verdict: model.Verdict, when: str) -> None:
        """Nobody is healthy while a machine is down; nothing is gone while something is left."""
        if verdict.health == "HEALTHY":
            self.assertTrue(all(map(oracle.has_node, oracle.wanted_machines(observed))), when)
        if deletion_order.is_cluster_deleted(observed):
            self.assertEqual(((), ()), (observed.servers, observed.machines), when)

    def test_every_piece_of_a_recorded_complete_look_counts(self):
        tried = 0
        for film in films(self.files()):
            for number in complete_looks(film)[:1]:
                at, state = film.moments[number].at, film.state(number)
                for broken in oracle.breaks(film.observed(number)):
                    verdict = status.evaluate(broken, state, at)
                    self.assertEqual("", verdict.fingerprint, film.title)
                    self.assertFalse(deletion_order.is_cluster_deleted(broken))
                    tried += 1
        self.assertGreater(tried, 0)


class OwnTest(Replay, testtools.TestCase):
    """The project's own recordings."""

    def files(self) -> list[pathlib.Path]:
        return recordings_player.own()

    def test_what_others_take_for_done_would_be_caught(self):
        lies = dict.fromkeys(oracle.NAIVE, 0)
        for film in films((*recordings_player.own(), *recordings_player.others())):
            for number, moment in enumerate(film.moments):
                observed = film.observed(number)
                there = moment.begun is not None and observed.machine_deployments
                if there and not isinstance(observed.control_plane, model.Missing):
                    for name, check in oracle.NAIVE.items():
                        lies[name] += check(observed) and not oracle.truth(observed)
        self.assertEqual([], [name for name, count in lies.items() if not count])


class FilesTest(testtools.TestCase):
    """What stands in the project's own recordings."""

    #: Text that a recording must not hold: what is secret, what is nobody's business, what is big.
    SECRET = (
        "PRIVATE KEY",
        "application_credential",
        'clouds.yaml":',
        "kubeadmConfigSpec",
        "managedFields",
        "password",
        "userData",
        "/home/",
        "/root/",
        "/tmp/",
    )
    LARGEST = 1000 * 1024
    OLDEST = "capi-1.10"

    def test_every_story_is_there(self):
        stories = ["everyday.jsonl.gz", "faults.jsonl.gz", "upgrade.jsonl.gz"]
        found = {str(path.relative_to(recordings_player.OWN)) for path in recordings_player.own()}
        oldest = [f"{self.OLDEST}/{name}" for name in stories]
        self.assertEqual({*stories, *oldest}, found)

    def test_the_oldest_cluster_api_serves_one_version(self):
        for path in at_least_one((recordings_player.OWN / self.OLDEST).iterdir()):
            self.assertEqual((), recordings_player.films(path, "v1beta2"))
            self.assertTrue(recordings_player.films(path, "v1beta1"))

    def test_they_are_small_and_hold_nothing_secret(self):
        found = recordings_player.own()
        self.assertLess(sum(path.stat().st_size for path in found), self.LARGEST)
        for path in found:
            text = gzip.decompress(path.read_bytes()).decode()
            self.assertEqual([], [one for one in self.SECRET if one in text], path.name)

    def test_they_show_every_kind_that_is_judged(self):
        for path in at_least_one(recordings_player.own()):
            kinds = {line.get("kind") for line in recordings_player.lines(path)}
            self.assertLessEqual(
                {
                    "Cluster",
                    "KubeadmControlPlane",
                    "MachineDeployment",
                    "MachineSet",
                    "Machine",
                    "OpenStackCluster",
                    "OpenStackServer",
                    "HelmRelease",
                    "Manifests",
                    "Event",
                },
                kinds,
            )


class OtherTest(Replay, testtools.TestCase):
    """Recordings that somebody else made."""

    def files(self) -> list[pathlib.Path]:
        found = recordings_player.others()
        if not found:
            self.skipTest(
                f"{recordings_player.ENVIRONMENT} names no directory with other recordings; "
                "the project's own are replayed anyway"
            )
        return found


def reached(film: Film) -> list[datetime.datetime]:
    """For each moment, when what was wanted then is first marked as reached (else: never)."""
    first: dict[int | None, datetime.datetime] = {}
    for moment in film.moments:
        if moment.mark.startswith("reached"):
            first.setdefault(moment.begun, moment.at)
    return [first.get(moment.begun, film.moments[-1].at) for moment in film.moments]


def told_stages(verdict: model.Verdict) -> Iterator[tuple[str, int]]:
    """Machines of which the cluster's reason says how far they are, and that as a number."""
    for number, pattern in enumerate(STAGES):
        for name in re.findall(pattern, verdict.reason or ""):
            yield name, number


def complete_looks(film: Film) -> list[int]:
    """The looks of a film that find everything in place."""
    found = []
    for number, moment in enumerate(film.moments):
        if not moment.mark and moment.begun is not None and oracle.truth(film.observed(number)):
            verdict = status.evaluate(film.observed(number), film.state(number), moment.at)
            found += [number] if verdict.fingerprint else []
    return found


def _known(state: model.MagnumState, looks: dict[str, str]) -> tuple[model.GroupState, ...]:
    return tuple(
        dataclasses.replace(one, ready_fingerprint=looks.get(one.name, "")) for one in state.groups
    )


class FaultTest(testtools.TestCase):
    """Reasons that the recorded faults must give, at some look."""

    WANTED = (
        ("everyday", "everyday-", "waiting: 1 of 2 default-worker machines are ready; machine "),
        ("everyday", "everyday-", "waiting: an old default-worker machine still exists: everyday-"),
        ("upgrade", "upgrade-", "waiting: 1 of 3 control plane machines are ready at version 1.34"),
        ("upgrade", "upgrade-", "waiting: nodegroup default-worker is not set to version 1.34"),
        ("faults", "faults-", "runs, its node has not joined yet, since "),
        ("faults", "faults-", "is not ready: Node.Ready: Kubelet stopped posting node status"),
        ("faults", "faults-", " runs kubelet v1.30.0 instead of v1.34.4: the image does"),
        ("faults", "faults-", "waiting: the Cluster is paused on the management cluster, since "),
        ("faults", "faults-", "quota: Quota exceeded for instances: Requested 1, but already"),
        ("08-server_error", "rec", "quota: Quota exceeded for cores: Requested 4, but already"),
        (
            "08-server_error",
            "rec",
            "internal: the server is in ERROR and Nova gives no reason (server rec-",
        ),
        ("09-no_node", "rec", "Health check failed: Node failed to report startup in 1m0s"),
        ("11-wrong_kubelet", "rec", "image: machine rec-gpu-g8l78-pcvdc runs kubelet v1."),
        ("12-pause", "rec", "is paused on the management cluster"),
        ("19-infra_faults", "f-net-quota", "quota: Quota exceeded for resources: ['network']."),
        ("19-infra_faults", "f-port-quota", "quota: Quota exceeded for resources: ['port']."),
        ("21-mhc_infra", "rec", "1 of 2 gpu machines are ready"),
    )

    def test_faults(self):
        there = {
            path.name.partition(".")[0]: path
            for path in (*recordings_player.own(), *recordings_player.others())
        }
        wanted = [one for one in self.WANTED if one[0] in there]
        self.assertNotEqual([], wanted)
        for name in sorted({one[0] for one in wanted}):
            reasons = {
                (film.cluster, status.evaluate(film.observed(n), film.state(n), moment.at).reason)
                for film in recordings_player.films(there[name], "v1beta2")
                for n, moment in enumerate(film.moments)
                if moment.begun is not None
            }
            for _, cluster, text in [one for one in wanted if one[0] == name]:
                found = [reason or "" for of, reason in reasons if of.startswith(cluster)]
                self.assertTrue(any(text in one for one in found), (name, text, sorted(found)))
