# SPDX-License-Identifier: Apache-2.0
"""What of a kubeconfig is used, and that nothing of it can make the conductor do anything else."""

from __future__ import annotations

import base64
from typing import Any

import testtools
import yaml

from magnum.drivers.k8s_capi_helm.kube.tenant.tenant_kubeconfig import (
    read_tenant_kubeconfig,
    TenantKubeconfig,
)
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import builders


def _packed(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def document(**user: Any) -> dict[str, Any]:
    """As Cluster API writes it."""
    cluster = {
        "server": "https://127.64.0.10:6443",
        "certificate-authority-data": _packed("THE CA"),
    }
    login = {
        "client-certificate-data": _packed("THE CERTIFICATE"),
        "client-key-data": _packed("THE KEY"),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "demo", "cluster": cluster}],
        "users": [{"name": "demo-admin", "user": user or login}],
        "contexts": [{"name": "x", "context": {"cluster": "demo", "user": "demo-admin"}}],
        "current-context": "x",
    }


def kubeconfig_secret(found: Any = None) -> dict[str, Any]:
    """The Secret with it, or with something else."""
    text = found if isinstance(found, str) else yaml.safe_dump(found or document())
    secret = builders.thing(names.SECRET, names.kubeconfig_secret(builders.RELEASE))
    return {**secret, "data": {"value": _packed(text)}}


class TestAccess(testtools.TestCase):
    def test_what_cluster_api_writes(self) -> None:
        found = read_tenant_kubeconfig(kubeconfig_secret())
        self.assertEqual(
            TenantKubeconfig("127.64.0.10", 6443, "THE CA", "THE CERTIFICATE", "THE KEY"), found
        )

    def test_no_key_is_shown(self) -> None:
        self.assertNotIn("THE KEY", repr(read_tenant_kubeconfig(kubeconfig_secret())))

    def test_programs_files_and_tokens_are_no_way_in(self) -> None:
        for user in (
            {"exec": {"command": "/bin/sh", "apiVersion": "client.authentication.k8s.io/v1"}},
            {"client-certificate": "/etc/passwd", "client-key": "/etc/shadow"},
            {"token": "t"},
        ):
            self.assertIsNone(read_tenant_kubeconfig(kubeconfig_secret(document(**user))), user)

    def test_only_https_and_nothing_else_in_the_address(self) -> None:
        for server in (
            "http://127.64.0.10:6443",
            "https://me:pw@127.64.0.10:6443",
            "https://127.64.0.10:6443/proxy/elsewhere",
            "https://127.64.0.10:port",
            "file:///etc/passwd",
            7,
        ):
            found = document()
            found["clusters"][0]["cluster"]["server"] = server
            self.assertIsNone(read_tenant_kubeconfig(kubeconfig_secret(found)), server)

    def test_what_is_broken(self) -> None:
        without = document()
        del without["current-context"]
        stranger = {**document(), "current-context": "y"}
        insecure = document()
        del insecure["clusters"][0]["cluster"]["certificate-authority-data"]
        found: tuple[Any, ...] = ("{", "- a", "x" * 70000, without, insecure)
        for one in found:
            self.assertIsNone(read_tenant_kubeconfig(kubeconfig_secret(one)), one)
        self.assertIsNone(read_tenant_kubeconfig(kubeconfig_secret(stranger)))
        self.assertIsNone(read_tenant_kubeconfig({"data": {"value": "%%"}}))
        self.assertIsNone(read_tenant_kubeconfig({}))
