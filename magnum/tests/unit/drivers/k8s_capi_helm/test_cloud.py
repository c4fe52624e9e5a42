# SPDX-License-Identifier: Apache-2.0
"""The cloud port asks each thing once, says what is missing, and translates every library error."""

import types

from keystoneauth1 import exceptions as ka_exceptions
from openstack import exceptions as sdk_exceptions
import testtools

from magnum.drivers.k8s_capi_helm import cloud, errors, labels
from magnum.drivers.k8s_capi_helm.model import ClusterRequest, NodeGroupRequest


class Image(types.SimpleNamespace):
    def to_dict(self):
        return dict(self.__dict__)


class FakeClients:
    """openstacksdk proxies over lists; ``failing`` makes a service raise instead."""

    def __init__(self):
        self.image = Image(id="img-1", os_distro="ubuntu", properties={"kube_version": "v1.34.4"})
        self.flavors = {"small": ("f-1", "small", 2, 4096, 20)}
        self.nets = [("net-1", "public", "admin", True), ("net-2", "mine", "p1", False)]
        self.deleted, self.failing = [], None
        self.session = types.SimpleNamespace(timeout=None)

    def _proxy(self, **functions):
        def raising(*args, **kwargs):
            raise self.failing

        return types.SimpleNamespace(
            **{name: raising if self.failing else call for name, call in functions.items()}
        )

    def glance(self):
        return self._proxy(find_image=lambda name, ignore_missing: self.image)

    def nova(self):
        def find_flavor(name, ignore_missing):
            found = self.flavors.get(name)
            keys = ("id", "name", "vcpus", "ram", "disk")
            return types.SimpleNamespace(**dict(zip(keys, found, strict=True))) if found else None

        def get_server(server_id):
            if server_id == "gone":
                raise sdk_exceptions.NotFoundException("gone")
            return types.SimpleNamespace(fault={"message": f" No valid host for {server_id} "})

        def zones():
            return [types.SimpleNamespace(name=name) for name in ("zone-1", "zone-2")]

        return self._proxy(find_flavor=find_flavor, get_server=get_server, availability_zones=zones)

    def octavia(self):
        known = [types.SimpleNamespace(name=name) for name in ("amphora", "ovn")]
        return self._proxy(providers=lambda: known)

    def neutron(self):
        def networks(**query):
            for net_id, name, project, external in self.nets:
                wanted = query.get("id", net_id) == net_id and query.get("name", name) == name
                if wanted and query.get("is_router_external", external) == external:
                    yield types.SimpleNamespace(id=net_id, project_id=project)

        return self._proxy(networks=networks, subnets=lambda **query: iter(()))

    def cinder(self):
        kinds = [types.SimpleNamespace(name=name) for name in ("fast", "slow")]
        return self._proxy(types=lambda: kinds)

    def keystone(self):
        client = self._proxy(
            create_application_credential=self._create_credential,
            delete_application_credential=lambda *args, **kwargs: self.deleted.append(args),
        )
        return types.SimpleNamespace(session=self.session, client=client)

    def _create_credential(self, user, name, **about):
        if self.failing:
            raise self.failing
        self.wanted = about
        return types.SimpleNamespace(id="ac-1", secret="s3cret", name=name)

    def url_for(self, service_type, interface):
        return f"http://{interface}.example/identity"


def request(**changes):
    fields = {
        "uuid": "c1",
        "name": "demo",
        "release": "demo-abcdefghijkl",
        "namespace": "magnum-p1",
        "project_id": "p1",
        "user_id": "u1",
        "labels": labels.parse({}, {}),
        "control_plane": NodeGroupRequest("default-master", "small", 1),
        "node_groups": (NodeGroupRequest("default-worker", "small", 1),),
        "image": "ubuntu-kube",
        "external_network": "public",
    }
    return ClusterRequest(**{**fields, **changes})


