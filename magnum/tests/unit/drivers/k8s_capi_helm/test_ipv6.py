# SPDX-License-Identifier: Apache-2.0
"""Addresses of IPv6 wherever a cloud can have them, with brackets where they belong.

OpenStack's own endpoints are in ``test_internal_endpoints``, NO_PROXY in ``test_management_proxy``.
"""

from __future__ import annotations

import base64
import os
import pathlib
import socket
from typing import Any
import unittest

import fixtures
import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.tenant.tenant_api import TenantApi, TenantApiUnavailable
from magnum.drivers.k8s_capi_helm.kube.tenant.tenant_kubeconfig import read_tenant_kubeconfig
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.status.objects import infrastructure
from magnum.tests.unit.drivers.k8s_capi_helm import builders, test_kube_tls, test_tenant_kubeconfig
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.suites import http_server

LEASES = "/api/v1/namespaces/a/configmaps/one"
HAS_IPV6 = socket.has_ipv6 and os.path.exists("/proc/net/if_inet6")


@unittest.skipUnless(HAS_IPV6, "this host has no IPv6")
class TestServers(testtools.TestCase):
    """A real server with TLS on ::1, whose certificate names that address."""

    def serve(self, certified: str = "::1") -> http_server.Server:
        self.identity = test_kube_tls.write_identity(self.directory / "server.pem", certified)
        server = http_server.Server(
            http_server.one_after_another((404, http_server.GONE)), self.identity, host="::1"
        )
        self.addCleanup(server.close)
        return server

    def setUp(self) -> None:
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def kube(self, server: http_server.Server) -> KubeClient:
        """A client whose kubeconfig has the URL with brackets."""
        user = test_kube_tls.parts(self.identity)
        path = http_server.write_kubeconfig(self.directory / "config", server.url, user)
        text = path.read_text().replace(
            f"server: {server.url}",
            f"server: {server.url}\n    certificate-authority: {self.identity}",
        )
        path.write_text(text)
        return KubeClient(str(path), connect_timeout=5, read_timeout=5, pause=0.001)

    def test_the_management_cluster(self) -> None:
        server = self.serve()
        self.assertRegex(server.url, r"^https://\[::1\]:\d+$")
        self.assertIsNone(self.kube(server).get(names.LEASE, "n", "one"))

    def test_a_certificate_for_another_address_is_not_accepted(self) -> None:
        kube = self.kube(self.serve("::2"))
        error = self.assertRaises(errors.ManagementUnreachable, kube.get, names.LEASE, "n", "one")
        # OpenSSL compares the address, or urllib3 before 2.0: the words differ.
        self.assertRegex(error.detail, "SSLError.*(IP address mismatch|doesn't match)")

    def tenant(self, server: http_server.Server) -> TenantApi:
        """The API of a cluster, as Cluster API's Secret names it."""
        document = test_tenant_kubeconfig.document(**test_kube_tls.parts(self.identity))
        authority = base64.b64encode(self.identity.read_bytes()).decode()
        document["clusters"][0]["cluster"] |= {
            "server": server.url,
            "certificate-authority-data": authority,
        }
        access = read_tenant_kubeconfig(test_tenant_kubeconfig.kubeconfig_secret(document))
        assert access is not None
        return TenantApi(access)

    def test_the_api_of_a_cluster(self) -> None:
        with self.tenant(self.serve()) as api:
            self.assertFalse(api.has(LEASES))

    def test_the_api_of_a_cluster_with_a_certificate_for_another_address(self) -> None:
        api = self.tenant(self.serve("::2"))
        error = self.assertRaises(TenantApiUnavailable, api.__enter__)
        self.assertIn("'::1'", str(error))


class TestStatus(testtools.TestCase):
    def test_the_address_of_the_api_has_its_brackets_once(self) -> None:
        for host in ("fd00::10", "[fd00::10]"):
            cluster: Any = builders.observed().cluster
            cluster["spec"]["controlPlaneEndpoint"]["host"] = host
            self.assertEqual("https://[fd00::10]:6443", infrastructure.api_address(cluster))


class TestRequests(DriverCase):
    """From Magnum's fields to the values of the release."""

    def test_fields_that_take_it(self) -> None:
        self.template = self._template(
            uuid="11111111-2222-4333-8444-666666666666",
            dns_nameserver="2001:db8::53,192.0.2.53",
            http_proxy="http://[2001:db8::1]:3128",
            https_proxy="http://[2001:db8::1]:3129",
            no_proxy="2001:db8::/32,[fd00::1]:5000,fd00::2",
        )
        self.create()
        values = self.helm.live(NAMESPACE, RELEASE).values
        network = values["clusterNetworking"]["internalNetwork"]
        self.assertEqual(["2001:db8::53", "192.0.2.53"], network["dnsNameservers"])
        self.assertEqual(
            {
                "http": "http://[2001:db8::1]:3128",
                "https": "http://[2001:db8::1]:3129",
                "noProxy": ["2001:db8::/32", "[fd00::1]:5000", "fd00::2"],
            },
            values["proxy"],
        )

    def test_what_has_no_meaning_is_refused_with_the_value(self) -> None:
        for labels, words in (
            ({"fixed_subnet_cidr": "fd00::/64"}, "'fd00::/64'"),
            ({"api_master_lb_allowed_cidrs": "2001:db8::/32"}, "IPv6 ones would have no effect"),
            ({"calico_ipv4pool": "fd00::/56"}, "the nodes have IPv4 only"),
            ({"api_server_floating_ip": "2001:db8::9"}, "'2001:db8::9'"),
        ):
            cluster = self.create(labels=labels)
            self.assertEqual("CREATE_FAILED", cluster.status, labels)
            self.assertIn(words, cluster.status_reason)
            self.assertEqual(([], {}), (list(self.kube.everything()), self.cloud.credentials))
            self.delete()
            self.status_task()
