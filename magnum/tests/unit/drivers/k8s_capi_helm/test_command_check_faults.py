# SPDX-License-Identifier: Apache-2.0
"""``check`` over a table of faults: each alone is one line of its check, with its words."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
from typing import Any
import unittest

from oslo_db import exception as db_exception
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.check.check import CHECKS
from magnum.drivers.k8s_capi_helm.commands.check.management_cluster import _ADDONS, _CLUSTER_API
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import KUBECONFIG
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE
from magnum.tests.unit.drivers.k8s_capi_helm.test_command_check import _NoCharts, KubeconfigCase

SERVICES = ("Glance", "Nova", "Neutron", "Cinder", "Octavia")
LEASES = 4


class FaultCase(KubeconfigCase):
    """The faults; each is one method, and leaves everything else as it is."""

    def forbid(self, **forbidden: str) -> None:
        """The driver's user may do everything but this."""
        self.made()
        self.kube.allows = lambda asked: not forbidden.items() <= asked.items()

    def no_role(self) -> None:
        self.made()
        self.kube.allows = lambda asked: "namespace" not in asked

    def no_database(self) -> None:
        def fail(*args: Any) -> None:
            raise db_exception.DBConnectionError("the database is away")

        engine = enginefacade.reader.get_engine()
        sqlalchemy.event.listen(engine, "before_cursor_execute", fail)
        self.addCleanup(sqlalchemy.event.remove, engine, "before_cursor_execute", fail)

    def helm_is_old(self) -> None:
        self.installation_checks = [("Helm", lambda conf: iter([(True, "helm is too old.")]))]

    def template_chart(self) -> None:
        labels = {"capi_helm_chart_version": "0.0.1"}
        other = "31111111-2222-4333-8444-555555555555"
        self._template(uuid=other, name="old", labels=labels, driver=names.DRIVER)

    def rules(self, text: str | None) -> None:
        path = self.kubeconfig.with_name("policy.yaml")
        if text is not None:
            path.write_text(text)
        self.config(group="capi_helm", policy_file=str(path))

    def service(self, name: str) -> None:
        self.cloud.service_problems = {name: errors.CloudUnreachable(f"{name} does not answer.")}

    def authority(self, text: str | None) -> None:
        path = self.kubeconfig.with_name("authority.pem")
        if text is not None:
            path.write_text(text)
        self.config(group="drivers", openstack_ca_file=str(path))

    def silent_controller(self, number: int) -> None:
        lease = self.periodic().settings.capi_helm.controller_leases[number]
        obj = self.kube.get(names.LEASE, *lease.split("/"))
        assert obj is not None
        old = {**obj["spec"], "renewTime": "2026-01-01T00:00:00.000000Z"}
        self.kube.put(names.LEASE, {**obj, "spec": old})

    def no_lease(self) -> None:
        lease = self.periodic().settings.capi_helm.controller_leases[0]
        self.kube.remove(names.LEASE, *lease.split("/"))

    def silent_addon_provider(self) -> None:
        self.kube.put(names.HELM_RELEASE, {"metadata": {"namespace": NAMESPACE, "name": "calico"}})


@dataclasses.dataclass(frozen=True)
class MadeFault:
    """One fault.

    :ivar check: that finds it.
    :ivar words: of its line.
    """

    check: str
    make: Callable[[Any], object]
    words: str


def _setting(name: str, value: Any) -> Callable[[Any], object]:
    return lambda case: setattr(case.kube, name, value)


