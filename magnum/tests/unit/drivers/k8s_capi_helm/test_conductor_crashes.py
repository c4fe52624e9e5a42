# SPDX-License-Identifier: Apache-2.0
"""Whatever a conductor was doing when it was killed, another one finishes it, or says so.

Each verb is carried out once while every call through a port is watched, and then goes on from each
moment at which the world was another one: with a new conductor and Magnum's periodic tasks alone,
and once more with its owner, who deletes the cluster at once. A run of the unit tests takes some of
these moments, by lot but always the same; ``tox -e crashes`` takes all of them, and says how many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import os
import pathlib
import random
import sys
import time
from typing import Any

import fixtures

from magnum import objects
from magnum.conductor.handlers import ca_conductor, cluster_conductor
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import provision
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import node_metadata, reader
from magnum.drivers.k8s_capi_helm.model import Json, LiveRelease, names, secrets, Verb
from magnum.drivers.k8s_capi_helm.reconcile import install
from magnum.drivers.k8s_capi_helm.status.causes import reasons
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade
from magnum.tests.unit.drivers.k8s_capi_helm import conductor_crash
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import CONF, NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.magnum_release import credential_conductor
from magnum.tests.unit.drivers.k8s_capi_helm.test_random_requests import _plain

#: Rounds of periodic tasks after which everything has to be settled, and minutes of each.
_PATIENCE, _ROUND = 12, 4.0
#: Rounds until a cluster at rest is known to be in want of something.
_SLOW = 3
#: Longer than anything needs that is kept for a while on purpose.
_LATER = 40.0
_MASTER, _WORKER = "default-master", "default-worker"
_AUTOSCALED = {"auto_scaling_enabled": "true", "max_node_count": "3"}
#: How many runs of each verb, by lot, or "all" of them; and the one run to be looked into.
_RUNS = os.environ.get("K8S_CAPI_HELM_CRASHES", "")
_ONLY = os.environ.get("K8S_CAPI_HELM_CRASH", "")
_SOME = "6"


class Case(conductor_crash.CrashCase):
    """A cloud with a second template, and what has to be so in the end."""

    #: Nodegroups that run something else than their rows say, because they were not upgraded yet.
    behind: frozenset[str] = frozenset()
    #: Calls after which Magnum alone knew of certificates, and had written down nothing.
    unknown: tuple[str, ...] = ("create_x509keypair",)

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        # A photograph of all the world's authorities takes its time.
        bundle = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "ca.pem"
        bundle.write_text("the cloud's authority")
        self.config(group="drivers", openstack_ca_file=str(bundle))
        self.cloud.images["ubuntu-kube-1.35"] = ("image-2", "1.35.2")
        uuid = "21111111-2222-4333-8444-555555555555"
        self.next = self._template(uuid=uuid, name="next", image_id="ubuntu-kube-1.35")

    def settled(self, *, groups: tuple[str, ...] = (), **more: Any) -> None:
        """A cluster that runs."""
        self.create(**more)
        self.go_on()
        for name in groups:
            self.add_group(name, 2)
            self.go_on()
        assert self.cluster().status.endswith("_COMPLETE"), self.cluster().status_reason

    # The law --------------------------------------------------------------------------------------
    def survive(
        self,
        ask: Callable[[], Any],
        done: Callable[[], bool],
        wishes: Callable[[], Any] | None = None,
    ) -> None:
        """Ask for something, and then again from each moment at which a conductor may be killed.

        :param done: whether what was asked for is so.
        :param wishes: what differs once a request must not be lost any more.
        """
        wishes = wishes or self.wishes
        began, before, camera = time.monotonic(), wishes(), self.camera
        with camera.running():
            ask()
            self.go_on()
        self.assertTrue(done(), "without any crash")
        self.assertEqual([], camera.unseen, "something changes behind the doors")
        runs, wrong = list(self.chosen(camera.photographs)), []
        for name, taken, then in runs:
            self.restore(taken)
            asked = wishes() != before
            try:
                then(asked, done, taken)
            except Exception as error:
                wrong.append(f"{name} {taken.moment}: {type(error).__name__} {error} {self.told()}")
                if _ONLY:
                    raise
        if _RUNS or _ONLY:
            sys.stdout.write(
                f"{self._testMethodName}: {camera.points} points, {len(camera.photographs)} worlds,"
                f" {len(runs)} runs, {len(wrong)} failed, {time.monotonic() - began:.0f} s\n"
            )
        self.assertEqual([], wrong)

    def chosen(self, taken: list[conductor_crash.Photograph]) -> Iterator[tuple[str, Any, Any]]:
        """The runs to be made: each has a name, a photograph, and what happens then."""
        runs = [
            (f"{number}{kind}", one, then)
            for number, one in enumerate(taken)
            for kind, then in (("a", self.goes_on), ("b", self.is_deleted))
        ]
        if _ONLY:
            return (one for one in runs if one[0] == _ONLY)
        if _RUNS == "all":
            return iter(runs)
        lot = random.Random(self.id())  # noqa: S311 - no secret
        return iter(lot.sample(runs, min(len(runs), int(_RUNS or _SOME))))

    def goes_on(
        self, asked: bool, done: Callable[[], bool], taken: conductor_crash.Photograph
    ) -> None:
        """Another conductor carries on, by Magnum's periodic tasks alone."""
        self.go_on(at_least=_SLOW)
        if self.is_gone():
            self.nothing_is_left(taken)
            assert not asked or done(), "the cluster is gone"
        elif self.cluster().status == "CREATE_FAILED":
            assert "Delete" in self.cluster().status_reason
            self.is_deleted(asked, done, taken)
        else:
            assert self.cluster().status.endswith("_COMPLETE"), "it does not end"
            self.is_as_the_database_says()
            assert not asked or done(), "the request is lost"

    def is_deleted(
        self, asked: bool, done: Callable[[], bool], taken: conductor_crash.Photograph
    ) -> None:
        """Its owner deletes it."""
        if not self.is_gone():
            self.delete()
        self.go_on()
        assert self.is_gone(), "it is not gone"
        self.nothing_is_left(taken)

    def go_on(self, at_least: int = 1) -> None:
        for number in range(1, _PATIENCE + 1):
            self.step()
            self.minutes += _ROUND
            if number >= at_least and self.rests():
                return

    def rests(self) -> bool:
        for cluster in objects.Cluster.list(self.context):
            rows = (cluster, *cluster.nodegroups)
            if any(row.status.endswith("_IN_PROGRESS") for row in rows):
                return False
            if cluster.status == "UPDATE_FAILED":  # for ten minutes, after a refusal
                return False
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        return record is None or not record.operations

    # Looks ----------------------------------------------------------------------------------------
    def wishes(self) -> Any:
        """What people have asked for, as far as that is written where it counts."""
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        pending = record.operations if record else ()
        found: list[Any] = [one.verb for one in pending if one.verb is Verb.UPGRADE]
        for cluster in objects.Cluster.list(self.context):
            found += [cluster.cluster_template_id, cluster.user_id, cluster.status[:6] == "DELETE"]
            for row in sorted(cluster.nodegroups, key=lambda row: row.name):
                found += [row.name, row.node_count, row.min_node_count, row.max_node_count]
                found += [
                    node_metadata.node_labels(row),
                    node_metadata.node_taints(row),
                    row.status[:6] == "DELETE",
                ]
        return found

    def is_gone(self) -> bool:
        return not objects.Cluster.list(self.context)

    def live(self) -> LiveRelease:
        live = self.helm.live(NAMESPACE, RELEASE)
        assert live is not None and live.status == "deployed", live
        return live

    def entry(self, name: str = _WORKER) -> Json:
        return next(one for one in self.live().values["nodeGroups"] if one["name"] == name)

    def told(self) -> Any:
        return [(one.status, one.status_reason) for one in objects.Cluster.list(self.context)]

    def is_as_the_database_says(self) -> None:
        cluster = self.cluster()
        rows = list(cluster.nodegroups)
        for row in rows:
            refused = row.status == "UPDATE_FAILED" and reasons.is_refused(row.status_reason)
            fine = row.status.endswith("_COMPLETE") or row.status == "CREATE_FAILED" or refused
            assert fine, (row.name, row.status, row.status_reason)
        request = reader.cluster_request(cluster, rows, CONF)
        facts = provision.find(self.cloud, request, self.cloud.facts(request))
        wanted, have = (
            self.without_pins(one)
            for one in (install.render_cluster(request, facts, CONF), self.live().values)
        )
        assert wanted == have, (wanted, have)
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        assert record is not None and not record.operations and record.chart_digest, record
        # The first look at a lock of a conductor that has died, and the one that takes it.
        for minutes in (_LATER, _ROUND):
            self.minutes += minutes
            self.step()
        secret = self.kube.get(names.SECRET, NAMESPACE, names.credential_secret(RELEASE))
        used = {one.id for one in secrets.credentials_of(secret)}
        assert used == set(self.cloud.credentials), (used, self.cloud.credentials)
        made = set(self.openstack.ids()) - {names.server_group(RELEASE, row.name) for row in rows}
        assert not made, made

    def without_pins(self, values: Json) -> Json:
        result = _plain(values)
        for name in self.behind:
            for key in upgrade.SOFTWARE:
                result["nodeGroups"][name].pop(key, None)
        return result

    def nothing_is_left(self, taken: conductor_crash.Photograph) -> None:
        assert not self.left(), self.left()
        assert not self.cloud.credentials, self.cloud.credentials
        assert not self.openstack.groups and not self.openstack.addresses
        assert not self.helm.releases
        # Magnum makes four key pairs, and keeps in mind which until the last of them is made.
        if not taken.moment.endswith(self.unknown):
            assert not objects.X509KeyPair.list(self.context), "certificates"