class TestFacts(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clients = FakeClients()
        self.cloud = cloud.Cloud(self.clients)

    def refusal(self, **changes):
        error = self.assertRaises(errors.CloudRefused, self.cloud.facts, request(**changes))
        return str(error)

    def test_everything_a_render_needs(self):
        facts = self.cloud.facts(request(fixed_network="mine"), interface="internal")
        self.assertEqual("img-1", facts.image_id)
        self.assertEqual("1.34.4", facts.kubernetes_version)
        self.assertEqual(("net-1", "net-2"), (facts.external_network_id, facts.fixed_network_id))
        self.assertEqual(("fast", "slow"), facts.volume_types)
        self.assertEqual(4096, facts.flavors["small"].ram)
        self.assertEqual("http://internal.example/identity/v3", facts.auth_url)

    def test_what_an_upgrade_needs_is_the_image_and_what_labels_name(self):
        facts = self.cloud.software(request(external_network="gone"), interface="internal")
        self.assertEqual(("img-1", "1.34.4"), (facts.image_id, facts.kubernetes_version))
        self.assertEqual(("fast", "slow"), facts.volume_types)
        self.assertEqual("http://internal.example/identity/v3", facts.auth_url)
        self.assertEqual({"small"}, set(facts.flavors))
        error = self.assertRaises(
            errors.CloudRefused,
            self.cloud.software,
            request(labels=labels.Labels(availability_zone="nowhere")),
        )
        self.assertIn("nowhere", str(error))

    def test_calls_are_bounded_in_time(self):
        self.cloud.facts(request())
        self.assertGreater(self.clients.session.timeout, 0)

    def test_image_that_does_not_say_its_kubernetes(self):
        self.clients.image = Image(id="img-1", os_distro="ubuntu", properties={})
        self.assertEqual("", self.cloud.facts(request()).kubernetes_version)

    def test_missing_things_are_named(self):
        self.clients.image = None
        self.assertIn("'ubuntu-kube'", self.refusal())
        self.clients.image = FakeClients().image
        tiny = NodeGroupRequest("default-worker", "tiny", 1)
        self.assertIn("'tiny'", self.refusal(node_groups=(tiny,)))
        self.assertIn("'nowhere'", self.refusal(external_network="nowhere"))
        self.assertIn("'none'", self.refusal(fixed_subnet="none"))

    def test_what_labels_name_has_to_be_there(self):
        for name, wrong, right in (
            ("availability_zone", "zone-9", "zone-2"),
            ("octavia_provider", "amfora", "ovn"),
            ("extra_network_names", "storage", "mine"),
        ):
            self.assertIn(f"'{wrong}'", self.refusal(labels=labels.parse({name: wrong}, {})))
            self.assertTrue(self.cloud.facts(request(labels=labels.parse({name: right}, {}))))

    def test_a_cluster_without_balancer_asks_for_no_provider(self):
        wrong = labels.parse({"octavia_provider": "amfora"}, {})
        self.assertTrue(self.cloud.facts(request(labels=wrong, load_balancer=False)))

    def test_own_network_wins_over_a_visible_one_of_the_same_name(self):
        self.clients.nets.append(("net-3", "mine", "somebody", False))
        self.assertEqual("net-2", self.cloud.facts(request(fixed_network="mine")).fixed_network_id)

    def test_two_of_one_name_are_refused(self):
        self.clients.nets.append(("net-3", "mine", "p1", False))
        self.assertIn("not unique", self.refusal(fixed_network="mine"))

    def test_library_errors_do_not_cross(self):
        for failure, wanted in (
            (ka_exceptions.ConnectFailure("refused"), errors.CloudUnreachable),
            (sdk_exceptions.HttpException("boom", http_status=503), errors.CloudUnreachable),
            (sdk_exceptions.HttpException("no", http_status=403), errors.CloudRefused),
            (ka_exceptions.EndpointNotFound("none"), errors.CloudRefused),
        ):
            self.clients.failing = failure
            self.assertRaises(wanted, self.cloud.facts, request())


class TestCredentialsAndFaults(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clients = FakeClients()
        self.cloud = cloud.Cloud(self.clients)

    def test_credential_is_made_and_deleted(self):
        made = self.cloud.create_credential("u1", "magnum-x", "for x", ["member", "reader"])
        self.assertEqual(("ac-1", "s3cret", "magnum-x"), (made.id, made.secret, made.name))
        self.assertEqual([{"name": "member"}, {"name": "reader"}], self.clients.wanted["roles"])
        self.assertIs(False, self.clients.wanted["unrestricted"])
        self.cloud.delete_credential("u1", "ac-1")
        self.assertEqual([("u1", "ac-1")], self.clients.deleted)

    def test_a_refused_credential_is_refused_with_what_to_do(self):
        self.clients.failing = sdk_exceptions.ForbiddenException("no", http_status=403)
        error = self.assertRaises(
            errors.CloudRefused, self.cloud.create_credential, "u1", "magnum-x", "", ["member"]
        )
        self.assertIn("log in with your password", str(error))

    def test_a_credential_that_is_gone_is_deleted(self):
        self.clients.failing = sdk_exceptions.NotFoundException("gone")
        self.assertIsNone(self.cloud.delete_credential("u1", "ac-1"))

    def test_novas_words_on_servers(self):
        faults = self.cloud.server_faults(["s-1", "gone"])
        self.assertEqual({"s-1": "No valid host for s-1"}, faults)
