# SPDX-License-Identifier: Apache-2.0
"""Unreadable is not gone: each question that a decision rests on, in each mood of who is asked.

The questions are found by watching: the real clients of Kubernetes and OpenStack speak HTTP to the
world in memory, and a scene is played once to see what is asked. Then it is played again for each
question and each mood in which that is never answered rightly. Whatever the mood, nothing may go
that is needed, nothing may be said that is not so, and what is a neighbour's stays; and once all
answer again, what was asked for comes to its end. The unit tests take some of these cells, by lot
but always the same; ``K8S_CAPI_HELM_MOODS=all`` takes all, and prints how many there were.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
import json
import os
import pathlib
import random
import sys
import time
from typing import Any

import fixtures

from magnum import objects
from magnum.drivers.k8s_capi_helm.cloud import Cloud, Services
from magnum.drivers.k8s_capi_helm.handlers.tasks import finalize_deletion
from magnum.drivers.k8s_capi_helm.helm import HelmClient
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.lease import codec
from magnum.drivers.k8s_capi_helm.model import Chart, Json, LiveRelease, names
from magnum.tests.unit.drivers.k8s_capi_helm import conductor_crash, failing_responses, fakes
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.api_server import FakeApiServer
from magnum.tests.unit.drivers.k8s_capi_helm.magnum_release import credential_conductor
from magnum.tests.unit.drivers.k8s_capi_helm.suites import helm, http_server

#: How many cells of each scene, by lot, or "all" of them; and the one to be looked into.
_CELLS = os.environ.get("K8S_CAPI_HELM_MOODS", "")
_ONLY = os.environ.get("K8S_CAPI_HELM_MOOD", "")
_SOME = "12"
NEIGHBOUR = f"{RELEASE}-b-yyyyyyyyyyyy"
_NEIGHBOURS_UUID = "11111111-8888-4777-8666-555555555555"
_DESCRIBED = "Created by cluster-api-provider-openstack cluster"


class KubeHelm(fakes.FakeHelm):
    """Helm, whose record is Secrets on the management cluster, as the real one's; read by HTTP."""

    def __init__(self, kube: fakes.FakeKube) -> None:
        super().__init__()
        self.store = kube
        self.reader: HelmClient | None = None

    def live(self, namespace: str, release: str) -> LiveRelease | None:
        assert self.reader is not None
        return self.reader.live(namespace, release)

    def deployed_release(self, namespace: str, release: str) -> LiveRelease | None:
        assert self.reader is not None
        return self.reader.deployed_release(namespace, release)

    def apply(
        self, namespace: str, release: str, chart: Chart, values: Json, **more: Any
    ) -> LiveRelease:
        made = super().apply(namespace, release, chart, values, **more)
        found = helm.secret(made.revision, made.status, values, version=chart.version)
        name = f"sh.helm.release.v1.{release}.v{made.revision}"
        found["metadata"].update(name=name, namespace=namespace)
        found["metadata"]["labels"]["name"] = release
        for one in self.store.list(names.SECRET, namespace, {"owner": "helm", "name": release}):
            self.store.remove(names.SECRET, namespace, one["metadata"]["name"])
        self.store.put(names.SECRET, found)
        return made

    def uninstall(self, namespace: str, release: str, **more: Any) -> None:
        super().uninstall(namespace, release, **more)
        for one in self.store.list(names.SECRET, namespace, {"owner": "helm", "name": release}):
            self.store.remove(names.SECRET, namespace, one["metadata"]["name"])


