# SPDX-License-Identifier: Apache-2.0
"""Certificates and tokens of one management cluster, created once."""

import dataclasses
import datetime
import ipaddress
import os
from pathlib import Path
import secrets

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sandbox.state import State

LIFETIME = datetime.timedelta(days=3650)


@dataclasses.dataclass(frozen=True)
class Pair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        """The certificate as PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key as PEM, not encrypted."""
        return _key_pem(self.key)


class Pki:
    """Where the key material of a sandbox lies; :meth:`ensure` makes what is missing.

    One certificate serves etcd, kube-apiserver and all webhooks, and is also the client
    certificate for etcd: they all are this user's, on loopback.
    """

    def __init__(self, state: State) -> None:
        self.folder = state.path("management", "pki", "x").parent
        self.authority = self.folder / "ca.crt"
        # The names that controller-runtime looks for in --webhook-cert-dir.
        self.certificate = self.folder / "tls.crt"
        self.key = self.folder / "tls.key"
        self.service_account_key = self.folder / "sa.key"
        self.client_authority = self.folder / "client-ca.crt"
        self._client_authority_key = self.folder / "client-ca.key"

    def ensure(self) -> None:
        """Make keys and certificates unless they are all there."""
        self.folder.chmod(0o700)
        if not self.client_authority.exists():
            clients = make_pair("sandbox-client-ca")
            write_private(self._client_authority_key, clients.key_pem)
            write_private(self.client_authority, clients.pem)
        if self.service_account_key.exists():  # written last
            return
        authority = make_pair("sandbox-ca")
        pair = make_pair("sandbox", authority)
        write_private(self.authority, authority.pem)
        write_private(self.certificate, pair.pem)
        write_private(self.key, pair.key_pem)
        signer = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        write_private(self.service_account_key, _key_pem(signer))

    def client_certificate(self, user: str, name: str) -> tuple[Path, Path]:
        """A new certificate, and its key, with which a program is a user of the API server.

        :param user: the whole user name, of a service account too; at most 64 characters.
        :param name: of the two files.
        """
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        pair = make_pair(user, self._client_issuer())
        write_private(certificate, pair.pem)
        write_private(key, pair.key_pem)
        return certificate, key

    def _client_issuer(self) -> Pair:
        key = serialization.load_pem_private_key(self._client_authority_key.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)  # as ensure has made it
        return Pair(x509.load_pem_x509_certificate(self.client_authority.read_bytes()), key)

    def token(self, user: str) -> str:
        """The bearer token of a user, chosen once."""
        path = self.folder / f"{user}.token"
        if not path.exists():
            write_private(path, secrets.token_urlsafe(32).encode())
        return path.read_text()


def write_private(path: Path, content: bytes) -> None:
    """Replace a file at once, readable by its owner only."""
    draft = path.with_name(f".{path.name}.draft")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    draft.replace(path)


def make_pair(name: str, issuer: Pair | None = None) -> Pair:
    """A CA when there is no issuer, else a certificate for 127.0.0.1 as server and as client."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if issuer is None:
        builder = builder.add_extension(_signing_usage(), critical=True)
    else:
        loopback = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key())
        builder = (
            builder.add_extension(x509.SubjectAlternativeName(loopback), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(identifier, critical=False)
        )
    return Pair(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)


def _signing_usage() -> x509.KeyUsage:
    rest = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **rest)


def _key_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
