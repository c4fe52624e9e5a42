# SPDX-License-Identifier: Apache-2.0
"""Recordings of real controllers, look by look: no word before the truth, and the word after it.

The truth is told by another kind of evidence than the judge takes: by nodes and servers, and by the
templates that machines were made of. Recordings that the environment variable
``K8S_CAPI_HELM_RECORDINGS`` names (a directory) widen the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import dataclasses
import datetime
import pathlib

import testtools

from magnum.drivers.k8s_capi_helm import conditions, deletion, model, names, status
from magnum.tests.unit.drivers.k8s_capi_helm import replay
from magnum.tests.unit.drivers.k8s_capi_helm.scenes import Json

VERSIONS = ("v1beta2", "v1beta1")
#: Marks of the recordings' driver after which what was asked for is on the management cluster.
_HANDED_OVER = ("applied", "scale", "unpause", "delete Machine")
_BEGINS = ("apply", "delete", "scale", "unpause", "Cluster.spec.paused")


@dataclasses.dataclass(frozen=True)
class Look:
    """One look of a replay; ``mark`` is what the recording's driver said at that moment."""

    observed: model.Observed
    state: model.MagnumState
    at: datetime.datetime
    mark: str = ""


def looks(path: pathlib.Path, version: str, cluster: str) -> Iterator[Look]:
    """A look after every recorded change, while nothing is being handed over."""
    world, handed_over = replay.World(version), False
    for line in replay.lines(path):
        mark = str(line.get("mark", ""))
        if mark.startswith(_HANDED_OVER):
            handed_over = True
        elif mark.startswith(_BEGINS):
            handed_over = False
        if not mark and not world.take(line):
            continue
        at = replay.moment(line)
        state = model.MagnumState(
            cluster, "UPDATE_IN_PROGRESS", None, world.wanted(cluster), applied=handed_over
        )
        yield Look(world.observed(cluster, at), state, at, mark)


def clusters(path: pathlib.Path) -> list[str]:
    """Names of the clusters of a recording."""
    found = {line["name"] for line in replay.lines(path) if line.get("kind") == "Cluster"}
    return sorted(found)


def has_node(machine: Json) -> bool:
    """The machine's node is ready; told by the node's own condition, not by a summary."""
    said = conditions.dig(machine, "status", "v1beta2", "conditions") or conditions.dig(
        machine, "status", "conditions"
    )
    ready = {one["type"]: one["status"] for one in said or ()}
    return ready.get("NodeReady") == "True" and not conditions.deleting(machine)


def made_of(machine: Json, observed: model.Observed) -> Json | None:
    """The template that the machine was made of: its MachineSet's."""
    owners = {one["name"] for one in machine["metadata"].get("ownerReferences", ())}
    for one in observed.machine_sets:
        if one["metadata"]["name"] in owners:
            return dict(one["spec"]["template"]["spec"])
    return None


def truth(observed: model.Observed) -> bool:
    """As many ready nodes of the wanted template as are wanted, and no other machine."""
    if isinstance(observed.control_plane, model.Missing):
        return False
    wanted = observed.control_plane["spec"]["replicas"]
    active = {
        one["metadata"]["name"]
        for one in observed.servers
        if one.get("status", {}).get("instanceState") == "ACTIVE"
    }
    good = set()
    for machine in observed.machines:
        name = machine["metadata"]["name"]
        server = machine["spec"]["infrastructureRef"]["name"]
        if has_node(machine) and server in active and is_new(machine, observed):
            good.add(name)
    wanted += sum(one["spec"]["replicas"] for one in observed.machine_deployments)
    return len(good) == wanted == len(observed.machines)


