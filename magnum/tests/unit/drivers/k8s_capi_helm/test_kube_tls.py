# SPDX-License-Identifier: Apache-2.0
"""Whom the client of the management cluster trusts, and how many connections it makes."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
import pathlib

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


def write_identity(path: pathlib.Path) -> pathlib.Path:
    """A key and the certificate of a server on loopback that signed itself, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, path.stem)])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
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

    def client(self, trusted: pathlib.Path) -> KubeClient:
        http_server.write_kubeconfig(self.config, self.secure.url)
        config = yaml.safe_load(self.config.read_text())
        text = base64.b64encode(trusted.read_bytes()).decode()
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