class TestClusters(Case):
    def test_create(self) -> None:
        self.survive(
            lambda: self.create(master_lb_enabled=False),
            lambda: self.cluster().status == "CREATE_COMPLETE",
        )

    def test_create_with_the_autoscaler(self) -> None:
        self.survive(
            lambda: self.create(workers=2, labels=_AUTOSCALED),
            lambda: (self.cluster().status, self.group().node_count) == ("CREATE_COMPLETE", 2),
        )

    def test_create_that_helm_refuses(self) -> None:
        self.helm.refusal = errors.HelmRefused("Helm refused it: no. Delete the cluster.")
        self.survive(self.create, lambda: self.cluster().status == "CREATE_FAILED")

    def test_delete_right_after_create(self) -> None:
        self.create()
        self.survive(self.delete, self.is_gone)

    def test_delete(self) -> None:
        self.settled(groups=("extra",))
        self.survive(self.delete, self.is_gone)

    def test_update(self) -> None:
        def ask() -> None:
            handler = cluster_conductor.Handler()
            self.quietly(handler.cluster_update, self.context, self.cluster(), 3, "HEALTHY", {})

        self.settled()
        self.survive(ask, lambda: self.entry()["machineCount"] == 3)

    def test_resize(self) -> None:
        self.settled()
        self.survive(lambda: self.resize(3), lambda: self.entry()["machineCount"] == 3)

    def test_resize_of_the_control_plane(self) -> None:
        self.settled()
        self.survive(
            lambda: self.resize(3, _MASTER),
            lambda: self.live().values["controlPlane"]["machineCount"] == 3,
        )

    def test_resize_with_nodes_to_remove(self) -> None:
        self.settled(workers=3)
        gone = f"{RELEASE}-{_WORKER}-m1"
        self.survive(
            lambda: self.resize(2, remove=[gone]), lambda: self.entry()["machineCount"] == 2
        )

    def test_resize_with_the_autoscaler(self) -> None:
        self.settled(labels=_AUTOSCALED)
        self.survive(lambda: self.resize(3), lambda: self.replicas(_WORKER) == 3, self.recorded)

    def recorded(self) -> bool:
        """Magnum's row follows the autoscaler, so only the Lease holds what was asked for."""
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        return record is not None and bool(record.operations)


