# SPDX-License-Identifier: Apache-2.0
"""Whom the client of the management cluster trusts, and how many connections it makes."""

from __future__ import annotations

import base64
import contextlib
import datetime
import http.server
import ipaddress
import os
import pathlib
import socket
import ssl
import threading
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
import fixtures
import yaml

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.suites import http_server

#: Variables by which other libraries, and other parts of Magnum, are told whom to trust.
BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


def write_identity(
    path: pathlib.Path, address: str = "127.0.0.1", hours: tuple[int, int] = (-1, 1)
) -> pathlib.Path:
    """A key and the certificate of a server on loopback that signed itself, in one file.

    :param hours: from now, in which it is good.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, path.stem)])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(hours=hours[0]))
        .not_valid_after(now + datetime.timedelta(hours=hours[1]))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path


def parts(identity: pathlib.Path) -> dict[str, str]:
    """Certificate and key of an identity, as a kubeconfig has a user's."""
    key, begin, rest = identity.read_text().partition("-----BEGIN CERTIFICATE")
    texts = {"client-certificate-data": f"{begin}{rest}", "client-key-data": key}
    return {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}


class TunnelHandler(http.server.BaseHTTPRequestHandler):
    """What an HTTPS proxy does with CONNECT (https://www.rfc-editor.org/rfc/rfc9110#CONNECT)."""

    def do_CONNECT(self) -> None:
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=5) as upstream:
            self.send_response(200)
            self.end_headers()
            threading.Thread(
                target=_pump, args=(upstream.recv, self.connection.sendall), daemon=True
            ).start()
            _pump(self.connection.recv, upstream.sendall)
        self.close_connection = True

    def log_message(self, format: str, *arguments: object) -> None:
        """Stay silent."""


def _pump(receive: Any, send: Any) -> None:
    with contextlib.suppress(OSError):  # an end has closed its connection
        while content := receive(1 << 16):
            send(content)


def serve_tunnels(case: http_server.WireCase, identity: pathlib.Path) -> str:
    """The URL of an HTTPS proxy on loopback that lives as long as a test."""
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), TunnelHandler)
    proxy.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity)
    proxy.socket = context.wrap_socket(proxy.socket, server_side=True)
    threading.Thread(target=proxy.serve_forever, args=(0.02,), daemon=True).start()
    case.addCleanup(proxy.server_close)
    case.addCleanup(proxy.shutdown)
    return f"https://127.0.0.1:{proxy.server_address[1]}"