class MoodyWorld(conductor_crash.CrashCase):
    """The small world behind HTTP; ``fault`` stands between it and the driver."""

    def setUp(self) -> None:
        self.http: http_server.Server | None = None
        self.fault: tuple[str, failing_responses.Mood] | None = None
        self.asked: dict[str, None] = {}
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.useFixture(fixtures.MonkeyPatch("keystoneauth1.session.time.sleep", lambda s: None))
        self.useFixture(
            fixtures.MonkeyPatch(
                "magnum.common.keystone.KeystoneClientV3.auth_url", "http://cloud.example/identity"
            )
        )
        self.apis = fakes.FakeApis()
        self.apis.between = self._cloud  # type: ignore[method-assign]
        self.helm = KubeHelm(self.kube)
        self.helm.midway = self._half_done
        api = FakeApiServer(self.kube)
        self.http = http_server.Server(lambda seen: self._kubernetes(seen, api.answer))
        self.addCleanup(self.http.close)
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        config = http_server.write_kubeconfig(directory / "config", self.http.url)
        bundle = directory / "ca.pem"
        bundle.write_text("the cloud's authority")
        self.config(group="drivers", openstack_ca_file=str(bundle))
        self.client = KubeClient(
            str(config), connect_timeout=5, read_timeout=5, pause=0, breaker_failures=0
        )
        self.conductor()
        self.neighbour()

    def openstack_of(self, context: Any) -> Any:
        return Cloud(Services(self.apis.clients(context)))

    def door(self, port: Any, name: str) -> Any:
        """What a conductor sees of a port; in here, most of them behind HTTP."""
        if name == "kube" and self.http is not None:
            return self.client
        if name == "helm" and self.http is not None:
            self.helm.reader = HelmClient(self.client, timeout=60)
            return self.helm
        return super().door(port, name)

    def _lasting_fakes(self) -> tuple[Any, ...]:
        return self.kube, self.helm, self.keys, self.apis

    # What stands between --------------------------------------------------------------------------
    def _between(self, question: str, thing: str, answer: Callable[[], Any]) -> Any:
        self.asked[question] = None
        if self.fault is not None and question == self.fault[0]:
            return self.fault[1](question, thing, answer)
        return answer()

    def _kubernetes(self, seen: http_server.Seen, answer: Callable[[Any], Any]) -> Any:
        path, _, query = seen.path.partition("?")

        def given() -> failing_responses.Reply:
            found = answer(seen)
            return None if found is None else (found[0], json.dumps(found[1]).encode())

        question = failing_responses.key("kubernetes", seen.method, path, query)
        return self._between(question, path.rpartition("/")[2], given)

    def _cloud(self, request: Any, answer: Callable[[], Any]) -> Any:
        path, _, query = request.path_url.partition("?")
        question = failing_responses.key("openstack", request.method, path, query)
        return self._between(question, path.rpartition("/")[2], answer)

    # Things ---------------------------------------------------------------------------------------
    def leave(self, release: str, *, server_too: bool = True) -> None:
        """What machines and Services of a cluster leave in its project."""
        about, project = {"project_id": "p1"}, "p1"
        words = f"default/web Service LoadBalancer in cluster {release}"
        end = " from cluster "
        self.apis.balancers.append(
            {
                "id": f"lb-of-{release}",
                "name": f"kube_service_{release}_default_web",
                "provisioning_status": "ACTIVE",
                "tags": [],
                **about,
            }
        )
        self.apis.security_groups.append(
            {"id": f"group-of-{release}", "description": f"Security Group for {words}", **about}
        )
        self.apis.floatingips.append(
            {
                "id": f"address-of-{release}",
                "description": f"Floating IP for Kubernetes external service a/b{end}{release}",
                "floating_ip_address": "198.51.100.1",
                **about,
            }
        )
        if server_too:
            one = f"server-of-{release}"
            name = f"{release}-default-worker-bcdfg-hjklm"
            self.apis.servers.append(
                {"id": one, "name": name, "status": "ACTIVE", "tenant_id": project, **about}
            )
            described = f"{_DESCRIBED} {release}"
            self.apis.ports.append({"id": f"port-of-{release}", "device_id": one, **about})
            self.apis.ports[-1]["description"] = described

    def neighbour(self) -> None:
        """Another cluster of the project, whose name begins with this one's."""
        self.leave(NEIGHBOUR)
        self.apis.server_groups.append(
            {"id": "sg-n", "name": f"{NEIGHBOUR}.a", "project_id": "p1", "policies": []}
        )
        self.apis.credentials["ac-n"] = {"id": "ac-n", "name": f"magnum-{NEIGHBOUR}", "of": "u1"}
        marks = {
            names.LABEL_UUID: _NEIGHBOURS_UUID,
            names.LABEL_CLUSTER_NAME: NEIGHBOUR,
            names.LABEL_CHART_CLUSTER: NEIGHBOUR,
        }
        for kind, name in (
            (names.SECRET, names.credential_secret(NEIGHBOUR)),
            (names.LEASE, names.lease(NEIGHBOUR)),
            (names.CLUSTER, NEIGHBOUR),
            (names.MACHINE_TEMPLATE, f"{NEIGHBOUR}-a"),
        ):
            place = {"name": name, "namespace": NAMESPACE, "labels": marks}
            notes = {codec.CHART_DIGEST: "of-the-neighbour"} if kind is names.LEASE else {}
            self.kube.put(kind, {"metadata": {**place, "annotations": notes}, "spec": {}})

    def photograph(self) -> conductor_crash.Photograph:
        return conductor_crash.Photograph("", self.minutes, self.develop())

    def capi_deletes(self) -> None:
        """All of this cluster's objects go, and no other one's."""
        kept = [one for one in self.kube.everything() if one["kind"] == "Cluster"]
        super().capi_deletes()
        for one in kept:
            if one["metadata"]["name"] == NEIGHBOUR:
                self.kube.put(names.CLUSTER, one)