class TestNodegroups(Case):
    def test_create(self) -> None:
        self.settled()
        self.survive(lambda: self.add_group("extra", 2), self.is_made_or_failed)

    def is_made_or_failed(self) -> bool:
        """Only the request of its user can make a server group."""
        row = self.group("extra")
        if row.status == "CREATE_FAILED":
            return "Delete the nodegroup" in row.status_reason
        return row.status == "CREATE_COMPLETE" and self.entry("extra")["machineCount"] == 2

    def test_update(self) -> None:
        self.settled(groups=("extra",))
        self.survive(
            lambda: self.change_group("extra", node_labels={"a": "b"}),
            lambda: self.entry("extra").get("nodeLabels") == {"a": "b"},
        )

    def test_update_that_takes_labels_away(self) -> None:
        self.settled(groups=("extra",))
        self.change_group("extra", node_labels={"a": "b"})
        self.go_on()
        self.survive(
            lambda: self.change_group("extra", node_labels={}),
            lambda: not self.entry("extra").get("nodeLabels"),
        )

    def test_update_of_bounds(self) -> None:
        self.settled(labels=_AUTOSCALED)
        self.survive(
            lambda: self.change_group(min_node_count=2, max_node_count=5),
            lambda: self.entry()["machineCountMax"] == 5 and self.replicas(_WORKER) == 2,
        )

    def test_delete(self) -> None:
        self.settled(groups=("extra",))
        self.survive(
            lambda: self.drop_group("extra"),
            lambda: "extra" not in [row.name for row in self.cluster().nodegroups],
        )

    def test_update_that_helm_refuses(self) -> None:
        self.settled(groups=("extra",))
        self.refuse_teams()
        self.survive(
            lambda: self.change_group("extra", node_labels={"team": "bad"}),
            lambda: self.group("extra").status == "UPDATE_FAILED",
        )

    def test_create_that_helm_refuses(self) -> None:
        self.settled()
        self.refuse_teams()
        self.survive(
            lambda: self.add_group("extra", node_labels={"team": "bad"}),
            lambda: self.group("extra").status == "CREATE_FAILED",
        )

    def refuse_teams(self) -> None:
        def refuses(values: Json) -> errors.DriverError | None:
            bad = any("team" in (one.get("nodeLabels") or {}) for one in values["nodeGroups"])
            return errors.HelmRefused("Helm refused it: team.") if bad else None

        self.helm.refuses, self.helm.is_half_way = refuses, True


