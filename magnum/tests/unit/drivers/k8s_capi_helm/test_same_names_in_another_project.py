# SPDX-License-Identifier: Apache-2.0
"""A neighbour with the same names: nothing that is rendered, refused or taken is another's.

Verbs see what the person who asks sees; passes are Magnum's service user, who is shown everything
of all projects. The neighbour is there in every test of the driver; here it comes and goes, and
what is rendered has to be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import json
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import builders, conductor_crash
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import views

NEW = "1.35.2"


class Case(conductor_crash.CrashCase):
    """A project, a newer template, an image of its own, and a neighbour."""

    def setUp(self) -> None:
        super().setUp()
        self.cloud.images |= {"newer": ("image-2", NEW), "gpu": ("image-gpu", builders.VERSION)}
        uuid = "21111111-2222-4333-8444-555555555555"
        self.next = self._template(uuid=uuid, name="next", image_id="newer")

    def conductor(self) -> None:
        """Another one; it reads no chart again, which takes longer than all the rest."""
        charts = self.ports.charts
        super().conductor()
        self.ports = dataclasses.replace(self.ports, charts=charts)

    def settled(self, **more: Any) -> None:
        """A cluster that runs."""
        self.create(**more)
        self.go_on(4)
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def go_on(self, rounds: int = 4) -> None:
        for _ in range(rounds):
            self.step()

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """A request that a later pass of another conductor carries out: the release is locked."""
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            yield
        self.conductor()

    @property
    def values(self) -> dict[str, Any]:
        return self.helm.live(NAMESPACE, RELEASE).values

    def entry(self, name: str) -> dict[str, Any]:
        return {one["name"]: one for one in self.values["nodeGroups"]}[name]


class TestFound(Case):
    """What went wrong once."""

    def test_a_neighbours_private_image_does_not_fail_a_nodegroup(self) -> None:
        self.settled()
        self.add_group("extra", image_id="gpu")
        self.go_on()
        self.assertEqual("CREATE_COMPLETE", self.group("extra").status)
        self.assertEqual("image-gpu", self.entry("extra")["machineImageId"])

    def test_a_strangers_image_is_not_taken_for_a_hidden_one(self) -> None:
        self.settled()
        self.cloud.hidden = ("gpu", "newer")
        self.add_group("extra", image_id="gpu")
        self.go_on()
        self.assertEqual("image-gpu", self.entry("extra")["machineImageId"])
        self.assertEqual("", self.upgrade(self.next))
        self.go_on()
        self.assertEqual("image-2", self.values["machineImageId"])

    def test_nor_is_it_by_an_upgrade_that_a_pass_carries_out(self) -> None:
        self.settled()
        self.cloud.hidden = ("newer",)
        with self.deferred():
            self.assertEqual("", self.upgrade(self.next))
        for kinds in (("private image",), views.KINDS):
            self.cloud.neighbours = kinds
        self.go_on()
        self.assertEqual("image-2", self.values["machineImageId"])
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_nobody_fails_a_deferred_upgrade(self) -> None:
        self.settled()
        self.cloud.neighbours = ()
        with self.deferred():
            self.assertEqual("", self.upgrade(self.next))
        self.cloud.neighbours = views.KINDS
        self.forget_resolved()
        self.go_on()
        cluster = self.cluster()
        self.assertEqual(("UPDATE_COMPLETE", None), (cluster.status, cluster.status_reason))
        self.assertEqual("image-2", self.values["machineImageId"])

    def test_a_neighbours_volume_type_becomes_no_storage_class(self) -> None:
        self.settled()
        with self.deferred():
            self.assertEqual("", self.upgrade(self.next))
        self.go_on()
        self.assertNotIn("neighbours", json.dumps(self.values))

    def test_two_that_the_project_sees_are_refused_with_their_ids(self) -> None:
        self.settled()
        with self.deferred():
            self.assertEqual("", self.upgrade(self.next))
        self.forget_resolved()
        others = self.cloud.things

        def things() -> views.Things:
            found = others()
            twin = next(one for one in found.images if one["id"] == "image-2")
            found.images.append({**twin, "id": "image-2b", "owner": "p1"})
            return found

        self.cloud.things = things  # type: ignore[method-assign]
        self.go_on()
        cluster = self.cluster()
        self.assertEqual("UPDATE_FAILED", cluster.status)
        self.assertIn("(image-2, image-2b)", cluster.status_reason)
        self.assertEqual("image-1", self.values["machineImageId"])


class TestResolvedOnce(Case):
    """A name that has another meaning later means what it meant when somebody asked."""

    def test_an_image_of_that_name_that_comes_later(self) -> None:
        self.settled()
        with self.deferred():
            self.add_group("extra", image_id="gpu")
        self.cloud.images["gpu"] = ("image-later", "1.33.0")
        self.go_on()
        entry = self.entry("extra")
        self.assertEqual(
            ("image-gpu", builders.VERSION), (entry["machineImageId"], entry["kubernetesVersion"])
        )

    def test_a_deferred_upgrade_looks_for_no_name(self) -> None:
        self.settled()
        with self.deferred():
            self.assertEqual("", self.upgrade(self.next))
        self.cloud.asked.clear()
        del self.cloud.images["newer"]
        self.go_on()
        self.assertEqual("image-2", self.values["machineImageId"])
        self.assertFalse([one for one in self.cloud.asked if "image" in one])

    def test_nor_does_a_deferred_nodegroup(self) -> None:
        self.settled()
        with self.deferred():
            self.add_group("extra", image_id="gpu", flavor_id="large")
        self.cloud.asked.clear()
        self.go_on()
        self.assertEqual("large", self.entry("extra")["machineFlavor"])
        self.assertEqual([], list(self.cloud.asked))

    def test_nor_does_an_interrupted_creation(self) -> None:
        self.helm.refusal = errors.ManagementUnreachable("The management cluster is away.")
        self.create()
        self.conductor()
        self.helm.refusal = None
        self.cloud.asked.clear()
        self.cloud.images["ubuntu-kube"] = ("image-later", "1.33.0")
        self.go_on()
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)
        self.assertEqual("image-1", self.values["machineImageId"])
        self.assertIn("service: types", self.cloud.asked)
        kinds = ("image", "flavors", "networks", "subnets", "rbac")
        self.assertFalse([one for one in self.cloud.asked if one.split()[1] in kinds])

    def test_what_is_on_record_is_short(self) -> None:
        self.settled()
        with self.deferred():
            self.assertEqual("", self.upgrade(self.next))
            self.add_group("extra", image_id="gpu", flavor_id="large")
        found = self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
        (text,) = (
            text
            for key, text in found["metadata"]["annotations"].items()
            if key.endswith("/operations")
        )
        for one in json.loads(text):
            self.assertLess(len(json.dumps(one.get("resolved", {}))), 200, one)


class TestExtraNetworks(Case):
    """A further network of workers is the one that its name meant when somebody asked for it."""

    LAN = "4b0c1d5e-0000-4000-8000-00000000000a"
    THEIRS = "4b0c1d5e-0000-4000-8000-00000000000b"

    def setUp(self) -> None:
        super().setUp()
        self.shared = [(self.LAN, views.OPERATOR)]
        others = self.cloud.things

        def things() -> views.Things:
            found = others()
            for one, owner in self.shared:
                network = {"id": one, "name": "lan", "project_id": owner}
                found.networks.append({**network, "router:external": False, "subnets": ["s"]})
                policy = {"object_id": one, "action": "access_as_shared", "target_tenant": "p1"}
                found.rbac.append(policy)
            return found

        self.cloud.things = things  # type: ignore[method-assign]

    def stranger(self) -> None:
        """Somebody shares a network of the same name with the project."""
        self.shared.append((self.THEIRS, "p2"))

    def ports_of(self, networking: dict[str, Any]) -> list[dict[str, Any]]:
        first, *more = networking["ports"]
        self.assertEqual({}, first)
        return [one["network"] for one in more]

    @property
    def defaults(self) -> list[dict[str, Any]]:
        return self.ports_of(self.values["nodeGroupDefaults"]["machineNetworking"])

    def by_name(self) -> None:
        """The release is as an older driver has made it."""
        live = self.helm.releases[NAMESPACE, RELEASE]
        ports = live.values["nodeGroupDefaults"]["machineNetworking"]["ports"]
        ports[1:] = [{"network": {"filter": {"name": "lan"}}}]

    def test_a_cluster_has_it_by_its_id(self) -> None:
        self.settled(labels={"extra_network_names": "lan"})
        self.assertEqual([{"id": self.LAN}], self.defaults)

    def test_an_interrupted_creation_too(self) -> None:
        self.helm.refusal = errors.ManagementUnreachable("The management cluster is away.")
        self.create(labels={"extra_network_names": "lan"})
        self.conductor()
        self.helm.refusal = None
        self.stranger()
        self.go_on()
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)
        self.assertEqual([{"id": self.LAN}], self.defaults)

    def test_two_are_told_apart_by_their_ids(self) -> None:
        self.stranger()
        self.create(labels={"extra_network_names": "lan"})
        words = self.cluster().status_reason
        self.assertIn(f"2 are named 'lan' ({self.LAN}, {self.THEIRS}): give the id.", words)
        self.assertEqual([], self.left())

    def test_an_id_says_which(self) -> None:
        self.stranger()
        self.settled(labels={"extra_network_names": self.LAN})
        self.assertEqual([{"id": self.LAN}], self.defaults)

    def test_a_stranger_keeps_no_nodegroup_from_the_clusters_network(self) -> None:
        self.settled(labels={"extra_network_names": "lan"})
        self.stranger()
        self.add_group("extra")
        self.add_group("own", labels={"extra_network_names": "san lan"})
        self.go_on()
        self.assertNotIn("machineNetworking", self.entry("extra"))
        ids = [one["id"] for one in self.ports_of(self.entry("own")["machineNetworking"])]
        self.assertEqual([self.cloud.networks["san"], self.LAN], ids)
        for name in ("extra", "own"):
            self.assertEqual("CREATE_COMPLETE", self.group(name).status)

    def test_nor_a_deferred_one_from_its_own(self) -> None:
        self.settled()
        with self.deferred():
            self.add_group("extra", labels={"extra_network_names": "lan"})
        self.stranger()
        self.go_on()
        self.assertEqual(
            [{"id": self.LAN}], self.ports_of(self.entry("extra")["machineNetworking"])
        )

    def test_where_only_a_name_is_left_two_are_refused(self) -> None:
        self.settled()
        with self.deferred():
            self.add_group("extra", labels={"extra_network_names": "lan"})
        self.stranger()
        self.forget_resolved()
        self.go_on()
        self.assertEqual("CREATE_FAILED", self.group("extra").status)
        self.assertIn(f"({self.LAN}, {self.THEIRS})", self.group("extra").status_reason)
        self.assertEqual(1, len(self.values["nodeGroups"]))

    def test_and_one_is_taken(self) -> None:
        self.settled()
        with self.deferred():
            self.add_group("extra", labels={"extra_network_names": "lan"})
        self.forget_resolved()
        self.go_on()
        self.assertEqual(
            [{"id": self.LAN}], self.ports_of(self.entry("extra")["machineNetworking"])
        )

    def test_a_network_that_has_gone(self) -> None:
        self.settled(labels={"extra_network_names": "lan"})
        self.shared = [(self.THEIRS, views.OPERATOR)]
        self.add_group("extra")
        self.assertIn("It is named 'lan'", self.group("extra").status_reason)
        self.assertIn("does not exist", self.group("extra").status_reason)

    def test_the_networks_of_an_older_release_stay_by_name(self) -> None:
        self.settled(labels={"extra_network_names": "lan"})
        self.by_name()
        self.add_group("extra")
        self.resize(3)
        self.go_on()
        self.assertEqual("", self.upgrade(self.next))
        self.go_on()
        self.assertEqual([{"filter": {"name": "lan"}}], self.defaults)
        self.assertNotIn("machineNetworking", self.entry("default-worker"))
        self.assertEqual(
            [{"id": self.LAN}], self.ports_of(self.entry("extra")["machineNetworking"])
        )

    def test_so_they_do_when_its_record_is_lost(self) -> None:
        """The real Helm's part of this is in the functional tests."""
        self.settled(labels={"extra_network_names": "lan"})
        self.by_name()
        before = self.values
        machines = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "machines"}}

        def rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
            ports = values["nodeGroupDefaults"]["machineNetworking"]["ports"]
            return [{**machines, "data": {"ports": json.dumps(ports)}}]

        (made,) = rendered(before)
        about = {"name": "machines", "namespace": NAMESPACE}
        self.kube.put(names.CONFIG_MAP, {**made, "metadata": about})
        self.helm.renders = rendered
        del self.helm.releases[NAMESPACE, RELEASE]
        self.resize(1)
        self.assertEqual(before, self.values)