def is_new(machine: Json, observed: model.Observed) -> bool:
    """The machine is of the newest template of its group."""
    labels = machine["metadata"]["labels"]
    if names.LABEL_CONTROL_PLANE in labels:
        return bool(machine["spec"]["version"] == observed.control_plane["spec"]["version"])
    for one in observed.machine_deployments:
        if one["metadata"]["name"] == labels.get(names.LABEL_DEPLOYMENT_NAME):
            made, wanted = made_of(machine, observed), one["spec"]["template"]["spec"]
            return made is not None and all(
                made.get(key) == wanted.get(key)
                for key in ("version", "infrastructureRef", "bootstrap")
            )
    return False


def wanted_machines(observed: model.Observed) -> list[Json]:
    """All machines but those of groups on their way out."""
    kept = {
        one["metadata"]["name"]
        for one in observed.machine_deployments
        if not conditions.deleting(one)
    }
    return [
        one
        for one in observed.machines
        if names.LABEL_CONTROL_PLANE in one["metadata"]["labels"]
        or one["metadata"]["labels"].get(names.LABEL_DEPLOYMENT_NAME) in kept
    ]


# What other drivers take for done -----------------------------------------------------------------
def phase_running(observed: model.Observed) -> bool:
    return all(
        one.get("status", {}).get("phase") == "Running" for one in observed.machine_deployments
    )


def cluster_available(observed: model.Observed) -> bool:
    return conditions.condition(observed.cluster, "Available").good


def cluster_available_and_quiet(observed: model.Observed) -> bool:
    quiet = ("RollingOut", "ScalingUp", "ScalingDown")
    return (
        cluster_available(observed)
        and conditions.generation_seen(observed.cluster)
        and all(conditions.condition(observed.cluster, kind).good for kind in quiet)
    )


def counters_equal(observed: model.Observed) -> bool:
    keys = ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")
    return all(
        conditions.generation_seen(one)
        and conditions.condition(one, "RollingOut").good
        and {conditions.counter(one, key) for key in keys} == {one["spec"]["replicas"]}
        for one in (*observed.machine_deployments, observed.control_plane)
    )


def complete_look(path: pathlib.Path, version: str) -> Look | None:
    """The first look of a recording that finds everything in place."""
    for look in looks(path, version, clusters(path)[0]):
        if not look.mark and look.state.applied and look.state.groups and truth(look.observed):
            verdict = status.judge(look.observed, look.state, look.at)
            if verdict.fingerprint:
                return look
    return None


def breaks(observed: model.Observed) -> Iterator[model.Observed]:
    """Looks that lack one object, or have one that its controller has not seen yet."""
    for kind in ("cluster", "infrastructure", "control_plane"):
        for why in model.Missing:
            yield dataclasses.replace(observed, **{kind: why})
    for kind in ("machine_deployments", "machine_sets", "machines", "servers"):
        listed = getattr(observed, kind)
        yield dataclasses.replace(observed, **{kind: model.Missing.UNREADABLE})
        for index, thing in enumerate(listed):
            rest = (*listed[:index], *listed[index + 1 :])
            if not is_leftover(thing):
                yield dataclasses.replace(observed, **{kind: rest})
            if kind != "servers" and not is_leftover(thing):
                meta = {**thing["metadata"], "generation": thing["metadata"]["generation"] + 1}
                aged = (*rest, {**thing, "metadata": meta})
                yield dataclasses.replace(observed, **{kind: aged})


def is_leftover(thing: Json) -> bool:
    """An old, empty MachineSet, which may stay or go."""
    return thing["kind"] == "MachineSet" and thing["spec"].get("replicas") == 0


NAIVE: dict[str, Callable[[model.Observed], bool]] = {
    "MachineDeployments are Running": phase_running,
    "the Cluster is Available": cluster_available,
    "the Cluster is Available and nothing rolls or scales": cluster_available_and_quiet,
    "generations and counters are equal": counters_equal,
}


