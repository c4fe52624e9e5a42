# SPDX-License-Identifier: Apache-2.0
"""``certificates``: what expires when, and control planes that are replaced for new ones."""

from __future__ import annotations

import base64
import datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    CRITICAL,
    OK,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE


def certificate(end: datetime.datetime) -> str:
    """An authority's certificate in PEM, as a Secret has it."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    built = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(end - datetime.timedelta(days=400))
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
    )
    pem = built.public_bytes(serialization.Encoding.PEM)
    return base64.b64encode(pem).decode()


class CertificatesCase(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.made()
        self.now = self.wall_clock()
        self.ending(machine=300, authority=3000)

    def ending(self, machine: float | None, authority: float | None) -> None:
        """Certificates end after so many days; None where nobody says so."""
        for obj in self.kube.list(names.MACHINE, NAMESPACE):
            if names.LABEL_CONTROL_PLANE in obj["metadata"]["labels"]:
                obj["status"].pop("certificatesExpiryDate", None)
                if machine is not None:
                    end = self.now + datetime.timedelta(days=machine, hours=1)
                    obj["status"]["certificatesExpiryDate"] = f"{end:%Y-%m-%dT%H:%M:%SZ}"
                self.kube.put(names.MACHINE, obj)
        data = {"tls.crt": "bm9uZQ=="}
        if authority is not None:
            end = self.now + datetime.timedelta(days=authority, hours=1)
            data = {"tls.crt": certificate(end)}
        metadata = {"name": f"{RELEASE}-ca", "namespace": NAMESPACE, "labels": {}}
        self.kube.put(names.SECRET, {"metadata": metadata, "data": data})

    def rows(self, *argv: str, status: int = OK) -> list[dict[str, Any]]:
        printed = self.command("certificates", "-f", "json", *argv)
        self.assertEqual(status, printed.status, printed.out + printed.error)
        rows = printed.rows()
        # Magnum makes the other authorities, for five years.
        return [
            row
            for row in rows
            if "etcd" not in row["Certificate"] and "front" not in (row["Certificate"])
        ]

    def after(self, *path: str) -> Any:
        [plane] = self.kube.list(names.CONTROL_PLANE, NAMESPACE)
        value = plane["spec"]
        for key in path:
            value = value.get(key, {})
        return value


class TestList(CertificatesCase):
    def test_all_of_them(self) -> None:
        for argv in ((), ("demo",)):
            machine, authority = self.rows(*argv)
            self.assertEqual((300, ""), (machine["Days"], machine["Next"]))
            self.assertTrue(machine["Certificate"].startswith("machine "), machine)
            self.assertEqual(
                ("authority of the cluster", 3000), (authority["Certificate"], authority["Days"])
            )

    def test_what_is_near(self) -> None:
        for machine, authority, status in (
            (31, 31, OK),
            (20, 300, WARNING),
            (3, 300, CRITICAL),
            (300, 20, WARNING),
            (300, 3, CRITICAL),
            (-1, 300, CRITICAL),
        ):
            self.ending(machine, authority)
            first, second = self.rows(status=status)
            self.assertEqual(machine < 30, "--renew" in first["Next"])
            self.assertEqual(authority < 30, bool(second["Next"]))

    def test_what_is_not_known(self) -> None:
        self.ending(None, None)
        rows = self.rows(status=WARNING)
        self.assertEqual(["unknown", "unknown"], [row["Expires"] for row in rows])

    def test_a_management_cluster_that_does_not_answer(self) -> None:
        self.kube.unreachable = True
        self.assertEqual(UNKNOWN, self.command("certificates").status)


class TestRenew(CertificatesCase):
    def test_the_control_plane_is_replaced_and_nothing_else(self) -> None:
        before = [obj for obj in self.kube.everything() if obj["kind"] != "KubeadmControlPlane"]
        self.rows("--renew", "demo")
        version = self.kube.served_version(names.CONTROL_PLANE)
        path = ("rolloutAfter",) if version == "v1beta1" else ("rollout", "after")
        replaced = datetime.datetime.fromisoformat(self.after(*path))
        self.assertLessEqual(self.now.replace(microsecond=0), replaced)
        self.assertLessEqual(replaced, self.wall_clock())
        after = [obj for obj in self.kube.everything() if obj["kind"] != "KubeadmControlPlane"]
        self.assertEqual(before, after)

    def test_what_is_refused(self) -> None:
        before = sorted(map(str, self.kube.everything()))
        for argv, words in (
            (("--renew",), "Name the clusters"),
            (("--renew", "demo", "other"), "There is no such cluster"),
        ):
            printed = self.command("certificates", *argv)
            self.assertEqual(UNKNOWN, printed.status)
            self.assertIn(words, printed.error)
        self.assertEqual(before, sorted(map(str, self.kube.everything())))
