# SPDX-License-Identifier: Apache-2.0
"""``check`` finds each fault that was made, in one line with its cure."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import json
import types
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from keystoneauth1 import exceptions as ka_exceptions
from oslo_db import exception as db_exception
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import Services
from magnum.drivers.k8s_capi_helm.cloud.access import service_check
from magnum.drivers.k8s_capi_helm.commands.check import identity
from magnum.drivers.k8s_capi_helm.commands.check.check import CHECKS
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    CRITICAL,
    OK,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import FakeCloud, NAMESPACE
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.catalogue import FakeCatalogue
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

DAY = datetime.timedelta(days=1)


class CheckCase(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.renew_leases()

    def renew_leases(self, ago: float = 0) -> None:
        """The controllers renew their Leases."""
        now = self.wall_clock() - datetime.timedelta(seconds=ago)
        for lease in self.periodic().settings.capi_helm.controller_leases:
            namespace, _, name = lease.partition("/")
            spec = {"renewTime": f"{now:%Y-%m-%dT%H:%M:%S.%fZ}", "leaseDurationSeconds": 15}
            metadata = {"namespace": namespace, "name": name}
            self.kube.put(names.LEASE, {"metadata": metadata, "spec": spec})

    def check(self, *checks: str) -> tuple[int, list[str]]:
        """The exit status, and the lines about what is wrong."""
        printed = self.command("check", *checks, "-f", "json")
        self.assertEqual("", printed.error)
        lines = [row["Finding"] for row in printed.rows() if row["Status"] != "OK"]
        self.assertEqual([], [line for line in lines if "\n" in line])
        return printed.status, lines

    def one(self, name: str, expected: int = CRITICAL) -> str:
        """The only fault of one check, which is found by all of them, too."""
        status, [line] = self.check(name)
        self.assertEqual(expected, status)
        self.assertIn(line, self.check()[1])
        return line


class TestAll(CheckCase):
    def test_nothing_is_wrong(self) -> None:
        self.made()
        self.mark_by_janitor()
        self.assertEqual((OK, []), self.check())

    def mark_by_janitor(self) -> None:
        for one in self.kube.list(names.OPENSTACK_CLUSTER, NAMESPACE):
            one["metadata"]["finalizers"] = [names.JANITOR_FINALIZER]
            self.kube.put(names.OPENSTACK_CLUSTER, one)

    def test_each_check_has_a_row(self) -> None:
        self.installation_checks = [("Helm", lambda conf: iter(()))]
        rows = self.command("check", "-f", "json").rows()
        self.assertEqual(set(CHECKS), {row["Check"] for row in rows})

    def test_nothing_is_changed(self) -> None:
        self.made()
        self.kube.calls.clear()
        self.check()
        verbs = {(verb, kind) for verb, kind, _, _ in self.kube.calls}
        allowed = {"get", "list", "served"}
        reviews = {("create", "SelfSubjectAccessReview"), ("create", "SelfSubjectReview")}
        self.assertEqual(reviews, {one for one in verbs if one[0] not in allowed})

    def test_the_worst_comes_first(self) -> None:
        self.kube.ahead = 100
        self.kube.unserved.add(names.MANIFESTS)
        rows = self.command("check", "-f", "json").rows()
        self.assertEqual(["CRITICAL", "WARNING", "OK"], [row["Status"] for row in rows[:3]])

    def test_a_check_that_does_not_exist_is_no_fault(self) -> None:
        printed = self.command("check", "nothing")
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))
        self.assertIn("There is no such check. 'nothing' is none of: installation,", printed.error)

    def test_a_management_cluster_that_is_away_is_one_fault(self) -> None:
        self.kube.unreachable = True
        line = self.one("management-cluster")
        self.assertIn("connection refused", line)
        self.assertIn("Check the network to it", line)


class TestHost(CheckCase):
    def test_what_the_distribution_finds(self) -> None:
        self.installation_checks = [
            ("Helm", lambda conf: iter([(False, "helm is too old.")])),
            ("Driver", lambda conf: iter([(True, "The driver cannot be loaded.")])),
            ("Packages", lambda conf: iter(())),
        ]
        status, lines = self.check("installation")
        self.assertEqual(CRITICAL, status)
        self.assertEqual(["Driver: The driver cannot be loaded.", "Helm: helm is too old."], lines)
        rows = self.command("check", "installation", "-f", "value", "-c", "Finding").out
        self.assertIn("Packages.", rows)

    def test_the_database_is_away(self) -> None:
        def fail(*args: Any) -> None:
            raise db_exception.DBConnectionError(
                "mysql+pymysql://magnum:secret@db/magnum is away\n[SQL: SELECT 1 WHERE secret]"
            )

        engine = enginefacade.reader.get_engine()
        sqlalchemy.event.listen(engine, "before_cursor_execute", fail)
        self.addCleanup(sqlalchemy.event.remove, engine, "before_cursor_execute", fail)
        status, lines = self.check()
        self.assertEqual((CRITICAL, 3), (status, len(lines)))
        line = lines[0]
        for other in lines[1:]:
            self.assertIn("Not checked completely, because Magnum's database cannot be", other)
        self.assertIn("away. Check [database] connection", line)
        self.assertNotIn("SELECT", line)
        self.assertNotIn("secret", line)

    def test_the_operators_chart_is_not_there(self) -> None:
        self.ports = dataclasses.replace(self.ports, charts=_NoCharts())
        line = self.one("charts")
        self.assertIn("No cluster can be created with that chart.", line)

    def test_the_chart_of_a_template_is_not_there(self) -> None:
        labels = {"capi_helm_chart_version": "0.0.1"}
        for name in ("old", "older"):
            self.template = self._template(
                uuid=_uuid(name), name=name, labels=labels, driver=names.DRIVER
            )
        line = self.one("charts")
        self.assertIn("is available in version", line)
        self.assertIn("that chart (templates: old, older).", line)

    def test_a_template_of_another_driver_is_not_checked(self) -> None:
        labels = {"capi_helm_chart_version": "0.0.1"}
        self._template(uuid=_uuid("heat"), name="heat", labels=labels, driver="k8s_heat")
        self.assertEqual((OK, []), self.check("charts"))


class _NoCharts:
    def for_new_cluster(self, version: str | None, **others: Any) -> Any:
        raise errors.ChartNotFound("The chart is not available.", "http://charts.example.org")


def _uuid(name: str) -> str:
    return f"{name.encode().hex():0<8.8}-2222-4333-8444-555555555555"


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


class KubeconfigCase(CheckCase):
    """With a kubeconfig whose identity ends."""

    def certificate(self, days: float, lifetime: float = 365) -> None:
        """A kubeconfig with a client certificate that is valid for so long."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "magnum")])
        end = self.wall_clock() + days * DAY + datetime.timedelta(minutes=5)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(end - lifetime * DAY)
            .not_valid_after(end)
            .sign(key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        private = key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self.user(
            {
                "client-certificate-data": _base64(made.public_bytes(pem)),
                "client-key-data": _base64(private),
            }
        )

    def token(self, hours: float, lifetime: float) -> None:
        end = self.wall_clock().timestamp() + hours * 3600
        claims = {"exp": int(end) + 300, "iat": int(end - lifetime * 3600)}
        body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
        self.user({"token": f"e30.{body}.secret"})

    def user(self, user: dict[str, str]) -> None:
        text = self.kubeconfig.read_text()
        head = text[: text.index("users:")]
        self.kubeconfig.write_text(f"{head}users: {json.dumps([{'name': 'b', 'user': user}])}\n")


class TestKubeconfig(KubeconfigCase):
    def test_a_certificate_ends(self) -> None:
        for days, expected, words in (
            (-1, CRITICAL, "expired on"),
            (6, CRITICAL, r"\(6 days\)\. Issue a new one"),
            (29, WARNING, r"\(29 days\)\. Issue a new one"),
        ):
            self.certificate(days)
            line = self.one("kubeconfig", expected)
            self.assertRegex(line, f"^The client certificate of {self.kubeconfig} .*{words}")
        self.certificate(31)
        self.assertEqual((OK, []), self.check("kubeconfig"))

    def test_a_token_ends(self) -> None:
        self.token(hours=48, lifetime=24 * 90)
        self.assertIn("The token of", self.one("kubeconfig"))

    def test_what_its_issuer_renews_may_be_short(self) -> None:
        self.token(hours=0.5, lifetime=1)
        self.assertEqual((OK, []), self.check("kubeconfig"))
        self.certificate(0.5, lifetime=0.9)
        self.assertEqual((OK, []), self.check("kubeconfig"))

    def test_what_is_no_such_token_has_no_end(self) -> None:
        for token in ("a", "a.b.c", "a.e30.c", "a.W10.c", "a.eyJleHAiOiJ4In0.c"):
            self.user({"token": token})
            printed = self.command("check", "kubeconfig")
            self.assertEqual(OK, printed.status, token)
            self.assertIn("has no date of expiry", printed.out)

    def test_it_is_missing(self) -> None:
        self.kubeconfig.unlink()
        line = self.one("kubeconfig")
        self.assertIn(str(self.kubeconfig), line)
        self.assertIn("Correct [capi_helm] kubeconfig_file", line)

    def test_no_token_is_printed(self) -> None:
        self.token(hours=48, lifetime=24 * 90)
        printed = self.command("check")
        self.assertNotIn("secret", printed.out + printed.error)


class TestPermissions(CheckCase):
    def test_the_list_is_that_of_the_documented_roles(self) -> None:
        roles = identity.permissions(identity.ROLES.read_text())
        self.assertEqual({"magnum-k8s-capi-helm", "magnum-k8s-capi-helm-everywhere"}, set(roles))
        texts = {str(one) for role in roles.values() for one in role}
        for text in (
            "list clusters.cluster.x-k8s.io",
            "bind clusterroles.rbac.authorization.k8s.io magnum-k8s-capi-helm",
            "create secrets",
        ):
            self.assertIn(text.replace("clusters.", "*."), texts)

    def test_each_verb_that_is_missing_is_named(self) -> None:
        """Each of them, of both roles: none is asked for in another one's name."""
        self.made()
        roles = identity.permissions(identity.ROLES.read_text())
        optional = {("", "namespaces", "delete"), ("*", "*", "list")}
        asked: list[tuple[str, ...]] = []

        def note(attributes: dict[str, str]) -> bool:
            asked.append(tuple(sorted(attributes.items())))
            return True

        self.kube.allows = note
        self.assertEqual(OK, self.check("permissions")[0])
        self.assertEqual(sum(map(len, roles.values())), len(set(asked)))
        for attributes in at_least_one(sorted(set(asked))):
            self.kube.allows = lambda now, one=attributes: tuple(sorted(now.items())) != one
            found = dict(attributes)
            if (found["group"], found["resource"], found["verb"]) in optional:
                self.assertEqual((OK, []), self.check("permissions"))
                continue
            status, [line] = self.check("permissions")
            self.assertEqual(WARNING if found["verb"] == "watch" else CRITICAL, status)
            self.assertIn(f"may not {found['verb']} {found['resource']}", line)
            place = f"in namespace {NAMESPACE}" if "namespace" in found else "in all namespaces"
            self.assertIn(f"{place}. Set the user", line)

    def test_what_is_optional_is_no_fault(self) -> None:
        """It is said all the same."""
        self.made()
        self.kube.allows = lambda asked: (
            (asked["verb"], asked["resource"])
            != (
                "delete",
                "namespaces",
            )
        )
        printed = self.command("check", "permissions")
        self.assertEqual(OK, printed.status)
        self.assertIn("Optional and not granted: delete namespaces.", printed.out)

    def test_a_role_that_is_not_bound_is_one_fault(self) -> None:
        self.made()
        self.kube.allows = lambda asked: "namespace" not in asked
        line = self.one("permissions")
        self.assertIn(f"Nothing is allowed in namespace {NAMESPACE}", line)

    def test_without_a_cluster_the_second_role_is_not_bound_yet(self) -> None:
        self.kube.allows = lambda asked: "namespace" not in asked
        self.assertEqual((OK, []), self.check("permissions"))


class TestManagementCluster(CheckCase):
    def test_a_kind_that_is_not_served(self) -> None:
        for kind in (names.CLUSTER, names.OPENSTACK_SERVER, names.BOOTSTRAP_TEMPLATE):
            self.kube.unserved = {kind}
            line = self.one("cluster-api")
            self.assertIn(f"{kind.plural} is not served", line)
            self.assertIn("clusterctl init", line)

    def test_an_addon_provider_that_is_not_installed(self) -> None:
        self.kube.unserved = {names.MANIFESTS}
        self.assertIn("Install cluster-api-addon-provider", self.one("addon-provider"))

    def test_an_addon_provider_that_does_nothing(self) -> None:
        for kind, name in ((names.HELM_RELEASE, "calico"), (names.MANIFESTS, "storage")):
            self.kube.put(kind, {"metadata": {"namespace": NAMESPACE, "name": name}})
        line = self.one("addon-provider")
        self.assertIn(f"nothing of addon {NAMESPACE}/calico and 1 more for 10 minutes", line)

    def test_a_new_addon_is_given_time(self) -> None:
        created = f"{self.wall_clock():%Y-%m-%dT%H:%M:%SZ}"
        metadata = {"namespace": NAMESPACE, "name": "calico", "creationTimestamp": created}
        self.kube.put(names.HELM_RELEASE, {"metadata": metadata})
        self.assertEqual((OK, []), self.check("addon-provider"))

    def test_a_controller_is_silent(self) -> None:
        self.renew_leases(ago=3600)
        status, lines = self.check("controllers")
        self.assertEqual((CRITICAL, 4), (status, len(lines)))
        self.assertRegex(lines[0], r"has not reported since \d{4}-.*kubectl -n [\w-]+ get pods\.$")

    def test_a_clock_that_differs_makes_no_controller_silent(self) -> None:
        self.renew_leases(ago=3600)
        self.kube.ahead = 3600
        self.assertEqual((OK, []), self.check("controllers"))

    def test_a_controller_has_no_lease(self) -> None:
        lease = self.periodic().settings.capi_helm.controller_leases[0]
        self.kube.remove(names.LEASE, *lease.split("/"))
        self.assertIn("Name the Leases", self.one("controllers", WARNING))

    def test_the_janitor_is_missing(self) -> None:
        self.made()
        self.assertIn("Install it", self.one("janitor", WARNING))

    def test_clocks_differ(self) -> None:
        for seconds, expected, words in (
            (61, WARNING, "61 s ahead of"),
            (-61, WARNING, "61 s behind"),
            (-301, CRITICAL, "301 s behind"),
            (None, WARNING, "no time to compare with"),
        ):
            self.kube.ahead = seconds
            self.assertIn(words, self.one("clocks", expected))
        self.kube.ahead = 60
        self.assertEqual((OK, []), self.check("clocks"))

    def test_providers_are_shown_to_who_may_see_them(self) -> None:
        metadata = {"namespace": "capo-system", "name": "infrastructure-openstack"}
        self.kube.put(names.PROVIDER, {"metadata": metadata, "version": "v0.14.6"})
        out = self.command("check", "cluster-api", "-f", "value").out
        self.assertIn("Providers by clusterctl: infrastructure-openstack v0.14.6.", out)

        def refuse(verb: str, kind: names.Kind, name: str) -> None:
            if kind == names.PROVIDER:
                raise errors.NotAllowed("no")

        self.kube.before = refuse
        self.assertEqual((OK, []), self.check("cluster-api"))


class _Broken(FakeCatalogue):
    """A catalogue without Octavia, and a Nova that does not answer."""

    def __init__(self) -> None:
        cloud = FakeCloud()
        super().__init__(
            cloud.things(), cloud.viewer, cloud.asked, auth_url="", keypairs=(), addresses=tuple
        )

    def nova(self) -> Any:
        def fail() -> None:
            raise ka_exceptions.ConnectFailure("timeout")

        return types.SimpleNamespace(availability_zones=fail)

    def octavia(self) -> Any:
        raise ka_exceptions.EndpointNotFound("the catalogue has no 'load-balancer'")


class TestCloud(CheckCase):
    def test_keystone_does_not_answer(self) -> None:
        self.cloud.refusal = errors.CloudUnreachable("Keystone does not answer.", "timeout")
        self.assertIn("Keystone does not answer. (timeout). Check", self.one("cloud"))

    def test_a_service_does_not_answer(self) -> None:
        for service in ("Glance", "Nova", "Neutron", "Cinder", "Octavia"):
            error = errors.CloudUnreachable(f"{service} does not answer.")
            self.cloud.service_problems = {service: error}
            self.assertIn(f"Check the endpoint and the log of {service}", self.one("cloud"))

    def test_a_cloud_without_octavia(self) -> None:
        self.cloud.service_problems = {"Octavia": errors.EndpointNotFound("none")}
        self.assertIn("The catalogue has no Octavia", self.one("cloud", WARNING))

    def test_each_service_is_asked_and_its_own_error_is_told(self) -> None:
        services = Services(_Broken())
        found = dict(service_check.service_errors(services))
        self.assertEqual(["Glance", "Nova", "Neutron", "Cinder", "Octavia"], list(found))
        self.assertIsInstance(found.pop("Octavia"), errors.EndpointNotFound)
        self.assertEqual(
            {
                None,
                "Nova does not answer. The request for availability zones failed; try again in "
                "some minutes.",
            },
            {error and str(error) for error in found.values()},
        )

    def test_the_certificates_of_the_cloud_cannot_be_read(self) -> None:
        self.config(group="drivers", openstack_ca_file="/nowhere.pem")
        self.assertIn("/nowhere.pem", self.one("authority"))