class ReplayTest(testtools.TestCase):
    """Every recording, every look, both API versions."""

    def setUp(self):
        super().setUp()
        self.files = replay.files()
        if not self.files:
            self.skipTest(f"no recordings: {replay.ENVIRONMENT} names no directory with any")

    def test_no_word_before_the_truth_and_the_word_after_it(self):
        completed = 0
        for path in self.files:
            for version in VERSIONS:
                for cluster in clusters(path):
                    completed += self.replay(path, version, cluster)
        self.assertGreater(completed, 0)

    def replay(self, path: pathlib.Path, version: str, cluster: str) -> int:
        """Replays one file; returns how often the judge said COMPLETE where the mark says so."""
        first_look, said, where = "", 0, f"{path.parent.name}/{path.name} {version} {cluster}"
        for look in looks(path, version, cluster):
            state = dataclasses.replace(look.state, first_look=first_look)
            verdict = status.judge(look.observed, state, look.at)
            if look.mark.startswith("reached") and state.applied and state.groups:
                when = f"{where}: {look.mark}: {verdict.reason}"
                self.assertNotEqual("", verdict.fingerprint, when)
                said += 1
            if look.mark:
                continue
            first_look = verdict.fingerprint
            when = f"{where} at {look.at}"
            if verdict.fingerprint:
                self.assertTrue(truth(look.observed), when)
            if verdict.health == "HEALTHY":
                self.assertTrue(all(map(has_node, wanted_machines(look.observed))), when)
            complete = verdict.status == "UPDATE_COMPLETE"
            self.assertEqual(complete, verdict.reason is None, when)
            if deletion.gone(look.observed):
                self.assertEqual(((), ()), (look.observed.servers, look.observed.machines), when)
        return said

    def test_every_piece_of_a_recorded_complete_look_counts(self):
        tried = 0
        for path in self.files:
            for version in VERSIONS:
                look = complete_look(path, version)
                for broken in breaks(look.observed) if look else ():
                    verdict = status.judge(broken, look.state, look.at)
                    self.assertEqual("", verdict.fingerprint, f"{path.name} {version}")
                    self.assertFalse(deletion.gone(broken))
                    tried += 1
        self.assertGreater(tried, 0)

    def test_what_others_take_for_done_would_be_caught(self):
        lies = dict.fromkeys(NAIVE, 0)
        for path in self.files:
            if "create" in path.name or "labels" in path.name or "scale" in path.name:
                for look in looks(path, "v1beta2", clusters(path)[0]):
                    there = look.state.applied and look.observed.machine_deployments
                    if there and not isinstance(look.observed.control_plane, model.Missing):
                        for name, check in NAIVE.items():
                            lies[name] += check(look.observed) and not truth(look.observed)
        self.assertEqual([], [name for name, count in lies.items() if not count])


class FaultTest(testtools.TestCase):
    """Reasons that the recorded faults must give, at some look."""

    WANTED = (
        ("08-server_error", "rec", "quota: Quota exceeded for cores: Requested 4, but already"),
        ("08-server_error", "rec", "internal: Nova has put the server into ERROR (server rec-"),
        ("09-no_node", "rec", "Health check failed: Node failed to report startup in 1m0s"),
        ("11-wrong_kubelet", "rec", "image: machine rec-gpu-g8l78-pcvdc: Node.status.nodeInfo."),
        ("12-pause", "rec", "is paused on the management cluster"),
        ("19-infra_faults", "f-net-quota", "quota: Quota exceeded for resources: ['network']."),
        ("19-infra_faults", "f-port-quota", "quota: Quota exceeded for resources: ['port']."),
        ("21-mhc_infra", "rec", "1 of 2 gpu machines are ready"),
    )

    def test_faults(self):
        there = {path.name.partition(".")[0]: path for path in replay.files()}
        wanted = [one for one in self.WANTED if one[0] in there]
        if not wanted:
            self.skipTest(f"no recordings of faults: {replay.ENVIRONMENT} names none")
        for name, cluster, text in wanted:
            reasons = {
                status.judge(look.observed, look.state, look.at).reason or ""
                for look in looks(there[name], "v1beta2", cluster)
                if look.state.applied
            }
            self.assertTrue(any(text in one for one in reasons), (name, text, sorted(reasons)))
