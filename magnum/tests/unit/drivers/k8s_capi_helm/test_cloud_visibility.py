# SPDX-License-Identifier: Apache-2.0
"""A name means what it means to a member of the project, also where an administrator asks.

The cloud is seen by two: a member, whom the services themselves show what the project may see, and
an administrator, whom they show what is in all projects. The port has to answer both alike.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
from typing import Any

import fixtures
import hypothesis
from hypothesis import strategies

from magnum.common import context as magnum_context
from magnum.drivers.k8s_capi_helm import cloud, errors, labels
from magnum.drivers.k8s_capi_helm.cloud.access.services import Services
from magnum.drivers.k8s_capi_helm.cloud.catalogue import capabilities, compute, images, networks
from magnum.drivers.k8s_capi_helm.model import ClusterRequest, NodeGroupRequest
from magnum.drivers.k8s_capi_helm.reconcile.process import clients as reconcile_clients
from magnum.tests import base
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeApis, FakeCatalogue, views
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.views import SERVICE, Things, Viewer
from magnum.tests.unit.drivers.k8s_capi_helm.test_cloud import request, UUID

_NAMES = ("kube", "other")
_IDS = tuple(f"0a0a0a0a-1111-4111-8111-00000000000{number}" for number in range(6))
_PROJECTS = ("p1", "p2", "p3", "service", "operator")
_STATES = ("accepted", "pending", "rejected")


def _of(values: Any) -> Any:
    return strategies.sampled_from(list(values))


def _some(values: Any) -> Any:
    return strategies.lists(_of(values), unique=True, max_size=3)


@strategies.composite
def _clouds(draw: Callable[[Any], Any]) -> Things:
    """Any few things of anybody, with few names."""
    made = Things()
    for one in draw(_some(_IDS)):
        image = {"id": one, "name": draw(_of((*_NAMES, *_IDS))), "owner": draw(_of(_PROJECTS))}
        visibility = draw(_of(("private", "public", "shared", "community")))
        made.images.append(
            {**image, "visibility": visibility, "os_hidden": draw(strategies.booleans())}
        )
        made.members[one] = {to: draw(_of(_STATES)) for to in draw(_some(_PROJECTS))}
    for key, listed, hidden in (
        ("os-flavor-access:is_public", made.flavors, "OS-FLV-DISABLED:disabled"),
        ("is_public", made.volume_types, "description"),
    ):
        names = draw(strategies.permutations(_NAMES))
        for one, name in zip(draw(_some((*_NAMES, "f-1", "f-2"))), names, strict=False):
            thing = {"id": one, "name": name, "vcpus": 1, "ram": 1, "disk": 1}
            flags = {key: draw(strategies.booleans()), hidden: draw(strategies.booleans())}
            listed.append({**thing, **flags})
            made.access[one] = draw(_some(_PROJECTS))
    for one in draw(_some(_IDS)):
        network = {"id": one, "name": draw(_of(_NAMES)), "project_id": draw(_of(_PROJECTS))}
        made.networks.append({**network, "router:external": draw(strategies.booleans())})
        subnet = {"id": f"sub-{one}", "name": draw(_of(_NAMES)), "network_id": one}
        made.subnets.append({**subnet, "project_id": draw(_of(_PROJECTS))})
        for action in draw(_some(("access_as_shared", "access_as_external"))):
            for target in draw(_some((*_PROJECTS, "*"))):
                entry = {"object_id": one, "action": action, "target_tenant": target}
                made.rbac.append(entry)
    return made


def _answer(question: Callable[..., Any], services: Services, *args: Any) -> Any:
    """What is answered, or the words of a refusal."""
    try:
        return question(services, *args, "p1")
    except errors.CloudRefused as error:
        return str(error)


class TestOneAnswer(base.TestCase):
    """What a member and an administrator are told of any cloud, in the name of the project."""

    @hypothesis.settings(max_examples=100, deadline=None, database=None, derandomize=True)
    @hypothesis.given(things=_clouds())
    def test_whoever_asks(self, things: Things) -> None:
        member, administrator = (
            Services(
                FakeCatalogue(things, viewer, [], auth_url="http://keystone"),
                is_admin=viewer.everything,
            )
            for viewer in (Viewer("p1"), SERVICE)
        )
        for question, args in (
            *((images.images, ([text],)) for text in (*_NAMES, *_IDS)),
            (compute.flavors, ([*_NAMES, "f-1", "f-2"],)),
            (capabilities.volume_types, ()),
            (networks.networks, ([*_NAMES, *_IDS],)),
            (networks.subnets, (_NAMES,)),
        ):
            wanted = _answer(question, member, *args)
            self.assertEqual(wanted, _answer(question, administrator, *args), question.__name__)


class Case(base.TestCase):
    """The same through the real openstacksdk."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch("keystoneauth1.session.time.sleep", lambda s: None))
        self.openstack = FakeApis()
        self.openstack.networks += [self.openstack.network("net-3", "storage", "p1")]
        admin = magnum_context.make_admin_context(all_tenants=True)
        self.administrator = cloud.Cloud(
            cloud.Services(self.openstack.clients(admin), is_admin=True)
        )
        self.member = cloud.Cloud(cloud.Services(self.openstack.clients(self.context)))
        self.assertFalse(self.context.is_admin)

    def image(self, one: str, **fields: Any) -> str:
        """One more image of the name that everybody asks for."""
        made = f"0a0a0a0a-1111-4111-8111-0000000000{one}"
        self.openstack.images.append({**self.openstack.images[0], "id": made, **fields})
        return made

    def answers(self, text: str = "ubuntu-kube") -> str:
        """Id of the image that both find, "" for none."""
        found = [
            one.facts(request(image=text)).image_id for one in (self.member, self.administrator)
        ]
        self.assertEqual(1, len(set(found)), found)
        return found[0]


