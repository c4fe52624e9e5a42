# SPDX-License-Identifier: Apache-2.0
"""A tenant's way into the cluster: a certificate that Magnum signs, and what is seen with it."""

from __future__ import annotations

import json
from pathlib import Path
import tempfile
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
import kubernetes

from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import MagnumApi

Json = dict[str, Any]

_PATIENCE = (5.0, 20.0)


class Workload:
    """The Kubernetes API of a cluster, reached as ``openstack coe cluster config`` sets it up.

    :param address: Magnum's ``api_address``.
    :param certificate: False: come without a client certificate.
    """

    def __init__(
        self, magnum: MagnumApi, uuid: str, address: str, *, certificate: bool = True
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        configuration = kubernetes.client.Configuration(host=address)
        configuration.ssl_ca_cert = self._write("ca.pem", magnum.authority(uuid))
        if certificate:
            key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            signed = magnum.sign(uuid, _signing_request(key))
            configuration.cert_file = self._write("cert.pem", signed)
            configuration.key_file = self._write("key.pem", _private(key))
        configuration.retries = False
        self._client: Any = kubernetes.client.ApiClient(configuration)

    def nodes(self) -> list[Json]:
        """All nodes as JSON."""
        api = kubernetes.client.CoreV1Api(self._client)
        nodes = api.list_node(_request_timeout=_PATIENCE)
        items: list[Json] = self._client.sanitize_for_serialization(nodes)["items"]
        return items

    def take_away(self, path: str) -> Json:
        """Delete the object at an API path, as the cluster's administrator; it as it was."""
        found = self._ask("GET", path)
        self._ask("DELETE", path)
        return found

    def put_back(self, path: str, found: Json) -> None:
        """Make it anew."""
        kept = {key: found["metadata"][key] for key in ("name", "namespace")}
        self._ask("POST", path.rpartition("/")[0], {**found, "metadata": kept})

    def _ask(self, verb: str, path: str, body: Json | None = None) -> Json:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        request = self._client.param_serialize(verb, path, header_params=headers, body=body)
        answer = self._client.call_api(*request, _request_timeout=_PATIENCE)
        text = answer.read()
        if not 200 <= answer.status < 300:
            raise kubernetes.client.ApiException(status=answer.status, reason=str(text)[:300])
        parsed: Json = json.loads(text or "{}")
        return parsed

    def _write(self, name: str, text: str) -> str:
        path = Path(self._folder.name) / name
        path.write_text(text)
        path.chmod(0o600)
        return str(path)


def _signing_request(key: rsa.RSAPrivateKey) -> str:
    """The subject is what kubectl's user will be: an administrator."""
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, "admin"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters"),
        ]
    )
    request = x509.CertificateSigningRequestBuilder().subject_name(subject)
    return request.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def _private(key: rsa.RSAPrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
