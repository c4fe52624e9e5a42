# SPDX-License-Identifier: Apache-2.0
"""Who the client of the management cluster is, and when it looks again."""

from __future__ import annotations

import json
import os
import threading
import time

import fixtures
import yaml

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.kube.identity import kubeconfig
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import test_kube_tls
from magnum.tests.unit.drivers.k8s_capi_helm.suites import http_server


class TestIdentity(http_server.WireCase):
    """Which kubeconfig is used, and when it is read again."""

    def token(self, kube: KubeClient | None = None) -> str:
        """The token that a request carries."""
        (kube or self.kube).get(names.LEASE, "n", "one")
        return self.server.seen[-1].token.partition(" ")[2]

    def environ(self, **variables: str | None) -> None:
        """Environment variables for the rest of the test; None for unset."""
        for name, value in variables.items():
            old = os.environ.get(name)
            self.addCleanup(self.put_back, name, old)
            self.put_back(name, value)

    @staticmethod
    def put_back(name: str, value: str | None) -> None:
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value

    def test_other_contents_are_another_identity(self) -> None:
        self.assertEqual("first", self.token())
        http_server.write_kubeconfig(self.config, self.server.url, {"token": "other"})
        self.assertEqual("other", self.token())

    def test_another_server_is_another_cluster(self) -> None:
        self.token()
        other = self.serve()
        http_server.write_kubeconfig(self.config, other.url)
        before = len(self.server.seen)
        self.kube.get(names.LEASE, "n", "one")
        self.assertEqual(before, len(self.server.seen))
        self.assertEqual(1, len(other.seen))

    def test_a_file_that_it_refers_to(self) -> None:
        token = self.directory / "token"
        token.write_text("first")
        http_server.write_kubeconfig(self.config, self.server.url, {"tokenFile": "token"})
        self.assertEqual("first", self.token())
        token.write_text("other")
        self.assertEqual("other", self.token())

    def test_what_stays_the_same_is_not_parsed_for_every_request(self) -> None:
        parsed: list[bytes] = []
        parse = yaml.safe_load

        def counted(content: bytes) -> object:
            parsed.append(content)
            return parse(content)

        self.useFixture(fixtures.MonkeyPatch("yaml.safe_load", counted))
        self.token()
        self.assertLessEqual(len(parsed), 2)
        parsed.clear()
        for _ in range(5):
            self.assertEqual("first", self.token())
        self.assertEqual([], parsed)

    def plugin(self, *command: str) -> None:
        """The kubeconfig's user has a credential plugin instead of a token."""
        executed = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": command[0],
            "args": list(command[1:]),
            "interactiveMode": "Never",
        }
        http_server.write_kubeconfig(self.config, self.server.url, {"exec": executed})

    def test_a_plugin_gives_the_token(self) -> None:
        answer = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {"token": "of the plugin"},
        }
        self.plugin("sh", "-c", 'printf %s "$1"', "sh", json.dumps(answer))
        self.assertEqual("of the plugin", self.token())

    def test_a_plugin_that_fails(self) -> None:
        self.plugin("sh", "-c", "exit 1")
        self.answer(*[(401, http_server.status("Unauthorized"))] * 2)
        error = self.assertRaises(errors.ManagementRefused, self.kube.get, names.LEASE, "n", "one")
        self.assertIn("renew the kubeconfig", str(error))

    def test_a_plugin_that_hangs_is_ended(self) -> None:
        pid = self.directory / "pid"
        self.plugin("sh", "-c", f'echo $$ > "{pid}"; exec tail -f /dev/null')
        api = kubeconfig.load(str(self.config), plugin_limit=1)
        self.assertRaises(ProcessLookupError, os.kill, int(pid.read_text()), 0)
        self.assertNotIn("authorization", api.configuration.api_key)

    def test_a_plugin_that_hangs_keeps_nobody_up_who_does_not_wait(self) -> None:
        self.plugin("sh", "-c", "exec tail -f /dev/null")
        self.answer(*[(401, http_server.status("Unauthorized"))] * 20)
        took: list[float] = []

        def ask() -> None:
            began = time.monotonic()
            with deadline.end_at(began + 2):
                self.assertRaises(errors.DriverError, self.kube.get, names.LEASE, "n", "one")
            took.append(time.monotonic() - began)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(8, len(took))
        # Whoever begins at the end of its time gives the plugin a second.
        self.assertLess(max(took), 4)

    def test_a_plugin_has_all_its_time_when_a_token_has_run_out(self) -> None:
        limits, status = self.directory / "limits", {"token": "of the plugin"}
        answer = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {**status, "expirationTimestamp": "2020-01-01T00:00:00Z"},
        }
        # Its parent is the program that ends it in time.
        asked = f'tr "\\0" " " < /proc/$PPID/cmdline | cut -d" " -f3 >> "{limits}"'
        self.plugin("sh", "-c", f'{asked}; printf %s "$1"', "sh", json.dumps(answer))
        with deadline.end_at(time.monotonic() + 9):
            self.assertEqual("of the plugin", self.token())
        first, *later = (float(text) for text in limits.read_text().split())
        self.assertLess(first, 9.1)
        self.assertEqual({30.0}, set(later))

    def test_a_refused_token_is_read_again_once(self) -> None:
        self.answer((401, http_server.status("Unauthorized")), (404, http_server.GONE))
        self.assertIsNone(self.kube.get(names.LEASE, "n", "one"))
        self.answer((401, http_server.status("Unauthorized")))
        self.server.seen.clear()
        error = self.assertRaises(errors.ManagementRefused, self.kube.get, names.LEASE, "n", "one")
        self.assertEqual(2, len(self.sent()))
        self.assertEqual(
            "The management cluster does not accept the credentials of this Magnum service. "
            "Ask the operator to renew the kubeconfig.",
            str(error),
        )
        self.assertIn(f"kubeconfig {self.config}: GET /apis/", error.detail)
        self.assertIn("HTTP 401", error.detail)

    def test_the_token_of_a_pod_that_the_kubelet_has_replaced(self) -> None:
        """The client library reads it once a minute; what it replaces is accepted no more."""
        identity = test_kube_tls.write_identity(self.directory / "pod.pem")
        accepted = "first"

        def answer(seen: http_server.Seen) -> http_server.Answer:
            if seen.token.partition(" ")[2] != accepted:
                return 401, http_server.status("Unauthorized")
            return http_server.one_after_another((404, http_server.GONE))(seen)

        secure = http_server.Server(answer, identity)
        self.addCleanup(secure.close)
        token = self.directory / "pod-token"
        for name, path in (("TOKEN", token), ("CERT", identity)):
            constant = f"kubernetes.config.incluster_config.SERVICE_{name}_FILENAME"
            self.useFixture(fixtures.MonkeyPatch(constant, str(path)))
        host, port = secure.url.removeprefix("https://").split(":")
        self.environ(
            KUBERNETES_SERVICE_HOST=host,
            KUBERNETES_SERVICE_PORT=port,
            KUBECONFIG=None,
            HOME=str(self.directory / "nobody"),
        )
        kube = KubeClient(None, connect_timeout=5, read_timeout=5, pause=0.001)
        for accepted in ("first", "second"):
            token.write_text(accepted)
            self.assertIsNone(kube.get(names.LEASE, "n", "one"))
            self.assertEqual(accepted, secure.seen[-1].token.partition(" ")[2])
        accepted = "third"
        error = self.assertRaises(errors.ManagementRefused, kube.get, names.LEASE, "n", "one")
        self.assertIn("service account of the pod (no kubeconfig found): GET /apis/", error.detail)
        token.write_text("")
        error = self.assertRaises(errors.ManagementRefused, kube.get, names.LEASE, "n", "one")
        self.assertIn("no usable kubeconfig", str(error))
        self.assertIn("Token file exists but empty", error.detail)

    def test_the_order_of_places(self) -> None:
        home = self.directory / "home"
        (home / ".kube").mkdir(parents=True)
        self.environ(HOME=str(home), KUBECONFIG=None)
        self.assertIsNone(kubeconfig.find_kubeconfig(None))
        default = http_server.write_kubeconfig(
            home / ".kube" / "config", self.server.url, {"token": "home"}
        )
        self.assertEqual(str(default), kubeconfig.find_kubeconfig(None))
        self.assertEqual("home", self.token(KubeClient(None)))
        named = http_server.write_kubeconfig(
            self.directory / "named", self.server.url, {"token": "named"}
        )
        self.environ(KUBECONFIG=str(named))
        self.assertEqual("named", self.token(KubeClient(None)))
        self.assertEqual(str(named), KubeClient(None).kubeconfig_path)
        self.assertEqual("first", self.token(KubeClient(str(self.config))))
        self.assertEqual("~/x".replace("~", str(home)), kubeconfig.find_kubeconfig("~/x"))

    def test_a_process_without_a_home_has_no_default(self) -> None:
        """As in a container, whose user may be none of its passwd, or not that of HOME."""
        self.environ(HOME=None, KUBECONFIG=None)
        self.useFixture(fixtures.MonkeyPatch("pwd.getpwuid", {}.__getitem__))
        self.assertIsNone(kubeconfig.find_kubeconfig(None))
        error = self.assertRaises(
            errors.ManagementRefused, KubeClient("~/x").get, names.LEASE, "n", "one"
        )
        self.assertIn("kubeconfig ~/x: ~/x: No such file or directory", error.detail)
        closed = "/" + "x" * 300  # the kernel's answer is an error, as for a closed directory
        self.environ(HOME=closed)
        self.assertIsNone(kubeconfig.find_kubeconfig(None))

    def test_a_part_of_another_form_is_named_without_its_secrets(self) -> None:
        whole = yaml.safe_load(self.config.read_text())
        for part, value, words in (
            ("users", [{"name": "a", "token": "s3cret"}], "Expected key user in {}/users[name=a]"),
            ("users", [{"name": "a", "user": "s3cret"}], "user in {}/users[name=a] is not a map"),
            ("users", {"s3cret": {}}, "users is not a list of mappings"),
            ("users", ["s3cret", "x"], "no mapping with lists of clusters"),
            ("clusters", [{"name": "a", "cluster": {}}], "key server in {}/clusters[name=a]"),
            ("clusters", [{"name": "a", "cluster": "x"}], "cluster in {}/clusters[name=a] is not"),
        ):
            [context] = whole["contexts"]
            context["context"].update(cluster="a", user="a")
            clusters = [{"name": "a", "cluster": {"server": self.server.url}}]
            users = [{"name": "a", "user": {"token": "s3cret"}}]
            changed = {**whole, "clusters": clusters, "users": users, part: value}
            self.config.write_text(yaml.safe_dump(changed))
            error = self.assertRaises(errors.ManagementRefused, kubeconfig.load, str(self.config))
            self.assertIn(words.format(self.config), error.detail)
            self.assertNotIn("s3cret", error.detail)

    def test_a_server_that_is_no_url_is_refused(self) -> None:
        """The library asks localhost instead, or sends the token without TLS."""
        for server, shown in (
            ("10.0.0.1:6443", "10.0.0.1:6443"),
            ("https://fd00::1:6443", "https://fd00::1:6443"),
            ("https://u:s3cret@a b", "a b"),
            ("https://", "https://"),
            ("https://a:99999", "https://a:99999"),
        ):
            http_server.write_kubeconfig(self.config, server)
            error = self.assertRaises(errors.ManagementRefused, kubeconfig.load, str(self.config))
            self.assertIn(f" is {shown!r}, and not a URL such as ", error.detail)
            self.assertNotIn("s3cret", error.detail)

    def test_the_check_of_an_installation_runs_no_plugin_but_finds_it(self) -> None:
        self.plugin(str(self.directory / "plugin"))
        error = self.assertRaises(
            errors.ManagementRefused, kubeconfig.check_context, str(self.config)
        )
        self.assertIn("plugin', and not an executable in PATH: ", error.detail)
        (self.directory / "plugin").write_text(f"#!/bin/sh\ntouch {self.directory}/ran\n")
        (self.directory / "plugin").chmod(0o755)
        for command in (str(self.directory / "plugin"), "./plugin"):
            self.plugin(command)
            kubeconfig.check_context(str(self.config))
        self.assertFalse((self.directory / "ran").exists())

    def test_the_check_of_an_installation_reads_the_credentials(self) -> None:
        for user, words in (
            ({"a": "b"}, "has none of token, tokenFile"),
            ({"client-certificate-data": "eHh4", "client-key-data": "eXl5"}, "client-certificate "),
        ):
            http_server.write_kubeconfig(self.config, "https://192.0.2.1", user)
            error = self.assertRaises(
                errors.ManagementRefused, kubeconfig.check_context, str(self.config)
            )
            self.assertIn(words, error.detail)

    def test_what_cannot_be_used_says_where_and_no_secrets(self) -> None:
        self.environ(KUBECONFIG=None, HOME=str(self.directory / "nobody"))
        broken = {
            "missing": None,
            "not-yaml": "token: [s3cret\n",
            "a-list": "- s3cret\n",
            "empty": "",
            "no-context": "apiVersion: v1\nkind: Config\ns3cret: 1\n",
        }
        for name, text in broken.items():
            path = self.directory / name
            if text is not None:
                path.write_text(text)
            error = self.assertRaises(
                errors.ManagementRefused, KubeClient(str(path)).get, names.LEASE, "n", "one"
            )
            self.assertEqual(
                "This Magnum service has no usable kubeconfig for the management cluster. Ask the "
                "operator to set [capi_helm] kubeconfig_file to a kubeconfig that Magnum may read.",
                str(error),
            )
            self.assertIn(f"kubeconfig {path}: ", error.detail)
            self.assertNotIn("s3cret", str(error) + error.detail)
        error = self.assertRaises(
            errors.ManagementRefused, KubeClient(None).get, names.LEASE, "n", "one"
        )
        self.assertIn("service account", error.detail)
