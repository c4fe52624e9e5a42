# SPDX-License-Identifier: Apache-2.0
"""An operator upgrades three clusters in waves; the process is killed, and a cluster fails.

It is here because the command asks conductors by Magnum's message bus, as only this sandbox has it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from magnum.tests.functional.k8s_capi_helm.sandbox import operator_command, setting
from magnum.tests.functional.k8s_capi_helm.sandbox.cluster import Cluster, LIMIT
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer, VERSION
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import MagnumApi
from sandbox.cloud import seed

_OLD = "v1.33.8"
_COUNT = 3
_NO_START = "server-fails"
#: Options of both rollouts: the first cluster alone, the others together.
_WAVES = ("--waves", "1,2", "--budget", "2", "--soak", "0")


class Rollout(Life):
    """Three customers, each with a cluster in a project of its own.

    :ivar customers: in the order of the waves, which is that of their clusters' names.
    """

    name = "rollout"
    customers: list[Customer]
    _operator: MagnumApi
    _templates: list[str]

    def new_customer(self) -> Customer:
        self.customers = [Customer.new(f"{self.name}-{number}") for number in range(_COUNT)]
        self._operator = MagnumApi(seed.connect(setting.state(), "admin"))
        self._templates = []
        return self.customers[0]

    @property
    def clusters(self) -> list[Cluster]:
        """In the order of the waves."""
        return [customer.cluster for customer in self.customers]

    @step
    def create(self) -> None:
        for customer in self.customers:
            customer.create(version=_OLD)
        self.customers.sort(key=lambda customer: customer.cluster.name)
        for cluster in self.clusters:
            cluster.complete("CREATE")

    @step
    def planned(self) -> None:
        """The dry run names machines and minutes; the tenants read what is planned."""
        template = self._public_template("minor")
        begin = ("rollout", "start", "minor", "--template", template, *self._named(), *_WAVES)
        rows = operator_command.rows(*begin, "--dry-run")
        assert [row["Cluster"] for row in rows] == [one.name for one in self.clusters], rows
        assert [row["Wave"] for row in rows] == [1, 2, 2], rows
        assert all(row["Machines"] == 2 and not row["Refusal"] for row in rows), rows
        self.say(f"rollout: {sum(row['Minutes'] for row in rows)} minutes predicted")
        operator_command.rows(*begin)
        for cluster in self.clusters:
            cluster.until(_is_told, "the notice of the planned upgrade")

    @step
    def killed(self) -> None:
        """Killed in each wave, and continued: all of them are upgraded, wave by wave."""
        for wave, cluster in ((1, self.clusters[0]), (2, self.clusters[1])):
            process = operator_command.begin("rollout", "run", "minor")
            cluster.until(lambda rows: rows.status == "UPDATE_IN_PROGRESS", f"wave {wave}")
            if wave == 1:
                statuses = [one.rows().status for one in self.clusters[1:]]
                assert statuses == ["CREATE_COMPLETE"] * 2, statuses
            process.kill()
            process.wait()
            (row,) = operator_command.rows("rollout", "status", status=1)
            assert row["Wave"] == wave, row
        assert self._run("minor") == 0
        for cluster in self.clusters:
            cluster.intent = dataclasses.replace(cluster.intent, version=VERSION)
            cluster.complete()
            assert not _is_told(cluster.rows()), cluster.rows()
        rows = operator_command.rows("rollout", "status", "minor")
        assert [row["State"] for row in rows] == ["done"] * _COUNT, rows
        operator_command.rows("rollout", "delete", "minor")

    @step
    def stopped(self) -> None:
        """The first cluster does not come good: the rollout stops, and the others are untouched."""
        first, others = self.clusters[0], self.clusters[1:]
        before = [_state(cluster) for cluster in others]
        self.fault(_NO_START, True, f"^{first.release}-")
        template = self._public_template("label", labels={"audit_log_enabled": "true"})
        operator_command.rows(
            *("rollout", "start", "label", "--template", template, *self._named(), *_WAVES),
            *("--timeout", "4"),
        )
        assert self._run("label") == 2
        (row,) = operator_command.rows("rollout", "status", status=2)
        assert row["State"] == "stopped" and first.name in row["Reason"], row
        assert [_state(cluster) for cluster in others] == before

    @step
    def resumed(self) -> None:
        """Once the cause is gone the rollout goes on to its end."""
        self.fault(_NO_START, False)
        self.clusters[0].complete()
        operator_command.rows("rollout", "resume", "label", "--retry", status=1)
        assert self._run("label") == 0
        for cluster in self.clusters:
            cluster.complete()
        operator_command.rows("rollout", "delete", "label")

    @ending
    def delete(self) -> None:
        self.fault(_NO_START, False)
        for customer in self.customers:
            customer.magnum.delete(customer.cluster.uuid)
        for customer in self.customers:
            customer.cluster.gone()
            customer.leave()
        for template in self._templates:
            self._operator.delete_template(template)

    def _public_template(self, name: str, **fields: Any) -> str:
        """A template for all projects, as only an operator makes one."""
        template = self._operator.template(
            name=name,
            coe="kubernetes",
            public=True,
            image_id=f"ubuntu-kube-{VERSION}",
            external_network_id="public",
            master_flavor_id="m1.small",
            flavor_id="m1.medium",
            network_driver="calico",
            master_lb_enabled=True,
            floating_ip_enabled=True,
            **fields,
        )
        self._templates.append(template)
        return name

    def _named(self) -> list[str]:
        """The options that choose these clusters alone."""
        return [option for one in self.clusters for option in ("--cluster", one.uuid)]

    def _run(self, name: str) -> int:
        """Carry a rollout out to its end; the exit status."""
        process = operator_command.begin("rollout", "run", name)
        try:
            return process.wait(LIMIT)
        finally:
            process.kill()


def _state(cluster: Cluster) -> tuple[str, str]:
    """What an upgrade would change: the status, and the template."""
    row = cluster.rows().cluster
    return row["status"], row["cluster_template_id"]


def _is_told(rows: Any) -> bool:
    notice = (rows.cluster.get("health_status_reason") or {}).get("notice", "")
    return "has planned an upgrade of this cluster" in notice


class TestRollout(LifeCase, life=Rollout):
    """create, planned, killed, stopped, resumed, delete."""
