# SPDX-License-Identifier: Apache-2.0
"""Any sequence of verbs, outages and refusals ends where the database says, and leaves nothing.

The rules are what people, clouds and Cluster API can do; in the end everything that can heal does,
and then the release has to be the one that would be rendered from the rows afresh. Where it is not,
an operation has moved what it may not, or lost what was asked of it.
"""

from __future__ import annotations

import copy
from typing import Any

import hypothesis
from hypothesis import stateful, strategies
import testtools

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import provision
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.reconcile import install
from magnum.drivers.k8s_capi_helm.status.causes import reasons
from magnum.tests.unit.drivers.k8s_capi_helm import driver_case
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import CONF, NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.magnum_release import credential_conductor

#: Passes after which everything that can heal has.
_PATIENCE = 8
_MINORS = ("1.35.2", "1.36.0")
_DEFAULT = "default-worker"
#: As long as the labels of its objects allow, which the small world does not shorten.
_LONG = "a" * (62 - len(RELEASE))

counts = strategies.integers(0, 4)
extra = strategies.sampled_from(["extra-1", "extra-2", _LONG])
anyone = strategies.sampled_from([_DEFAULT, "extra-1", "extra-2", _LONG])
marks = strategies.sampled_from([{}, {"example.org/disk": "fast"}, {"team": "", "x": "1"}])
taints = strategies.sampled_from([[], [{"key": "gpu", "effect": "NoSchedule"}]])


