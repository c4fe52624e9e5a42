# SPDX-License-Identifier: Apache-2.0
"""Several management clusters: their options, the note in the stack id, and who gets a cluster."""

from __future__ import annotations

from collections import Counter
import types

import fixtures
from oslo_config import cfg
import testtools
import yaml

from magnum.drivers.k8s_capi_helm import conf, errors, labels
from magnum.drivers.k8s_capi_helm.conf import management_clusters
from magnum.drivers.k8s_capi_helm.kube.identity import kubeconfig
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import management_cluster, names
from magnum.drivers.k8s_capi_helm.model.management_cluster import ManagementCluster
from magnum.drivers.k8s_capi_helm.reconcile.policy import management_choice
from magnum.drivers.k8s_capi_helm.reconcile.process import clients
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one
from magnum.tests.unit.drivers.k8s_capi_helm.suites import http_server
from magnum.tests.unit.drivers.k8s_capi_helm.test_conf import config

RELEASE = "demo-abcdefghijkl"


class TestNote(testtools.TestCase):
    def test_the_default_one_has_none(self) -> None:
        stack_id = management_cluster.with_management(RELEASE, "default")
        self.assertEqual(RELEASE, stack_id)
        self.assertEqual(RELEASE, management_cluster.release_of(stack_id))
        self.assertEqual("default", management_cluster.management_of(stack_id))

    def test_it_is_read_as_it_is_written(self) -> None:
        for name in ("a", "az-2", "0", "a" * 30):
            stack_id = management_cluster.with_management(RELEASE, name)
            self.assertNotEqual(RELEASE, stack_id)
            self.assertEqual(RELEASE, management_cluster.release_of(stack_id))
            self.assertEqual(name, management_cluster.management_of(stack_id))
            self.assertTrue(management_cluster.is_own_stack_id(stack_id))
            self.assertTrue(management_cluster.is_management_name(name))

    def test_it_fits_into_the_column(self) -> None:
        longest = management_cluster.with_management(names.release("x" * 99), "a" * 30)
        self.assertLess(len(longest), 255)

    def test_an_older_version_takes_it_for_another_drivers(self) -> None:
        """It touches nothing then, and does not look on the wrong management cluster."""
        self.assertFalse(names.is_release(management_cluster.with_management(RELEASE, "az2")))

    def test_other_drivers_stack_ids(self) -> None:
        for other in (None, "", "49dc23f5-ffc9-40c3-9d34-7be7f9e34d63", "kube-x7k2p", "a@B", "@"):
            self.assertFalse(management_cluster.is_own_stack_id(other), other)
            self.assertEqual(other or "", management_cluster.release_of(other))
            self.assertEqual("default", management_cluster.management_of(other))