class Case(MoodyWorld):
    """A scene, and the law."""

    def play(
        self, act: Callable[[], None], so: Callable[[], None], end: Callable[[], None]
    ) -> None:
        """Play a scene from here in each mood.

        :param act: what the conductor does meanwhile.
        :param so: what has to be so after that, whatever the mood.
        :param end: goes on, when everybody answers again, and sees to the end.
        """
        began, taken = time.monotonic(), self.photograph()
        self.asked.clear()
        act()
        so()
        questions = list(self.asked)
        cells = [
            (one, mood) for one in questions for mood in failing_responses.MOODS if mood.only(one)
        ]
        chosen, wrong = self.chosen(cells), []
        for question, mood in chosen:
            self.restore(taken)
            self.fault = (question, mood)
            try:
                act()
                if not mood.is_true:
                    so()
                    self.says_so()
                self.neighbour_is_there()
                self.fault = None
                if not mood.is_true:
                    end()
                    self.neighbour_is_there()
            except Exception as error:
                if _ONLY:
                    raise
                wrong.append(f"{question} / {mood.name}: {type(error).__name__} {error}")
            finally:
                self.fault = None
        sys.stdout.write(
            f"{self._testMethodName}: {len(questions)} questions, {len(cells)} cells, "
            f"{len(chosen)} played, {len(wrong)} failed, {time.monotonic() - began:.0f} s\n"
        )
        self.assertEqual([], wrong)

    def chosen(
        self, cells: list[tuple[str, failing_responses.Mood]]
    ) -> list[tuple[str, failing_responses.Mood]]:
        if _ONLY:
            return [(one, mood) for one, mood in cells if _ONLY in f"{one} / {mood.name}"]
        if _CELLS == "all":
            return cells
        lot = random.Random(self.id())  # noqa: S311 - no secret
        return lot.sample(cells, min(len(cells), int(_CELLS or _SOME)))

    # What has to be so ----------------------------------------------------------------------------
    def neighbour_is_there(self) -> None:
        things = (
            *self.apis.balancers,
            *self.apis.security_groups,
            *self.apis.floatingips,
            *self.apis.servers,
        )
        there = {one["id"] for one in things if one["id"].endswith(f"-of-{NEIGHBOUR}")}
        assert len(there) == 4, there
        assert "ac-n" in self.apis.credentials, "the neighbour's credential"
        assert "sg-n" in [one["id"] for one in self.apis.server_groups], "its server group"
        found = [one for one in self.kube.everything() if NEIGHBOUR in one["metadata"]["name"]]
        assert len(found) == 4, [one["metadata"]["name"] for one in found]

    def own(self) -> list[str]:
        """What there is of this cluster, anywhere."""
        things = (
            *self.apis.balancers,
            *self.apis.security_groups,
            *self.apis.floatingips,
            *self.apis.servers,
        )
        found = [one["id"] for one in things if not one["id"].endswith(f"-of-{NEIGHBOUR}")]
        found += [one for one in self.apis.credentials if one != "ac-n"]
        found += [one["name"] for one in self.apis.server_groups if one["id"] != "sg-n"]
        # Copies of charts are the namespace's; the next deletion there looks again.
        copies = f"ConfigMap/{names.chart_copy('')}"
        found += [one for one in self.left() if NEIGHBOUR not in one and copies not in one]
        return found

    def rows(self) -> list[Any]:
        found: list[Any] = objects.Cluster.list(self.context)
        return found

    def gone_means_gone(self) -> None:
        """A row goes when nothing is left, and the credential when nothing needs it."""
        if not self.rows():
            # A tombstone says that nothing is left, and has nobody's name or secret in it.
            assert self.own() in ([], self.tombstone()), self.own()
        needing = [one["kind"] for one in self.kube.everything() if one["kind"] in _NEEDING]
        mine = [one for one in self.apis.servers if one["id"] != f"server-of-{NEIGHBOUR}"]
        if self.rows() and (mine or len(needing) > 1):
            assert self.used() in self.apis.credentials, "its credential"

    def tombstone(self) -> list[str]:
        """What the management cluster would not take away at the very end."""
        found = self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
        there = found is not None and codec.record(found).tombstone
        return [f"Lease/{names.lease(RELEASE)}"] if there else []

    def used(self) -> str:
        """Id of the credential that Cluster API reads."""
        found = self.kube.get(names.SECRET, NAMESPACE, names.credential_secret(RELEASE))
        assert found is not None, "its Secret"
        text = base64.b64decode(found["data"]["clouds.yaml"]).decode()
        return next((one for one in self.apis.credentials if f"{one}\n" in text), "")

    def says_so(self) -> None:
        """Whoever reads the status is told in sentences."""
        for row in self.rows():
            text = row.status_reason or ""
            for odd in ("Traceback", "Error(", "Exception("):
                assert odd not in text, text

    def passes(self, count: int = 3) -> None:
        for _ in range(count):
            self.minutes += 2
            self.status_task()

    def ends(self) -> None:
        """Everybody does what they do, until the deletion is through."""
        self.apis.servers = [one for one in self.apis.servers if NEIGHBOUR in one["id"]]
        for _ in range(8):
            if not self.rows():
                break
            self.step()
            self.minutes += 2
        assert not self.rows(), [(one.status, one.status_reason) for one in self.rows()]
        # As the next deletion in the namespace does.
        finalize_deletion.delete_leases(self.ports, NAMESPACE)
        assert not self.own(), self.own()