class TestBothViews(Case):
    def test_all_that_a_render_needs(self) -> None:
        group = NodeGroupRequest("extra", "large", 1, image="ubuntu-kube")
        texts = {"boot_volume_size": "20", "extra_network_names": "storage"}
        wanted = request(
            fixed_network="mine",
            fixed_subnet="nodes",
            node_groups=(group,),
            labels=labels.parse(texts, {}),
        )
        facts = self.member.facts(wanted)
        self.assertEqual((UUID, "net-1"), (facts.image_id, facts.external_network_id))
        self.assertEqual(("net-2", "sub-1"), (facts.fixed_network_id, facts.fixed_subnet_id))
        self.assertEqual(("fast", "slow"), facts.volume_types)
        self.assertEqual((), facts.refusals)
        self.assertEqual(facts, self.administrator.facts(wanted))
        software = self.member.software(wanted)
        self.assertEqual(software, self.administrator.software(wanted))
        of_group = self.member.nodegroup_facts(wanted, group)
        self.assertEqual(of_group, self.administrator.nodegroup_facts(wanted, group))

    def test_a_neighbours_image_is_nobodys(self) -> None:
        for kind in views.KINDS:
            self.openstack.neighbours = (kind,)
            self.assertEqual(UUID, self.answers(), kind)

    def test_what_is_shared_and_accepted_counts_and_what_is_offered_does_not(self) -> None:
        self.openstack.images[0]["name"] = "something else"
        for number, state in enumerate(("pending", "rejected", "accepted"), 10):
            made = self.image(str(number), owner="p2", visibility="shared", name="theirs")
            self.openstack.members[made] = {"p1": state}
            self.assertEqual(made if state == "accepted" else "", self.answers("theirs"))

    def test_ones_own_community_image_counts_and_others_do_not(self) -> None:
        self.openstack.images.clear()
        self.openstack.images.append({**FakeApis().images[0], "visibility": "community"})
        self.openstack.images[0].update(owner="p2")
        self.assertEqual("", self.answers())
        self.openstack.images[0].update(owner="p1")
        self.assertEqual(UUID, self.answers())

    def test_by_id_others_community_images_and_offers_are_shown_and_private_ones_are_not(
        self,
    ) -> None:
        for number, (visibility, members, shown) in enumerate(
            (
                ("community", {}, True),
                ("shared", {"p1": "pending"}, True),
                ("shared", {"p3": "accepted"}, False),
                ("private", {}, False),
            ),
            10,
        ):
            made = self.image(str(number), owner="p2", visibility=visibility)
            self.openstack.members[made] = members
            self.assertEqual(made if shown else "", self.answers(made))

    def test_a_hidden_image_is_found_behind_a_strangers(self) -> None:
        self.openstack.images[0]["os_hidden"] = True
        self.assertEqual(UUID, self.answers())

    def test_two_that_the_project_sees_are_refused_with_their_ids(self) -> None:
        other = self.image("09", owner="p1", visibility="private")
        for one in (self.member, self.administrator):
            error = self.assertRaises(errors.CloudRefused, one.facts, request())
            self.assertIn(f"({UUID}, {other})", str(error))

    def test_a_private_flavor_is_for_whom_it_is_for(self) -> None:
        private = {"os-flavor-access:is_public": False}
        self.openstack.flavors[1].update(private)
        for allowed, wanted in (([], set()), (["p2"], set()), (["p1", "p2"], {"large"})):
            self.openstack.access = {"f-2": allowed}
            for one in (self.member, self.administrator):
                self.assertEqual(wanted, set(one.existing_flavors("p1", ["large"])))

    def test_a_network_that_is_shared_with_the_project_alone(self) -> None:
        self.openstack.networks.append(self.openstack.network("net-9", "given", "p2"))
        self.openstack.rbac = [
            {"object_id": "net-9", "action": "access_as_shared", "target_tenant": "p1"}
        ]
        for one in (self.member, self.administrator):
            self.assertEqual("net-9", one.facts(request(fixed_network="given")).fixed_network_id)