class TestUpgrades(Case):
    def test_of_a_cluster(self) -> None:
        self.settled(groups=("extra",))
        self.survive(
            lambda: self.upgrade(self.next), lambda: self.have_the_new_image(_WORKER, "extra")
        )

    def test_of_a_nodegroup(self) -> None:
        self.settled(groups=("extra",))
        self.upgrade(self.next, _MASTER)
        self.go_on()
        self.behind = frozenset({_WORKER, "extra"})
        self.survive(
            lambda: self.upgrade(self.next, "extra"), lambda: self.have_the_new_image("extra")
        )

    def have_the_new_image(self, *groups: str) -> bool:
        common = self.live().values["machineImageId"]
        return {self.entry(one).get("machineImageId", common) for one in groups} == {"image-2"}


class TestRotations(Case):
    def test_of_the_credential(self) -> None:
        def ask() -> None:
            self.context.user_id = "u2"
            handler = credential_conductor.Handler()
            self.quietly(handler.credential_rotate, self.context, self.cluster())

        self.settled()
        self.survive(ask, lambda: self.cluster().user_id == "u2")

    def test_of_the_authorities_which_is_refused(self) -> None:
        handler = ca_conductor.Handler()
        self.unknown = ("create_x509keypair", "destroy_x509keypair")
        self.settled()
        self.survive(
            lambda: self.quietly(handler.rotate_ca_certificate, self.context, self.cluster()),
            lambda: self.cluster().status.endswith("_COMPLETE"),
        )
