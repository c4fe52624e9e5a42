# SPDX-License-Identifier: Apache-2.0
"""A conductor with this driver: successor.py MAGNUM.CONF."""

from __future__ import annotations

import dataclasses
import io
import os
from pathlib import Path
import sys
from typing import Any, ClassVar
import uuid

import conductor
import facts

from magnum import objects
from magnum.drivers.k8s_capi_helm.commands import app
from magnum.drivers.k8s_capi_helm.commands.adoption import plan as adoption_plan
from magnum.drivers.k8s_capi_helm.commands.lookup import namespace_reader
from magnum.drivers.k8s_capi_helm.driver import Driver
from magnum.drivers.k8s_capi_helm.handlers.entry import reconciliation
from magnum.drivers.k8s_capi_helm.model import ApplicationCredential
from magnum.drivers.k8s_capi_helm.reconcile.process import clients
from magnum.tests.unit.drivers.k8s_capi_helm import fakes
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import FakeCloud
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import views
from magnum_k8s_capi_helm.conductor import MagnumConductor


class OpenStack(fakes.FakeOpenStack):
    """With ids as OpenStack's are, which the API server asks for."""

    def nova(self) -> Any:
        nova = super().nova()
        make = nova.create_server_group

        def make_with_id(**wanted: str) -> Any:
            made = make(**wanted)
            made.id = str(uuid.uuid4())
            return made

        nova.create_server_group = make_with_id
        return nova


class Cloud(FakeCloud):
    """The cloud of the driver's other tests, with what the file says."""

    def __init__(self) -> None:
        super().__init__()
        self.openstack = OpenStack()

    def things(self) -> views.Things:
        found = facts.read()
        self.external = found["external_network"]["id"]
        self.flavor_sizes = {name: {**one, "disk": 20} for name, one in found["flavors"].items()}
        self.images = {
            name: (one["id"], one["kube_version"]) for name, one in found["images"].items()
        }
        self.volume_types = tuple(found["volume_types"])
        return super().things()

    def create_credential(
        self, user_id: str, name: str, text: str, roles: Any
    ) -> ApplicationCredential:
        identity = facts.add_credential(name, user_id)
        return ApplicationCredential(identity, f"secret-of-{identity}", name)

    def delete_credential(self, user_id: str, credential_id: str) -> None:
        facts.drop_credential(credential_id)


class Successor(conductor.Conductor):
    """A conductor whose operator has the command."""

    clients: ClassVar[clients.Clients]

    def write_count(self, count: int) -> None:
        """Write rows as Magnum's API leaves them with a request that no conductor has got."""
        for cluster in objects.Cluster.list(self._admin):
            row = objects.NodeGroup.get_by_name(self._admin, cluster.uuid, "default-worker")
            row.node_count = count
            row.save()

    def command(self, argv: list[str]) -> dict[str, Any]:
        """The operator's command as a whole."""
        out, error = io.StringIO(), io.StringIO()
        program = app.OperatorApp(
            lambda options: reconciliation.of_periodic_task(self.clients, conductor.CONF),
            (),
            MagnumConductor,
            version="0",
            stdout=out,
            stderr=error,
        )
        status = program.run(argv)
        return {"status": int(status), "out": out.getvalue(), "error": error.getvalue()}

    def predict(self, count: int | None = None) -> dict[str, Any]:
        """What the command says of the first operation, with so many workers asked for."""
        cluster = self._cluster()
        row = objects.NodeGroup.get_by_name(self._user, cluster.uuid, "default-worker")
        before = row.node_count
        run = reconciliation.of_periodic_task(self.clients, conductor.CONF)
        row.node_count = before if count is None else count
        row.save()
        try:
            plan = adoption_plan.plan_adoption(run, cluster, namespace_reader.NamespaceReader(run))
        finally:
            row.node_count = before
            row.save()
        return {"state": plan.state.value, "changes": plan.changes, "text": plan.text}


def play() -> None:
    cloud = Cloud()
    # As if another package of the driver were installed.
    charts = Path(os.environ.get(facts.BUNDLED, clients.BUNDLED))
    made = clients.build(conductor.CONF, charts=charts)
    given = dataclasses.replace(made, cloud=cloud.seen_by)
    Successor.clients = given
    conductor.give(lambda: Driver(lambda settings: given))


if __name__ == "__main__":
    conductor.serve(sys.argv[1], play, Successor)
