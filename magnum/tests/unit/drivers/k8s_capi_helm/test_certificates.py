# SPDX-License-Identifier: Apache-2.0
"""Certificates as Magnum's API hands them out, from both of its stores, and their rotation."""

from __future__ import annotations

import base64
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
import fixtures
from keystoneauth1 import exceptions as ka_exceptions

from magnum import objects
from magnum.common import exception
from magnum.common.cert_manager import barbican_cert_manager, x509keypair_cert_manager
from magnum.conductor.handlers import ca_conductor
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import barbican

#: As Magnum's API calls the authorities -> name of the Secret that Cluster API reads.
SECRETS = {None: "ca", "kubernetes": "ca", "etcd": "etcd", "front-proxy": "proxy"}


#: How a store fails that is away, and one in which a container was deleted by half.
FAILURES = (ka_exceptions.ConnectFailure("no route"), KeyError("private_key"))


def request_of(name: str, organisation: str) -> tuple[str, rsa.RSAPrivateKey]:
    """What ``openstack coe cluster config`` sends, and the key that it keeps."""
    key = rsa.generate_private_key(65537, 2048)
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, name),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation),
        ]
    )
    built = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return built.public_bytes(serialization.Encoding.PEM).decode(), key


class TestWithDatabase(DriverCase):
    """Certificates in Magnum's own database."""

    def setUp(self) -> None:
        super().setUp()
        self.store = self.fresh_store()
        self.useFixture(fixtures.MonkeyPatch("magnum.common.cert_manager.get_backend", self.store))

    def fresh_store(self) -> Any:
        return lambda: x509keypair_cert_manager

    def stored(self) -> int:
        """How many certificates and secrets are in the store."""
        return len(objects.X509KeyPair.list(self.context))

    def secret(self, purpose: str) -> str:
        found = self.kube.get(names.SECRET, NAMESPACE, f"{RELEASE}-{purpose}")
        assert found is not None
        return base64.b64decode(found["data"]["tls.crt"]).decode()

    def handed_out(self, kind: str | None = None) -> str:
        answer = ca_conductor.Handler().get_ca_certificate(self.context, self.cluster(), kind)
        return str(answer.pem)

    def signed(self, kind: str | None = None) -> tuple[x509.Certificate, rsa.RSAPrivateKey]:
        text, key = request_of("admin", "system:masters")
        asked = objects.Certificate(self.context, cluster_uuid=self.cluster().uuid, csr=text)
        if kind:
            asked.ca_cert_type = kind
        answer = ca_conductor.Handler().sign_certificate(self.context, self.cluster(), asked)
        return x509.load_pem_x509_certificate(answer.pem.encode()), key

    def rotate(self) -> None:
        ca_conductor.Handler().rotate_ca_certificate(self.context, self.cluster())

    def test_authorities_are_those_of_the_cluster(self) -> None:
        self.made()
        for kind, purpose in SECRETS.items():
            self.assertEqual(self.secret(purpose), self.handed_out(kind), kind)
        self.assertEqual(3, len({self.handed_out(kind) for kind in SECRETS}))

    def test_a_signed_client_certificate_is_good_at_the_cluster(self) -> None:
        self.made()
        for kind, purpose in SECRETS.items():
            made, key = self.signed(kind)
            authority = x509.load_pem_x509_certificate(self.secret(purpose).encode())
            self.assertIsNone(made.verify_directly_issued_by(authority))
            self.assertEqual(key.public_key(), made.public_key())

    def test_it_says_who_the_client_is(self) -> None:
        self.made()
        made, _ = self.signed()
        said = {part.oid: part.value for part in made.subject}
        self.assertEqual("admin", said[NameOID.COMMON_NAME])
        self.assertEqual("system:masters", said[NameOID.ORGANIZATION_NAME])

    def test_service_accounts_have_a_key_pair_of_their_own(self) -> None:
        self.made()
        found = self.kube.get(names.SECRET, NAMESPACE, f"{RELEASE}-sa")
        assert found is not None
        text = base64.b64decode(found["data"]["tls.key"])
        private = serialization.load_pem_private_key(text, password=None)
        public = serialization.load_pem_public_key(self.secret("sa").encode())
        self.assertEqual(private.public_key(), public)

    def test_a_refused_rotation_leaves_the_old_authorities_and_no_new_ones(self) -> None:
        self.made()
        before = {kind: self.handed_out(kind) for kind in SECRETS}
        row, stored = self.cluster(), self.stored()
        error = self.assertRaises(exception.NotSupported, self.rotate)
        self.assertIn("keeps its authorities", str(error))
        self.assertEqual(before, {kind: self.handed_out(kind) for kind in SECRETS})
        self.assertEqual(row.magnum_cert_ref, self.cluster().magnum_cert_ref)
        self.assertEqual(stored, self.stored())
        made, _ = self.signed()
        authority = x509.load_pem_x509_certificate(self.secret("ca").encode())
        self.assertIsNone(made.verify_directly_issued_by(authority))

    def test_a_refused_rotation_leaves_nothing_failed(self) -> None:
        self.made()
        self.assertRaises(exception.NotSupported, self.rotate)
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.health_task()
        self.health_task()
        cluster = self.cluster()
        self.assertEqual(("UPDATE_COMPLETE", None), (cluster.status, cluster.status_reason))

    def test_new_ones_that_cannot_be_deleted_do_not_keep_the_old_ones_away(self) -> None:
        self.made()
        before = self.handed_out()

        def refuse(ref: str, **about: Any) -> None:
            raise exception.X509KeyPairNotFound(x509keypair=ref)

        for manager in (
            x509keypair_cert_manager.CertManager,
            barbican_cert_manager.CertManager,
        ):
            self.useFixture(fixtures.MockPatchObject(manager, "delete_cert", refuse))
        self.assertRaises(exception.NotSupported, self.rotate)
        self.assertEqual(before, self.handed_out())

    def test_nothing_stays_in_the_store_when_the_cluster_is_gone(self) -> None:
        before = self.stored()
        self.made()
        self.assertLess(before, self.stored())
        self.delete()
        self.status_task()
        self.capi_deletes()
        self.status_task()
        self.assertEqual([], objects.Cluster.list(self.context))
        self.assertEqual(before, self.stored())


