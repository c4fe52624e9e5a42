# SPDX-License-Identifier: Apache-2.0
"""Two tenants side by side, faults on every question: each has what the own requests brought.

The rules are what two people, a conductor, a cloud and Cluster API can do, in any order. Whatever
one asks for, nothing of the other changes; nothing is gone while its servers are there; nothing is
COMPLETE before its objects say so; and once the faults end, everything comes to rest.
"""

from __future__ import annotations

import os
from typing import Any

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st
import testtools

from magnum import objects
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import driver_case, two_projects
from magnum.tests.unit.drivers.k8s_capi_helm.magnum_release import credential_conductor
from magnum.tests.unit.drivers.k8s_capi_helm.two_projects import FIRST, SECOND, Tenant

#: Sequences in a run; ``tox -e hostile`` asks for more.
EXAMPLES = int(os.environ.get("K8S_CAPI_HELM_NEIGHBOURS") or 6)
IS_RUN = bool(os.environ.get("K8S_CAPI_HELM_NEIGHBOURS"))
_ROUNDS = 8
TENANTS = (FIRST, SECOND)

tenants = st.sampled_from(TENANTS)
counts = st.integers(0, 3)
extras = st.sampled_from(["extra-1", "extra-2"])
groups = st.sampled_from(["default-worker", "extra-1", "extra-2"])


def other(tenant: Tenant) -> Tenant:
    return SECOND if tenant is FIRST else FIRST