class TestSameValues(Case):
    """Each verb, at once and by a later pass, whatever a neighbour has: the same values."""

    def requests(self) -> dict[str, Callable[[], Any]]:
        return {
            "nodegroup": lambda: self.add_group("extra", image_id="gpu", flavor_id="large"),
            "upgrade": lambda: self.assertEqual("", self.upgrade(self.next)),
            "upgrade of the control plane": lambda: self.assertEqual(
                "", self.upgrade(self.next, "default-master")
            ),
            "resize": lambda: self.resize(3),
            "to the autoscaler": lambda: self.change_group(max_node_count=4),
            "taken away": lambda: self.drop_group("other"),
        }

    def rendered(self, begun: conductor_crash.Photograph, *kinds: str) -> str:
        """What the next pass makes of that moment, with this of a neighbour's there."""
        self.restore(begun)
        self.cloud.neighbours = kinds
        self.status_task()
        self.assertNotIn("FAILED", self.cluster().status, self.cluster().status_reason)
        return json.dumps(self.values, sort_keys=True)

    def photograph(self) -> conductor_crash.Photograph:
        return conductor_crash.Photograph("now", self.minutes, self.develop())

    def hold(self, begun: conductor_crash.Photograph, about: str, *, singly: bool = True) -> None:
        alone = self.rendered(begun)
        for kinds in (*([kind] for kind in views.KINDS if singly), views.KINDS):
            self.assertEqual(alone, self.rendered(begun, *kinds), (about, kinds))

    def begun(self) -> conductor_crash.Photograph:
        """A cluster with a second nodegroup, and nothing pending."""
        self.settled(labels={"auto_scaling_enabled": "true"})
        self.add_group("other")
        self.go_on(3)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        return self.photograph()

    def check(self, *, on_record: bool) -> None:
        before = self.begun()
        for about, ask in self.requests().items():
            self.restore(before)
            self.cloud.neighbours = views.KINDS
            with self.deferred():
                ask()
            if not on_record and about not in ("resize", "taken away"):
                self.forget_resolved()
            self.hold(self.photograph(), about, singly=about in ("nodegroup", "upgrade"))

    def test_by_a_later_pass(self) -> None:
        self.check(on_record=True)

    def test_by_a_later_pass_that_has_only_names(self) -> None:
        self.check(on_record=False)

    def test_by_the_verb_itself(self) -> None:
        before = self.begun()
        for about, ask in self.requests().items():
            found = set()
            for kinds in ((), views.KINDS):
                self.restore(before)
                self.cloud.neighbours = kinds
                ask()
                found.add(self.rendered(self.photograph(), *kinds))
            self.assertEqual(1, len(found), about)

    def test_a_release_that_is_lost(self) -> None:
        self.settled()
        del self.helm.releases[NAMESPACE, RELEASE]
        with self.deferred():
            self.resize(1)
        self.hold(self.photograph(), "lost")

    def test_a_creation(self) -> None:
        self.helm.refusal = errors.ManagementUnreachable("The management cluster is away.")
        self.create()
        self.conductor()
        self.helm.refusal = None
        self.hold(self.photograph(), "creation")
