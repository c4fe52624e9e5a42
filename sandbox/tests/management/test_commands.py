# SPDX-License-Identifier: Apache-2.0
"""How programs are started: on loopback only, with no secret in a command line."""

from pathlib import Path
import re
import shutil
import stat
import tempfile
import unittest

from cryptography import x509
import yaml

from sandbox.management import binaries, controllers, crds, lifecycle, server
from sandbox.management.pki import Pki
from sandbox.management.releases import Providers
from sandbox.state import State


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        self.state = State(self.root / "state")
        self.pki = Pki(self.state)
        self.place = self.root / "bin"
        self.place.mkdir()
        for program in binaries.programs(Providers()):
            (self.place / program.name).write_text("")
            (self.place / program.name).chmod(0o755)

    def commands(self) -> dict[str, list[str]]:
        found = {
            name: controllers.manager(self.state, self.place, name) for name in controllers.NAMES
        }
        found["etcd"] = server.etcd(self.state, self.place)
        found["kube-apiserver"] = server.apiserver(self.state, self.place)
        found["kube-controller-manager"] = server.controller_manager(self.state, self.place)
        return found


class TestCommands(Case):
    def test_every_port_is_on_loopback(self) -> None:
        commands = self.commands()
        ports = {str(port) for port in self.state.ports().values()}
        for name, argv in commands.items():
            for word in argv:
                if re.search(r":\d+$", word):
                    self.assertRegex(word, r"127\.0\.0\.1:\d+$", name)
            given = set(re.findall(r"\d{4,}", " ".join(argv))) & ports
            self.assertTrue(given, name)
        for name in ("kube-apiserver", "kube-controller-manager"):
            self.assertIn("--bind-address=127.0.0.1", commands[name])

    def test_no_token_is_in_a_command_line(self) -> None:
        tokens = [self.pki.token(user) for user in (server.ADMIN, server.DRIVER)]
        for name, argv in self.commands().items():
            for token in tokens:
                self.assertNotIn(token, " ".join(argv), name)

    def test_managers_reconcile_nothing_when_they_shall_only_admit(self) -> None:
        for name in controllers.NAMES:
            busy = controllers.manager(self.state, self.place, name)
            idle = controllers.manager(self.state, self.place, name, reconcile=False)
            self.assertEqual([*busy, f"--watch-filter={controllers.NOTHING}"], idle)

    def test_what_charts_can_ask_of_cluster_api_is_switched_on(self) -> None:
        commands = self.commands()
        for name in controllers.NAMES:
            gates = [word for word in commands[name] if word.startswith("--feature-gates=")]
            self.assertEqual(name != controllers.CAPO, len(gates) == 1, name)
            for gate in controllers.GATES if gates else ():
                self.assertIn(f"{gate}=true", gates[0])

    def test_access_is_by_role(self) -> None:
        self.assertIn("--authorization-mode=RBAC", self.commands()["kube-apiserver"])

    def test_status_names_everything_and_what_is_played(self) -> None:
        found = dict(lifecycle.status(self.state))
        self.assertEqual("stopped (real)", found["kube-apiserver"])
        played = {name for name, condition in found.items() if "simulated" in condition}
        expected = {controllers.MACHINES, controllers.ADDONS, controllers.ELECTIONS}
        self.assertEqual(expected, played)


class TestPki(Case):
    def test_key_material_is_the_owners_only_and_made_once(self) -> None:
        self.pki.ensure()
        first = self.pki.certificate.read_bytes(), self.pki.token("magnum")
        self.pki.ensure()
        self.assertEqual(first, (self.pki.certificate.read_bytes(), self.pki.token("magnum")))
        for path in self.pki.folder.iterdir():
            self.assertEqual(0o600, stat.S_IMODE(path.stat().st_mode), path.name)

    def test_users_have_tokens_of_their_own(self) -> None:
        self.assertNotEqual(self.pki.token("admin"), self.pki.token("magnum"))

    def test_the_authority_signs_for_loopback(self) -> None:
        self.pki.ensure()
        authority = x509.load_pem_x509_certificate(self.pki.authority.read_bytes())
        certificate = x509.load_pem_x509_certificate(self.pki.certificate.read_bytes())
        certificate.verify_directly_issued_by(authority)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        addresses = [str(item) for item in names.get_values_for_type(x509.IPAddress)]
        self.assertEqual(["127.0.0.1"], addresses)


class TestKubeconfigs(Case):
    def test_each_user_has_one_that_only_the_owner_reads(self) -> None:
        server.write_users(self.state)
        for user, path in (
            ("admin", server.kubeconfig(self.state)),
            ("magnum", server.driver_kubeconfig(self.state)),
        ):
            found = yaml.safe_load(path.read_text())
            self.assertEqual(user, found["current-context"])
            self.assertEqual(self.pki.token(user), found["users"][0]["user"]["token"])
            self.assertEqual(server.url(self.state), found["clusters"][0]["cluster"]["server"])
            self.assertEqual(0o600, stat.S_IMODE(path.stat().st_mode))

    def test_only_the_administrator_is_a_master(self) -> None:
        server.write_users(self.state)
        lines = (self.pki.folder / "tokens.csv").read_text().splitlines()
        masters = [line.split(",")[1] for line in lines if "system:masters" in line]
        self.assertEqual(["admin"], masters)


class TestDriverRoles(unittest.TestCase):
    def setUp(self) -> None:
        self.roles = {
            document["metadata"]["name"]: document["rules"]
            for document in crds.rbac()
            if document["kind"] == "ClusterRole"
        }
        (self.binding,) = (item for item in crds.rbac() if item["kind"] == "ClusterRoleBinding")

    def test_secrets_are_out_of_reach_but_where_the_driver_binds_itself(self) -> None:
        everywhere = self.roles[self.binding["roleRef"]["name"]]
        self.assertNotIn("secrets", [kind for rule in everywhere for kind in rule["resources"]])
        self.assertNotIn("*", [group for rule in everywhere for group in rule["apiGroups"]])
        self.assertNotIn("*", [verb for rule in everywhere for verb in rule["verbs"]])

    def test_only_the_one_role_can_be_bound(self) -> None:
        binding = [
            rule
            for rules in self.roles.values()
            for rule in rules
            if {"bind", "escalate", "impersonate"} & set(rule["verbs"])
        ]
        self.assertEqual(
            [
                {
                    "apiGroups": ["rbac.authorization.k8s.io"],
                    "resources": ["clusterroles"],
                    "resourceNames": ["magnum-k8s-capi-helm"],
                    "verbs": ["bind"],
                }
            ],
            binding,
        )

    def test_the_subject_is_the_sandboxs_user(self) -> None:
        self.assertEqual(server.DRIVER, self.binding["subjects"][0]["name"])