#: Objects whose controllers need the credential.
_NEEDING = frozenset({"Cluster", "Machine", "OpenStackServer", "OpenStackCluster"})


class TestDeletion(Case):
    def settled(self, **more: Any) -> None:
        self.create(master_lb_enabled=False, **more)
        for _ in range(4):
            self.step()
            self.minutes += 2
        assert self.cluster().status == "CREATE_COMPLETE", self.cluster().status_reason
        self.leave(RELEASE, server_too=False)

    def test_while_everything_is_there(self) -> None:
        self.settled()
        self.delete()

        def so() -> None:
            assert self.rows(), "the row"
            left = {one.partition("/")[0] for one in self.left() if NEIGHBOUR not in one}
            assert left >= {"Cluster", "MachineDeployment", "Machine", "Lease", "Secret"}, left
            self.gone_means_gone()

        self.play(self.passes, so, self.ends)

    def test_when_only_nova_knows_of_a_server(self) -> None:
        self.settled()
        self.delete()
        self.passes(1)
        self.capi_deletes()
        self.apis.servers.append(
            {
                "id": f"server-of-{RELEASE}",
                "name": f"{RELEASE}-control-plane-bcdfg",
                "status": "ACTIVE",
                "project_id": "p1",
            }
        )

        def so() -> None:
            assert self.rows(), "the row"
            assert [one for one in self.own() if one.startswith("lb-")], "the load balancer"
            self.gone_means_gone()

        self.play(self.passes, so, self.ends)

    def test_when_the_last_machine_is_gone(self) -> None:
        self.settled()
        self.delete()
        self.passes(1)
        self.capi_deletes()
        self.play(lambda: self.passes(4), self.gone_means_gone, self.ends)


class TestOthers(Case):
    def test_a_nodegroup_that_goes(self) -> None:
        self.settled()
        self.drop_group("extra")

        def so() -> None:
            there = {one.name for one in self.cluster().nodegroups}
            assert "extra" in there, there
            assert not self.cluster().status.endswith("_COMPLETE"), self.cluster().status
            self.everything_is_there()

        def end() -> None:
            self.until("UPDATE_COMPLETE")
            assert "extra" not in {one.name for one in self.cluster().nodegroups}
            assert f"{RELEASE}.extra" not in [one["name"] for one in self.apis.server_groups]

        self.play(self.passes, so, end)

    def test_a_creation_that_is_not_through(self) -> None:
        self.create(master_lb_enabled=False)

        def so() -> None:
            assert self.cluster().status == "CREATE_IN_PROGRESS", self.cluster().status
            assert self.used(), "its credential"

        self.play(self.passes, so, lambda: self.until("CREATE_COMPLETE"))

    def test_a_credential_whose_time_is_over(self) -> None:
        self.settled()
        self.context.user_id = "u2"
        credential_conductor.Handler().credential_rotate(self.context, self.cluster())
        self.context.user_id = "u1"
        # A conductor that has just begun goes by the time of others only when it is a day past.
        self.minutes += 25 * 60
        before = set(self.apis.credentials) - {"ac-n"}

        def so() -> None:
            assert self.used(), "the one in use"
            self.everything_is_there()

        def end() -> None:
            for _ in range(3):
                self.health_task()
                self.minutes += 2
            assert len(before) == 2 and set(self.apis.credentials) == {self.used(), "ac-n"}

        self.play(self.health_task, so, end)

    def settled(self) -> None:
        self.create(master_lb_enabled=False)
        self.until("CREATE_COMPLETE")
        self.add_group("extra")
        self.until("UPDATE_COMPLETE")

    def everything_is_there(self) -> None:
        found = [one["metadata"]["name"] for one in self.kube.everything() if "spec" in one]
        assert [one for one in found if "-extra" in one], found
        assert self.used(), "its credential"

    def until(self, wanted: str) -> None:
        for _ in range(8):
            self.step()
            self.minutes += 2
            if self.cluster().status == wanted:
                return
        raise AssertionError((self.cluster().status, self.cluster().status_reason))
