# SPDX-License-Identifier: Apache-2.0
"""``list`` shows each cluster in one row, with as few requests for many as for one."""

from __future__ import annotations

import datetime
import json
from typing import Any

from oslo_db.sqlalchemy import enginefacade
import sqlalchemy

from magnum.drivers.k8s_capi_helm.lease import codec
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    CRITICAL,
    OK,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE


class ListCase(CommandCase):
    def rows(self, *argv: str, status: int = OK) -> list[dict[str, Any]]:
        printed = self.command("list", "-f", "json", *argv)
        self.assertEqual(status, printed.status, printed.error)
        return printed.rows()

    def set_expiry(self, days: int) -> None:
        """When the certificates of the control plane expire."""
        for machine in self.kube.list(names.MACHINE, NAMESPACE):
            end = self.wall_clock() + datetime.timedelta(days=days, minutes=5)
            machine["status"]["certificatesExpiryDate"] = f"{end:%Y-%m-%dT%H:%M:%SZ}"
            self.kube.put(names.MACHINE, machine)

    def set_row(self, **fields: Any) -> None:
        """What another conductor has written."""
        cluster = self.cluster()
        for field, value in fields.items():
            setattr(cluster, field, value)
        cluster.save()

    def copy_cluster(self, number: int) -> None:
        """Another cluster like the first one, in one of six projects, with its objects."""
        copy = self.copy_row(number)
        release, project = copy.stack_id, copy.project_id
        for thing in list(self.kube.everything()):
            if thing["metadata"].get("namespace") != NAMESPACE or RELEASE not in json.dumps(thing):
                continue
            text = json.dumps(thing).replace(RELEASE, release)
            copied = json.loads(text)
            copied["metadata"]["namespace"] = names.namespace("magnum", project)
            self.kube.put(self.kube.kind_of(copied), copied)


class TestRows(ListCase):
    def test_a_row_has_what_an_operator_looks_for(self) -> None:
        self.made()
        self.set_expiry(40)
        self.resize(2)
        [row] = self.rows()
        operation = self.ports.leases.read(NAMESPACE, RELEASE).operations[0]
        self.assertEqual(
            {
                "Name": "demo",
                "UUID": self.cluster().uuid,
                "Project": "p1",
                "Status": "UPDATE_IN_PROGRESS",
                "Kubernetes": f"v{builders.VERSION}",
                "Certificates": 40,
                "Credential": "",
                "Pending": "resize",
                "Since": f"{operation.started_at:%Y-%m-%d %H:%M:%S}",
            },
            {key: row[key] for key in row if key not in ("Health", "Reason", "Chart")},
        )
        self.assertRegex(row["Chart"], r"^openstack-cluster \d+\.\d+\.\d+$")

    def test_the_reason_is_its_class(self) -> None:
        self.made()
        self.set_row(status="CREATE_FAILED", status_reason="quota: Quota exceeded: 3 of 2")
        self.assertEqual("quota", self.rows()[0]["Reason"])
        for refusal, wanted in (
            ("The project's quota is too small for servers.", "quota"),
            ("The new template's image skips a minor release.", "request"),
        ):
            self.set_row(status_reason=refusal)
            self.assertEqual(wanted, self.rows()[0]["Reason"])
        self.set_row(status="CREATE_IN_PROGRESS", status_reason="waiting: 1 of 3 machines")
        self.assertEqual("waiting", self.rows()[0]["Reason"])

    def test_without_a_reason_the_bad_parts_are_named(self) -> None:
        self.made()
        texts = {"cluster": "Ready", "api": "ok", "nodegroup": "gone", "notice": "be careful"}
        texts |= {"credential": "not accepted", "request": "refused", "labels": "a=b"}
        self.set_row(status_reason=None, health_status="UNHEALTHY", health_status_reason=texts)
        [row] = self.rows()
        self.assertEqual(("credential, nodegroup", "refused"), (row["Reason"], row["Credential"]))

    def test_what_has_no_release_yet_is_listed(self) -> None:
        self.made()
        self.set_row(stack_id=None)
        [row] = self.rows()
        self.assertEqual(("demo", "", ""), (row["Name"], row["Chart"], row["Certificates"]))

    def test_a_cluster_of_another_driver_is_not_listed(self) -> None:
        self.made()
        self.set_row(stack_id="kube-abcde")
        self.assertEqual([], self.rows())

    def test_a_lease_that_cannot_be_read_hides_no_cluster(self) -> None:
        self.made()
        lease = self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
        assert lease is not None
        lease["metadata"]["annotations"][codec.OPERATIONS] = "{"
        self.kube.put(names.LEASE, lease)
        [row] = self.rows()
        self.assertEqual(("demo", "", ""), (row["Name"], row["Pending"], row["Chart"]))