class Neighbours(stateful.RuleBasedStateMachine):
    """Two projects from their first cluster to their last."""

    def __init__(self) -> None:
        super().__init__()
        self.world = two_projects.Neighbourhood("made")  # never run: the machine drives it
        self.world.setUp()
        self.newer: dict[str, Any] = {}
        self.world.cloud.images["newer"] = ("image-2", "1.35.2")
        for number, tenant in enumerate(TENANTS, 3):
            self.world.act_as(tenant)
            uuid = f"{number}1111111-2222-4333-8444-555555555555"
            self.newer[tenant.project] = self.world._template(
                uuid=uuid,
                name="newer",
                image_id="newer",
                project_id=tenant.project,
                user_id=tenant.user,
            )
        self.statuses: dict[str, str] = {}

    def asked(self, tenant: Tenant, request: Any, *args: Any, **more: Any) -> None:
        """A request or a pass about one tenant: what is the other one's stays as it is."""
        before = self.world.everything_of(other(tenant))
        self.world.act_as(tenant)
        request(*args, **more)
        after = self.world.everything_of(other(tenant))
        for place, what in before.items():
            assert what == after[place], (place, what, after[place])

    def has(self, tenant: Tenant, name: str = "default-worker") -> bool:
        self.world.act_as(tenant)
        if not self.world.has_cluster() or not self.world.cluster().stack_id:
            return False
        return any(row.name == name for row in self.world.cluster().nodegroups)

    # What people ask for --------------------------------------------------------------------------
    @stateful.initialize(workers=st.integers(1, 2))
    def both_have_one(self, workers: int) -> None:
        for tenant in TENANTS:
            self.asked(tenant, self.world.ask_for_cluster, workers=workers)
            self.world.converge(tenant)
        self.pass_by(False)
        self.pass_by(False)

    @stateful.rule(tenant=tenants)
    def create(self, tenant: Tenant) -> None:
        self.world.act_as(tenant)
        if not self.world.has_cluster():
            self.asked(tenant, self.world.ask_for_cluster)

    @stateful.rule(tenant=tenants, name=groups, count=counts)
    def resize(self, tenant: Tenant, name: str, count: int) -> None:
        if self.has(tenant, name):
            self.asked(tenant, self.world.resize, count, name)

    @stateful.rule(tenant=tenants, name=extras, count=counts)
    def add(self, tenant: Tenant, name: str, count: int) -> None:
        if self.has(tenant) and not self.has(tenant, name):
            project = {"project_id": tenant.project}
            self.asked(tenant, self.world.add_group, name, count, **project)

    @stateful.rule(tenant=tenants, name=groups, marks=st.sampled_from([{}, {"team": "blue"}]))
    def change(self, tenant: Tenant, name: str, marks: Any) -> None:
        if self.has(tenant, name):
            self.asked(tenant, self.world.change_group, name, node_labels=marks)

    @stateful.rule(tenant=tenants, name=extras)
    def drop(self, tenant: Tenant, name: str) -> None:
        if self.has(tenant, name):
            self.asked(tenant, self.world.drop_group, name)

    @stateful.rule(tenant=tenants)
    def upgrade(self, tenant: Tenant) -> None:
        if self.has(tenant) and self.world.cluster().status.endswith("_COMPLETE"):
            self.asked(tenant, self.world.upgrade, self.newer[tenant.project])

    @stateful.rule(tenant=tenants)
    def rotate(self, tenant: Tenant) -> None:
        if self.has(tenant):
            rotate = credential_conductor.Handler().credential_rotate
            cluster = self.world.cluster()
            self.asked(tenant, self.world.quietly, rotate, self.world.context, cluster)

    @stateful.rule(tenant=tenants)
    def delete(self, tenant: Tenant) -> None:
        if self.has(tenant):
            self.asked(tenant, self.world.delete)

    # What happens ---------------------------------------------------------------------------------
    @stateful.rule(tenant=tenants)
    def converge(self, tenant: Tenant) -> None:
        """Cluster API does its work; of a cluster that goes, machines before servers."""
        if self.is_going(tenant):
            self.world.take_away(tenant)
        else:
            self.world.converge(tenant)

    @stateful.rule(tenant=tenants)
    def nova_deletes(self, tenant: Tenant) -> None:
        self.world.delete_servers(tenant)

    @stateful.rule(health=st.booleans())
    def visit(self, health: bool) -> None:
        self.pass_by(health)

    def pass_by(self, health: bool) -> None:
        for tenant in TENANTS:
            self.asked(tenant, self.world.pass_by, tenant, health=health)

    @stateful.rule()
    def restart(self) -> None:
        self.world.restart()

    @stateful.rule(fault=st.sampled_from(["", *two_projects.MANAGEMENT_FAULTS]))
    def break_management(self, fault: str) -> None:
        self.world.break_management(fault)

    @stateful.rule(fault=st.sampled_from(["", *two_projects.CLOUD_FAULTS]))
    def break_cloud(self, fault: str) -> None:
        self.world.break_cloud(fault)

    # What holds at any time -----------------------------------------------------------------------
    @stateful.invariant()
    def what_is_gone_has_no_servers(self) -> None:
        known = {row.project_id for row in objects.Cluster.list(self.world.everybody)}
        for tenant in TENANTS:
            found = self.world.everything_of(tenant)
            if tenant.project not in known and self.statuses.get(tenant.project):
                assert not found["servers"], (tenant.project, found["servers"])
                assert not self.world.machines(tenant), tenant.project
            if found["servers"] and tenant.project in known and found["release"]:
                # Without it nothing of the cluster could be deleted.
                assert found["credentials"], (tenant.project, found["servers"])

    @stateful.invariant()
    def what_is_complete_is_there(self) -> None:
        seen = {}
        for row in objects.Cluster.list(self.world.everybody):
            seen[row.project_id] = row.status
            before = self.statuses.get(row.project_id, "")
            if not (before.endswith("_IN_PROGRESS") and row.status.endswith("_COMPLETE")):
                continue
            tenant = next(one for one in TENANTS if one.project == row.project_id)
            have: dict[str, int] = {}
            for one in self.world.machines(tenant):
                group = one["metadata"]["labels"].get(names.LABEL_NODE_GROUP, "default-master")
                have[group] = have.get(group, 0) + 1
            wanted = {
                group.name: group.node_count
                for group in row.nodegroups
                if group.node_count and not group.status.endswith("_FAILED")
            }
            assert wanted == have, (tenant.project, wanted, have)
        gone = {one: "GONE" for one in self.statuses if one not in seen}
        self.statuses = {**gone, **seen}

    @stateful.invariant()
    def no_secret_is_shown(self) -> None:
        for row in objects.Cluster.list(self.world.everybody):
            shown = f"{row.status_reason} {row.health_status_reason}"
            assert driver_case.SECRET_TEXT not in shown
            mine = next(one for one in TENANTS if one.project == row.project_id)
            for text in (other(mine).project, other(mine).namespace):
                assert f"{text} " not in f"{shown} ", shown

    # The end --------------------------------------------------------------------------------------
    def is_going(self, tenant: Tenant) -> bool:
        rows = objects.Cluster.list(self.world.everybody)
        return any(
            row.project_id == tenant.project and row.status.startswith("DELETE_") for row in rows
        )

    def teardown(self) -> None:
        try:
            self.world.break_management("")
            self.world.break_cloud("")
            self.rest()
            for row in objects.Cluster.list(self.world.everybody):
                fine = row.status.endswith("_COMPLETE") or row.status == "CREATE_FAILED"
                assert fine, (row.project_id, row.status, row.status_reason)
            for tenant in TENANTS:
                self.world.act_as(tenant)
                if self.world.has_cluster():
                    self.asked(tenant, self.world.delete)
            self.rest()
            rows = objects.Cluster.list(self.world.everybody)
            assert not rows, [(row.status, row.status_reason) for row in rows]
            for tenant in TENANTS:
                found = self.world.everything_of(tenant)
                kinds = {one["kind"] for one in found.pop("objects")}
                assert kinds <= {"Namespace", "RoleBinding"}, kinds
                assert not any(found[key] for key in found if key != "rows"), found
        finally:
            self.world.doCleanups()

    def rest(self) -> None:
        for minutes in (6, 20):
            self.world.after(minutes)
            for _ in range(_ROUNDS):
                for tenant in TENANTS:
                    self.converge(tenant)
                    self.world.delete_servers(tenant)
                for health in (False, False, True):
                    self.pass_by(health)


class TestNeighbours(testtools.TestCase):
    """The machine, as a test."""

    def test_nobody_moves_what_is_another_tenants(self) -> None:
        settings = hypothesis.settings(
            max_examples=EXAMPLES,
            stateful_step_count=14,
            derandomize=not IS_RUN,
            phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        found = stateful.run_state_machine_as_test(Neighbours, settings=settings)
        self.assertIsNone(found, "it raises what it finds")