class Sequence(stateful.RuleBasedStateMachine):
    """A cluster from its creation to its end."""

    def __init__(self) -> None:
        super().__init__()
        self.case = driver_case.DriverCase(
            "made"
        )  # a name that is never run: the machine drives it
        self.case.setUp()
        self.templates = [self.case.template]
        for number, version in enumerate(_MINORS, 2):
            image = f"image-of-{version}"
            self.case.cloud.images[image] = (f"id-of-{version}", version)
            uuid = f"{number}1111111-2222-4333-8444-555555555555"
            self.templates.append(
                self.case._template(uuid=uuid, name=f"kube-{number}", image_id=image)
            )

    @stateful.initialize(
        masters=strategies.sampled_from([1, 3]), workers=counts, labels=strategies.booleans()
    )
    def make(self, masters: int, workers: int, labels: bool) -> None:
        """A cluster; whether it comes up is Cluster API's."""
        scaled = {"auto_scaling_enabled": "true", "max_node_count": "3"} if labels else {}
        self.case.create(masters=masters, workers=workers, labels=scaled)

    # What people ask for --------------------------------------------------------------------------
    @stateful.rule(name=anyone, count=counts)
    def resize(self, name: str, count: int) -> None:
        if self.has(name):
            self.case.resize(count, name)

    @stateful.rule(name=extra, count=counts, node_labels=marks, node_taints=taints)
    def add(self, name: str, count: int, node_labels: Any, node_taints: Any) -> None:
        # Of a cluster that was refused, a pass says so again only when ten minutes are over.
        if not self.has(name) and self.cluster().stack_id:
            self.case.add_group(name, count, node_labels=node_labels, node_taints=node_taints)

    @stateful.rule(name=extra)
    def add_what_no_node_can_be(self, name: str) -> None:
        if not self.has(name) and self.cluster().stack_id:
            self.case.add_group(name, node_labels={"a b": "c"})

    @stateful.rule(name=extra)
    def drop(self, name: str) -> None:
        if self.has(name):
            self.case.drop_group(name)

    @stateful.rule(name=anyone, node_labels=marks, node_taints=taints, most=counts)
    def change(self, name: str, node_labels: Any, node_taints: Any, most: int) -> None:
        if self.has(name):
            self.case.change_group(
                name, node_labels=node_labels, node_taints=node_taints, max_node_count=most + 1
            )

    @stateful.rule(number=strategies.integers(0, 2), batch=strategies.integers(1, 3))
    def upgrade(self, number: int, batch: int) -> None:
        # Magnum's API lets no upgrade through while something is in progress.
        if self.cluster().status.endswith("_COMPLETE"):
            self.case.upgrade(self.templates[number], batch=batch)

    @stateful.rule()
    def rotate(self) -> None:
        handler = credential_conductor.Handler()
        self.case.quietly(handler.credential_rotate, self.case.context, self.cluster())

    # What happens ---------------------------------------------------------------------------------
    @stateful.rule()
    def capi_converges(self) -> None:
        """Cluster API does its work."""
        if self.live() is not None and not self.case.kube.unreachable:
            self.case.capi_converges()

    @stateful.rule(times=strategies.integers(1, 3))
    def tick(self, times: int) -> None:
        self.case.status_task(times)

    @stateful.rule()
    def poll(self) -> None:
        self.case.health_task()

    @stateful.rule()
    def go_away(self) -> None:
        """The management cluster does not answer from now on."""
        self.case.kube.unreachable = True
        self.case.helm.refusal = errors.ManagementUnreachable("It does not answer.")

    @stateful.rule()
    def refuse(self) -> None:
        """Helm refuses what it is given, until it does not."""
        self.case.helm.refusal = errors.HelmRefused("Helm refused it: no.", "")

    @stateful.rule(half_way=strategies.booleans())
    def refuse_some(self, half_way: bool) -> None:
        """Helm refuses nodegroups with a certain label, and takes everything else."""

        def refuses(values: Any) -> errors.DriverError | None:
            bad = any("team" in (one.get("nodeLabels") or {}) for one in values["nodeGroups"])
            had = any("team" in (one.get("nodeLabels") or {}) for one in live)
            return errors.HelmRefused("Helm refused it: team.", "") if bad and not had else None

        live = self.live().values["nodeGroups"] if self.live() else []
        self.case.helm.refuses, self.case.helm.is_half_way = refuses, half_way

    @stateful.rule()
    def come_back(self) -> None:
        self.case.kube.unreachable = False
        self.case.helm.refusal = None
        self.case.helm.refuses = lambda values: None

    # What holds at any time -----------------------------------------------------------------------
    @stateful.invariant()
    def no_secret_is_shown(self) -> None:
        shown = str(self.case.helm.runs[-1:])
        for cluster in objects.Cluster.list(self.case.context):
            rows = (cluster, *cluster.nodegroups)
            shown += " ".join(str(row.status_reason) for row in rows)
        assert driver_case.SECRET_TEXT not in shown

    @stateful.invariant()
    def nothing_that_nobody_dropped_is_gone(self) -> None:
        live = self.live()
        leaving = {row.name for row in self.rows() if row.status.startswith("DELETE_")}
        asked = {row.name for row in self.rows()} - leaving
        deployed = {one["name"] for one in live.values["nodeGroups"]} if live else set()
        self.deployed = deployed | (getattr(self, "deployed", set()) & asked)
        assert live is None or self.deployed & asked <= deployed

    def teardown(self) -> None:
        """Everything heals; then the release is what the rows say; then all of it goes."""
        try:
            if objects.Cluster.list(self.case.context):
                self.heal()
                self.compare()
                self.end()
        finally:
            self.case.doCleanups()

    def heal(self) -> None:
        self.come_back()
        # A nodegroup that was asked for and resized in an outage looks for some minutes like one
        # that is still being checked; and what was refused is shown for a while.
        for minutes, times in ((6, _PATIENCE), (20, 2)):
            self.case.after(minutes)
            for _ in range(times):
                self.capi_converges()
                self.case.status_task(2)
                self.case.health_task()
        if self.live() is None:
            assert self.cluster().status == "CREATE_FAILED", self.cluster().status
            return
        rows = {row.name: row.status for row in self.rows()}
        assert self.cluster().status.endswith("_COMPLETE"), (self.told(), rows)
        for row in self.rows():
            refused = row.status == "UPDATE_FAILED" and reasons.is_refused(row.status_reason)
            fine = row.status.endswith("_COMPLETE") or row.status == "CREATE_FAILED" or refused
            assert fine, (rows, row.status_reason)

    def compare(self) -> None:
        live = self.live()
        if live is None:
            return
        request = reader.cluster_request(self.cluster(), self.rows(), CONF)
        cloud = self.case.cloud
        facts = provision.find(cloud, request, cloud.facts(request))
        wanted = install.render_cluster(request, facts, CONF)
        assert _plain(live.values) == _plain(wanted), (_plain(live.values), _plain(wanted))

    def end(self) -> None:
        self.case.delete()
        for _ in range(_PATIENCE):
            self.case.status_task()
            self.case.capi_deletes()
        assert not objects.Cluster.list(self.case.context), self.told()
        assert not self.case.cloud.credentials, self.case.cloud.credentials
        assert not self.case.left(), self.case.left()

    # Looks ----------------------------------------------------------------------------------------
    def cluster(self) -> Any:
        return self.case.cluster()

    def rows(self) -> list[Any]:
        return list(self.cluster().nodegroups)

    def has(self, name: str) -> bool:
        return any(row.name == name for row in self.rows())

    def live(self) -> Any:
        return self.case.helm.live(NAMESPACE, RELEASE)

    def told(self) -> tuple[str, str]:
        return self.cluster().status, self.cluster().status_reason


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Values without what has no order and what an upgrade leaves behind on purpose."""
    result = copy.deepcopy(values)
    groups = result.pop("nodeGroups")
    for one in groups:
        one.pop("rolloutStrategy", None)
    return {**result, "nodeGroups": {one["name"]: one for one in groups}}


class TestSequences(testtools.TestCase):
    """The machine, as a test."""

    def test_any_sequence_ends_where_the_database_says(self) -> None:
        # To shrink a failure takes minutes, and it is short enough to be read.
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        settings = hypothesis.settings(max_examples=12, stateful_step_count=12, phases=phases)
        found = stateful.run_state_machine_as_test(Sequence, settings=settings)
        self.assertIsNone(found, "it raises what it finds")