class TestFilters(ListCase):
    def test_by_project_status_and_health(self) -> None:
        self.made()
        self.copy_cluster(2)
        self.set_row(status="UPDATE_FAILED", health_status="UNHEALTHY")
        for argv, expected in (
            ((), ["demo", "other-2"]),
            (("--project", "p1"), ["demo"]),
            (("--project", "p2"), ["other-2"]),
            (("--project", "nobody"), []),
            (("--status", "failed"), ["demo"]),
            (("--status", "UPDATE_FAILED"), ["demo"]),
            (("--status", "CREATE_COMPLETE"), ["other-2"]),
            (("--status", "PLETE"), []),
            (("--health", "UNHEALTHY"), ["demo"]),
            (("--health", "unhealthy", "--status", "COMPLETE"), []),
        ):
            self.assertEqual(expected, [row["Name"] for row in self.rows(*argv)], argv)


class TestMonitoring(ListCase):
    def test_the_status_is_that_of_the_worst_cluster(self) -> None:
        self.made()
        self.copy_cluster(2)
        for fields, days, expected in (
            ({"health_status": "HEALTHY"}, 31, OK),
            ({"health_status": "HEALTHY"}, 29, WARNING),
            ({"health_status": "HEALTHY"}, 6, CRITICAL),
            ({"health_status": "UNKNOWN"}, 31, WARNING),
            ({"health_status": "UNKNOWN"}, 6, CRITICAL),
            ({"health_status": "UNHEALTHY"}, 31, CRITICAL),
            ({"health_status": "UNKNOWN", "status": "UPDATE_IN_PROGRESS"}, 31, OK),
            ({"health_status": "UNKNOWN", "status": "UPDATE_IN_PROGRESS"}, 29, WARNING),
            ({"health_status": "HEALTHY", "status": "DELETE_FAILED"}, 31, CRITICAL),
        ):
            self.set_row(**fields)
            self.set_expiry(days)
            self.rows("--monitor", status=expected)
            self.rows(status=OK)

    def test_what_is_in_the_database_is_shown_without_the_management_cluster(self) -> None:
        self.made()
        self.kube.unreachable = True
        printed = self.command("list", "-f", "json")
        self.assertEqual(UNKNOWN, printed.status)
        self.assertIn("connection refused", printed.error)
        [row] = printed.rows()
        shown = (row["Name"], row["Status"], row["Chart"])
        self.assertEqual(("demo", "CREATE_COMPLETE", ""), shown)


class TestRequests(ListCase):
    def count(self) -> tuple[int, int, int]:
        """Rows, requests to the management cluster, statements of the database."""
        statements: list[str] = []

        def note(*args: Any) -> None:
            statements.append(args[2])

        engine = enginefacade.reader.get_engine()
        sqlalchemy.event.listen(engine, "before_cursor_execute", note)
        self.kube.calls.clear()
        rows = len(self.rows())
        sqlalchemy.event.remove(engine, "before_cursor_execute", note)
        return rows, len(self.kube.calls), len(statements)

    def test_sixty_clusters_cost_what_one_does(self) -> None:
        self.made()
        one = self.count()
        self.assertEqual((1, 3, 2), one)
        for number in range(59):
            self.copy_cluster(number)
        self.assertEqual((60, *one[1:]), self.count())