class TestTrust(http_server.WireCase):
    """The kubeconfig's authority decides, and nothing else."""

    def setUp(self) -> None:
        super().setUp()
        self.own = write_identity(self.directory / "own.pem")
        self.other = write_identity(self.directory / "other.pem")
        self.secure = http_server.Server(
            http_server.one_after_another((404, http_server.GONE)), tls=self.own
        )
        self.addCleanup(self.secure.close)

    def client(
        self, trusted: pathlib.Path, user: dict[str, Any] | None = None, **cluster: str
    ) -> KubeClient:
        http_server.write_kubeconfig(self.config, self.secure.url, user)
        config = yaml.safe_load(self.config.read_text())
        text = base64.b64encode(trusted.read_bytes()).decode()
        config["clusters"][0]["cluster"].update(cluster)
        config["clusters"][0]["cluster"]["certificate-authority-data"] = text
        self.config.write_text(yaml.safe_dump(config))
        return KubeClient(str(self.config), connect_timeout=5, read_timeout=5, pause=0.001)

    def environ(self, value: str) -> None:
        for name in BUNDLES:
            self.useFixture(fixtures.EnvironmentVariable(name, value))

    def test_the_environment_takes_no_trust_away(self) -> None:
        for value in (str(self.other), "/nowhere", os.devnull):
            self.environ(value)
            self.assertIsNone(self.client(self.own).get(names.LEASE, "n", "one"))

    def test_the_environment_adds_no_trust(self) -> None:
        self.environ(str(self.own))
        error = self.assertRaises(
            errors.ManagementUnreachable, self.client(self.other).get, names.LEASE, "n", "one"
        )
        self.assertIn("certificate", error.detail.lower())
        self.assertEqual([], self.secure.seen)

    def test_one_connection_for_many_requests(self) -> None:
        kube = self.client(self.own)
        for _ in range(5):
            kube.get(names.LEASE, "n", "one")
        self.assertEqual((6, 1), (len(self.secure.seen), self.secure.connections))

    def test_an_https_proxy_is_trusted_by_the_same_authority(self) -> None:
        """As Go's net/http does it, and so Helm: of a Transport's TLS settings, for both."""
        proxy = serve_tunnels(self, self.own)
        kube = self.client(self.own, **{"proxy-url": proxy})
        self.assertIsNone(kube.get(names.LEASE, "n", "one"))
        foreign = self.client(self.own, **{"proxy-url": serve_tunnels(self, self.other)})
        self.assertRaises(errors.ManagementUnreachable, foreign.get, names.LEASE, "n", "one")

    def serve_clients(self) -> None:
        """From now on the server asks for a certificate."""
        self.secure = http_server.Server(
            http_server.one_after_another((404, http_server.GONE)), self.own, clients=self.other
        )
        self.addCleanup(self.secure.close)

    def test_no_file_gets_what_the_kubeconfig_has(self) -> None:
        """Where no directory can be written, as with a read-only root."""
        self.serve_clients()
        blocked = self.directory / "file"
        blocked.write_text("")
        self.useFixture(fixtures.MonkeyPatch("tempfile.tempdir", str(blocked / "temporary")))
        self.client(self.own, parts(self.other)).get(names.LEASE, "n", "one")
        self.assertEqual({"other"}, {seen.client for seen in self.secure.seen})

    def test_a_plugin_is_told_of_the_cluster_as_the_kubeconfig_has_it(self) -> None:
        words = "certificate-authority-data"
        answer = '{"apiVersion": "%s", "kind": "ExecCredential", "status": {"token": "%s"}}'
        version = "client.authentication.k8s.io/v1"
        script = f'case "$KUBERNETES_EXEC_INFO" in *{words}*) printf %s "$1";; esac'
        plugin = {
            "apiVersion": version,
            "command": "sh",
            "args": ["-c", script, "sh", answer % (version, "of the plugin")],
            "interactiveMode": "Never",
            "provideClusterInfo": True,
        }
        self.client(self.own, {"exec": plugin}).get(names.LEASE, "n", "one")
        self.assertIn("of the plugin", self.secure.seen[-1].token)

    def test_a_certificate_that_is_replaced_in_its_file(self) -> None:
        self.serve_clients()
        ours = self.directory / "user.pem"
        ours.write_bytes(self.own.read_bytes())
        files = {"client-certificate": str(ours), "client-key": str(ours)}
        kube = self.client(self.own, files)
        self.assertRaises(errors.ManagementUnreachable, kube.get, names.LEASE, "n", "one")
        ours.write_bytes(self.other.read_bytes())
        self.assertIsNone(kube.get(names.LEASE, "n", "one"))
        self.assertEqual({"other"}, {seen.client for seen in self.secure.seen})

    def test_key_material_that_is_none_is_an_unusable_kubeconfig(self) -> None:
        for user in ({**parts(self.other), "client-key-data": "AAAA"}, {**parts(self.other)}):
            user["client-certificate-data"] = user["client-certificate-data"][:40]
            kube = self.client(self.own, user)
            error = self.assertRaises(errors.ManagementRefused, kube.get, names.LEASE, "n", "one")
            self.assertIn("no usable kubeconfig", str(error))
            self.assertIn(f"kubeconfig {self.config}: ", error.detail)

    def test_a_certificate_of_another_time_comes_with_the_time_of_this_host(self) -> None:
        for hours, words in (((1, 2), "is not yet valid"), ((-2, -1), "has expired")):
            self.own = write_identity(self.directory / "own.pem", hours=hours)
            self.secure = http_server.Server(self.secure.answer, self.own)
            self.addCleanup(self.secure.close)
            error = self.assertRaises(
                errors.ManagementUnreachable, self.client(self.own).get, names.LEASE, "n", "one"
            )
            now = f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}"
            self.assertRegex(
                error.detail,
                rf"certificate {words}.* \(by the clock of this host, which shows {now} \S+ UTC\)",
            )