class TestWhoIsShownAll(Case):
    """Whose answers are cut down: the service user's, and those of any administrator."""

    def test_the_port_that_the_shell_makes(self) -> None:
        administrator = magnum_context.make_admin_context(all_tenants=True)
        both = (self.context, administrator)
        clients = {one.is_admin: self.openstack.clients(one) for one in both}
        for context in both:
            port = reconcile_clients.openstack(context, lambda one: clients[one.is_admin])
            self.assertEqual(UUID, port.facts(request()).image_id)
        asked = self.openstack.asked
        self.assertEqual(1, len([one for one in asked if one.endswith("/rbac-policies")]))


class TestUnknown(Case):
    """Where a service does not say who may use something, nobody says that the project may."""

    def asks(self, end: str, status: int, ask: Callable[[], Any]) -> None:
        self.openstack.said = {end: (status, {"error": {"message": "no"}})}
        wanted = errors.CloudUnreachable if status >= 429 else errors.CloudRefused
        self.assertRaises(wanted, ask)

    def test_members_access_and_policies_that_cannot_be_read(self) -> None:
        shared = self.image("08", owner="p2", visibility="shared")
        self.openstack.flavors[0]["os-flavor-access:is_public"] = False
        for status in (403, 404, 429, 500, 503):
            for end, ask in (
                (f"/images/{shared}/members", lambda: self.administrator.software(request())),
                ("/os-flavor-access", lambda: self.administrator.flavors("p1", ["small"])),
            ):
                self.asks(end, status, ask)

    def test_policies_and_types_are_told_among_the_problems(self) -> None:
        for end in ("/rbac-policies", "/os-volume-type-access"):
            self.openstack.said = {end: (403, {"error": {"message": "not for you"}})}
            facts = self.administrator.facts(request())
            self.assertIn("not for you", " ".join(facts.refusals))
            self.openstack.said = {end: (503, {})}
            self.assertRaises(errors.CloudUnreachable, self.administrator.facts, request())


class TestKnown(Case):
    """What was resolved when somebody asked is not looked for again."""

    def test_nothing_of_it_is_asked(self) -> None:
        wanted: ClusterRequest = request(fixed_network="mine", fixed_subnet="nodes")
        before = self.member.facts(wanted)
        self.openstack.asked.clear()
        again = self.administrator.facts(wanted, lookup=before.resolved_names)
        rest = {"networks": None, "subnets": None}
        self.assertEqual(dataclasses.replace(before, **rest), again)
        for part in ("/images", "/flavors", "/networks", "/subnets"):
            self.assertFalse([one for one in self.openstack.asked if part in one], part)