FAULTS = {
    "helm is too old": MadeFault("installation", FaultCase.helm_is_old, "helm is too old"),
    "database away": MadeFault("database", FaultCase.no_database, "Check [database] connection"),
    "no chart": MadeFault(
        "charts",
        lambda case: setattr(case, "ports", dataclasses.replace(case.ports, charts=_NoCharts())),
        "No cluster can be created with that chart.",
    ),
    "no chart of a template": MadeFault("charts", FaultCase.template_chart, "(templates: old)"),
    "policy missing": MadeFault("policy", lambda case: case.rules(None), "policy.yaml"),
    "policy is no YAML": MadeFault("policy", lambda case: case.rules("{"), "policy.yaml"),
    "policy with an unknown rule": MadeFault(
        "policy", lambda case: case.rules("rules: [{name: a, colour: red}]"), "colour"
    ),
    "Keystone away": MadeFault(
        "cloud",
        lambda case: setattr(
            case.cloud, "refusal", errors.CloudUnreachable("Keystone does not answer.", "timeout")
        ),
        "Keystone does not answer.",
    ),
    **{
        f"{name} away": MadeFault(
            "cloud",
            lambda case, name=name: case.service(name),
            f"Check the endpoint and the log of {name}",
        )
        for name in SERVICES
    },
    "no Octavia": MadeFault(
        "cloud",
        lambda case: setattr(
            case.cloud, "service_problems", {"Octavia": errors.EndpointNotFound("none")}
        ),
        "The catalogue has no Octavia",
    ),
    "authority missing": MadeFault("authority", lambda case: case.authority(None), "authority.pem"),
    "certificate expired": MadeFault("kubeconfig", lambda case: case.certificate(-1), "expired on"),
    "certificate ends this week": MadeFault(
        "kubeconfig", lambda case: case.certificate(6), "(6 days). Issue a new one"
    ),
    "certificate ends this month": MadeFault(
        "kubeconfig", lambda case: case.certificate(29), "(29 days). Issue a new one"
    ),
    "token ends": MadeFault(
        "kubeconfig", lambda case: case.token(hours=48, lifetime=24 * 90), "The token of"
    ),
    "kubeconfig missing": MadeFault(
        "kubeconfig",
        lambda case: case.kubeconfig.unlink(),
        "Correct [capi_helm] kubeconfig_file",
    ),
    "kubeconfig is no YAML": MadeFault(
        "kubeconfig",
        lambda case: case.kubeconfig.write_text("{"),
        "Correct [capi_helm] kubeconfig_file",
    ),
    "kubeconfig without its context": MadeFault(
        "kubeconfig",
        lambda case: case.kubeconfig.write_text(
            KUBECONFIG.replace("current-context: a", "current-context: c")
        ),
        "Correct [capi_helm] kubeconfig_file",
    ),
    "management cluster away": MadeFault(
        "management-cluster", _setting("unreachable", True), "Check the network to it"
    ),
    "role not bound": MadeFault(
        "permissions",
        FaultCase.no_role,
        f"Nothing is allowed in namespace {NAMESPACE}",
    ),
    **{
        f"may not {verb} {resource}": MadeFault(
            "permissions",
            lambda case, one={"verb": verb, "resource": resource}: case.forbid(**one),
            f"may not {verb} {resource}",
        )
        for verb, resource in (
            ("create", "namespaces"),
            ("create", "secrets"),
            ("delete", "configmaps"),
            ("update", "leases"),
            ("watch", "deployments"),
        )
    },
    **{
        f"{kind.name} not served": MadeFault(
            "cluster-api", _setting("unserved", {kind}), f"{kind.plural} is not served"
        )
        for kind in _CLUSTER_API
    },
    **{
        f"{kind.group} {kind.name} not served": MadeFault(
            "addon-provider", _setting("unserved", {kind}), "Install cluster-api-addon-provider"
        )
        for kind in _ADDONS
    },
    "addon provider silent": MadeFault(
        "addon-provider", FaultCase.silent_addon_provider, f"nothing of addon {NAMESPACE}/calico"
    ),
    **{
        f"controller {number} silent": MadeFault(
            "controllers",
            lambda case, number=number: case.silent_controller(number),
            "has not reported since 2026-01-01 00:00 UTC",
        )
        for number in range(LEASES)
    },
    "controller without Lease": MadeFault("controllers", FaultCase.no_lease, "Name the Leases"),
    "no janitor": MadeFault("janitor", lambda case: case.made(), "Install it"),
    **{
        f"clock {words}": MadeFault("clocks", _setting("ahead", seconds), words)
        for seconds, words in (
            (61, "61 s ahead of"),
            (-61, "61 s behind"),
            (-301, "301 s behind"),
            (None, "no time to compare with"),
        )
    },
}


class TestFaults(FaultCase):
    """A test for each fault."""


def _test(fault: MadeFault) -> Callable[[FaultCase], None]:
    def found(self: FaultCase) -> None:
        fault.make(self)
        status, lines = self.check(fault.check)
        self.assertIn(status, (1, 2))
        self.assertEqual(1, len(lines), lines)
        self.assertIn(fault.words, lines[0])

    return found


for _name, _fault in FAULTS.items():
    setattr(TestFaults, f"test_{''.join(c if c.isalnum() else '_' for c in _name)}", _test(_fault))


class TestTable(unittest.TestCase):
    def test_each_check_finds_some_of_at_least_forty(self) -> None:
        self.assertGreaterEqual(len(FAULTS), 40)
        self.assertEqual(set(CHECKS), {fault.check for fault in FAULTS.values()})