class TestOptions(testtools.TestCase):
    def read(self, text: str) -> tuple[ManagementCluster, ...]:
        return management_clusters.read_management_clusters(config(self, text))

    def refused(self, text: str) -> str:
        error = self.assertRaises(errors.InvalidConfiguration, self.read, text)
        self.assertNotIn("capi_helm", str(error))
        return error.detail

    def test_without_the_option_there_are_none(self) -> None:
        self.assertEqual((), self.read(""))
        made = clients.build(config_with_magnum(self, ""))
        self.assertEqual(("default", ["default"]), (made.management, list(made.peers)))

    def test_all_options(self) -> None:
        found = self.read(
            "[capi_helm]\nkubeconfig_file = /etc/one\nmanagement_clusters = default, az2\n"
            "[capi_helm_management_default]\nweight = 3\n"
            "[capi_helm_management_az2]\nkubeconfig_file = /etc/two\ncontext = c\nweight = 0\n"
            "projects = p1,p2\navailability_zones = nova-2\nlabels = kube_tag=v1.35.1\n"
            "draining = true\n"
        )
        self.assertEqual(
            (
                ManagementCluster("default", "/etc/one", weight=3),
                ManagementCluster(
                    "az2",
                    "/etc/two",
                    "c",
                    0,
                    ("p1", "p2"),
                    ("nova-2",),
                    (("kube_tag", "v1.35.1"),),
                    is_draining=True,
                ),
            ),
            found,
        )

    def test_what_is_wrong_is_named_with_its_group_and_option(self) -> None:
        two = "[capi_helm]\nmanagement_clusters = az2\n[capi_helm_management_az2]\n"
        for text, words in (
            ("[capi_helm]\nmanagement_clusters = AZ\n", "[capi_helm] management_clusters has 'AZ'"),
            ("[capi_helm]\nmanagement_clusters = a,a\n", "has 'a' twice"),
            (two, "[capi_helm_management_az2] kubeconfig_file is not set"),
            (f"{two}kubeconfig_file=/k\nweight=x\n", "[capi_helm_management_az2] weight cannot"),
            (f"{two}kubeconfig_file=/k\nweight=-1\n", "[capi_helm_management_az2] weight cannot"),
            (f"{two}kubeconfig_file=/k\nlabels=x\n", "[capi_helm_management_az2] labels has 'x'"),
            (f"{two}kubeconfig_file=/k\nlabels=x=1\n", "labels has 'x=1'"),
            (f"{two}kubeconfig_file=/k\nlabels=boot_volume_size=x\n", "boot_volume_size=x"),
            (
                "[capi_helm]\nmanagement_clusters = default\n"
                "[capi_helm_management_default]\nkubeconfig_file=/k\n",
                "[capi_helm_management_default] kubeconfig_file is for others",
            ),
            (
                "[capi_helm]\nkubeconfig_file = /k\nmanagement_clusters = az2\n"
                "[capi_helm_management_az2]\nkubeconfig_file=/k\n",
                "[capi_helm_management_az2] kubeconfig_file and context are those of 'default'",
            ),
        ):
            self.assertIn(words, self.refused(text), text)

    def test_a_conductor_refuses_before_it_does_anything(self) -> None:
        wrong = config_with_magnum(self, "[capi_helm]\nmanagement_clusters = az2\n")
        error = self.assertRaises(errors.InvalidConfiguration, clients.build, wrong)
        self.assertIn("[capi_helm_management_az2] kubeconfig_file", error.detail)

    def test_each_has_clients_of_its_own(self) -> None:
        """Nothing that one waits for, or that is full, is the other one's."""
        text = (
            "[capi_helm]\nkubeconfig_file = /etc/one\nmanagement_clusters = default, az2\n"
            "[capi_helm_management_az2]\nkubeconfig_file = /etc/two\n"
        )
        made = clients.build(config_with_magnum(self, text))
        other = made.at("az2")
        self.assertEqual([made, other], made.all_clients())
        self.assertEqual(made, other.at("default"))
        paths = [one.kube.kubeconfig_path for one in (made, other)]
        self.assertEqual(["/etc/one", "/etc/two"], paths)
        shared = {"metrics", "management", "peers", "cloud", "clock", "pause", "release_name"}
        for field in at_least_one(sorted(set(clients.Clients.__slots__) - shared)):
            self.assertIsNot(getattr(made, field), getattr(other, field), field)
        error = self.assertRaises(errors.ManagementRefused, made.at, "az3")
        self.assertIn("az3", str(error))

    def test_the_default_one_may_have_no_clusters(self) -> None:
        text = (
            "[capi_helm]\nmanagement_clusters = az2\n"
            "[capi_helm_management_az2]\nkubeconfig_file = /etc/two\n"
        )
        made = clients.build(config_with_magnum(self, text))
        self.assertEqual(["az2"], [one.management for one in made.all_clients()])
        self.assertIsNone(made.informers)
        self.assertIsNotNone(made.at("az2").informers)


def config_with_magnum(case: testtools.TestCase, text: str) -> cfg.ConfigOpts:
    """The options with those of Magnum that the clients need."""
    found = config(case, text)
    found.register_opts([cfg.StrOpt("openstack_ca_file")], group="drivers")
    return found


class TestErrors(http_server.WireCase):
    def detail(self, name: str) -> str:
        path = http_server.write_kubeconfig(self.config, "https://127.0.0.1:9")
        kube = KubeClient(ManagementCluster(name, str(path)), pause=0)
        error = self.assertRaises(errors.ManagementUnreachable, kube.get, names.LEASE, "n", "one")
        self.assertNotIn("az2", str(error))
        return error.detail

    def test_the_log_says_which_does_not_answer(self) -> None:
        self.assertTrue(self.detail("az2").startswith("management cluster az2: GET /"))
        self.assertTrue(self.detail("default").startswith("GET /"))