class TestWithBarbican(TestWithDatabase):
    """The same with certificates in Barbican."""

    def fresh_store(self) -> Any:
        self.barbican = barbican.FakeBarbican()
        place = "magnum.common.cert_manager.barbican_cert_manager.get_admin_clients"
        self.useFixture(fixtures.MonkeyPatch(place, lambda: self.barbican))
        return lambda: barbican_cert_manager

    def stored(self) -> int:
        return len(self.barbican.things)

    def test_one_that_does_not_answer_refuses_a_new_cluster_in_our_words(self) -> None:
        for failing in FAILURES:
            self.barbican.failing = failing
            cluster = self.create()
            self.assertEqual("CREATE_FAILED", cluster.status)
            self.assertIn("check the store (Barbican)", cluster.status_reason)
            self.assertEqual("CREATE_FAILED", self.group().status)
            self.barbican.failing = None
            self.delete()
            self.status_task(2)
            self.assertEqual([], objects.Cluster.list(self.context))

    def test_one_that_does_not_answer_keeps_no_rotation_from_being_taken_back(self) -> None:
        self.made()
        before = self.handed_out()
        for failing in FAILURES:
            self.barbican.failing = failing
            error = self.assertRaises(exception.NotSupported, self.rotate)
            self.assertIn("keeps its authorities", str(error))
            self.barbican.failing = None
            self.assertEqual(before, self.handed_out())
            self.health_task()
            self.health_task()
            self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_one_that_does_not_answer_keeps_no_row(self) -> None:
        for failing in FAILURES:
            self.made()
            self.delete()
            self.status_task()
            self.capi_deletes()
            self.barbican.failing = failing
            self.status_task()
            self.assertEqual([], objects.Cluster.list(self.context))
            self.barbican.failing = None