class TestContext(testtools.TestCase):
    def kubeconfig(self) -> str:
        document = {
            "current-context": "a",
            "clusters": [
                {"name": name, "cluster": {"server": f"https://{name}.example.org"}}
                for name in ("a", "b")
            ],
            "contexts": [
                {"name": name, "context": {"cluster": name, "user": name}} for name in ("a", "b")
            ],
            "users": [{"name": name, "user": {"token": name}} for name in ("a", "b")],
        }
        path = f"{self.useFixture(fixtures.TempDir()).path}/kubeconfig"
        with open(path, "w") as file:
            yaml.safe_dump(document, file)
        return path

    def test_one_kubeconfig_may_have_several(self) -> None:
        path, hosts, tokens, identities = self.kubeconfig(), [], [], set()
        for context in ("", "a", "b"):
            configuration = kubeconfig.load(path, context=context).configuration
            hosts.append(configuration.host)
            tokens.append(kubeconfig.token_header(configuration, path)["authorization"])
            identities.add(kubeconfig.fingerprint(path, context))
            kubeconfig.check_context(path, context)
        a, b = "https://a.example.org", "https://b.example.org"
        self.assertEqual(([a, a, b], ["Bearer a", "Bearer a", "Bearer b"]), (hosts, tokens))
        self.assertEqual(3, len(identities))

    def test_one_that_does_not_exist(self) -> None:
        path = self.kubeconfig()
        for check in (kubeconfig.check_context, lambda *args: kubeconfig.load(path, context="c")):
            error = self.assertRaises(errors.ManagementRefused, check, path, "c")
            self.assertIn("c", error.detail)


def request(project: str = "p1", uuid: str = "u", **texts: str) -> types.SimpleNamespace:
    return types.SimpleNamespace(
        uuid=uuid, project_id=project, labels=labels.parse(texts, conf.label_defaults(_CONF))
    )


_CONF = cfg.ConfigOpts()
_CONF.register_opts([cfg.StrOpt("state_path", default="/state")])
conf.register_opts(_CONF)
_CONF([], default_config_files=[])


class TestChoice(testtools.TestCase):
    def takes(self, one: ManagementCluster, asked: types.SimpleNamespace) -> bool:
        return not management_choice.refusal_reason(one, asked)

    def test_projects(self) -> None:
        one = ManagementCluster("a", projects=("p1",))
        self.assertTrue(self.takes(one, request("p1")))
        self.assertFalse(self.takes(one, request("p2")))

    def test_availability_zones(self) -> None:
        one = ManagementCluster("a", zones=("z1", "z2"))
        for texts, is_taken in (
            ({}, False),
            ({"availability_zone": "z1"}, True),
            ({"availability_zone": "z3"}, False),
            ({"control_plane_availability_zones": "z1,z2"}, True),
            ({"control_plane_availability_zones": "z1,z3"}, False),
            ({"availability_zone": "z3", "control_plane_availability_zones": "z1"}, False),
        ):
            self.assertEqual(is_taken, self.takes(one, request(**texts)), texts)
        self.assertTrue(self.takes(ManagementCluster("b"), request(availability_zone="z9")))

    def test_labels_are_compared_by_their_meaning(self) -> None:
        one = ManagementCluster("a", labels=(("auto_healing_enabled", "False"),))
        self.assertTrue(self.takes(one, request(auto_healing_enabled="no")))
        self.assertFalse(self.takes(one, request()))

    def test_a_draining_one_takes_none(self) -> None:
        self.assertFalse(self.takes(ManagementCluster("a", is_draining=True), request()))

    def test_the_one_with_most_conditions_comes_first(self) -> None:
        general = ManagementCluster("general")
        own = ManagementCluster("own", projects=("p1",))
        both = ManagementCluster("both", projects=("p1",), zones=("z1",))
        self.assertEqual([own], management_choice.with_most_conditions([general, own]))
        self.assertEqual([both], management_choice.with_most_conditions([general, both, own]))
        self.assertEqual([], management_choice.with_most_conditions([]))

    def test_weights(self) -> None:
        three = [
            ManagementCluster("a", weight=1),
            ManagementCluster("b", weight=3),
            ManagementCluster("none", weight=0),
        ]
        counts = Counter(
            management_choice.by_weight(three, str(number)).name for number in range(2000)
        )
        self.assertEqual({"a", "b"}, counts.keys())
        self.assertAlmostEqual(3, counts["b"] / counts["a"], delta=0.5)
        only = [ManagementCluster("none", weight=0)]
        self.assertEqual("none", management_choice.by_weight(only, "u").name)

    def test_another_one_moves_its_own_share_only(self) -> None:
        two = [ManagementCluster("a"), ManagementCluster("b")]
        three = [*two, ManagementCluster("c")]
        for number in range(200):
            before = management_choice.by_weight(two, str(number)).name
            after = management_choice.by_weight(three, str(number)).name
            self.assertIn(after, (before, "c"))
