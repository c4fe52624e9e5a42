# SPDX-License-Identifier: Apache-2.0
"""A revoked credential, and a deletion that others hold up: what Magnum says, word for word."""

from __future__ import annotations

import re

from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management
from magnum.tests.functional.k8s_capi_helm.sandbox.services import Services

_HOLDER = "example.org/held"
#: Keystone is asked once a minute, the pass that tells it comes within ten seconds.
_TOLD_AFTER = 150.0


class Faults(Life):
    """One cluster, whose user revokes what it lives on and whose deletion does not end."""

    name = "faulty"
    services: Services

    @step
    def create(self) -> None:
        self.customer.create().complete("CREATE")

    @step
    def no_janitor(self) -> None:
        """The sandbox has none, and the health says what that means."""

        def told(rows: Rows) -> bool:
            reasons = rows.cluster.get("health_status_reason") or {}
            healthy = rows.cluster["health_status"] == "HEALTHY"
            return healthy and "runs no janitor" in reasons.get("notice", "")

        # The first look at health after the cluster was made may be a minute away.
        rows = self.cluster.until(told, "the notice", _TOLD_AFTER)
        self.say(str(rows.cluster["health_status_reason"]))

    @step
    def revoked(self) -> None:
        """The application credential goes: the reason names it and the command that helps."""
        tenant, uuid = self.customer.tenant, self.cluster.uuid
        identity = tenant.connection.identity
        for one in list(identity.application_credentials(tenant.user_id)):
            identity.delete_application_credential(tenant.user_id, one)
        self.customer.resize(2)
        said = (
            "credential: Keystone does not accept the cluster's application credential any more. "
            f"Run 'openstack coe credential rotate {uuid}' as a user of its project; "
            "1 of 2 default-worker machines are ready"
        )
        rows = self.cluster.until(lambda rows: rows.reason == said, said, _TOLD_AFTER)
        assert rows.status == "UPDATE_IN_PROGRESS", rows

        def sick(rows: Rows) -> bool:
            reasons = rows.cluster.get("health_status_reason") or {}
            return f"credential rotate {uuid}" in reasons.get("credential", "")

        rows = self.cluster.until(sick, "the health's word", _TOLD_AFTER)
        assert rows.cluster["health_status"] == "UNHEALTHY", rows.cluster
        self.explained("revoked credential", "credential Keystone does not accept")

    @step
    def rotated(self) -> None:
        """After the command everything comes good by itself, and the reason goes.

        A rotation is no operation with a status in Magnum: the resize before it may be complete
        while the addons still take the new credential into the cluster.
        """
        self.customer.magnum.rotate_credential(self.cluster.uuid)
        self.cluster.until(
            lambda rows: rows.status == "UPDATE_COMPLETE" and not self.cluster.untruths(),
            "UPDATE_COMPLETE, with all that uses the credential",
        )
        self.cluster.complete()

    @step
    def held(self) -> None:
        """A finalizer that nobody takes away is named, and so is the object that has it."""
        namespace = self.customer.tenant.namespace
        machine = self._machine()
        name = machine["metadata"]["name"]
        finalizers = [*machine["metadata"]["finalizers"], _HOLDER]
        self._patch(name, finalizers)
        self.services = Services(self.customer.tenant, self.cluster.release).create()
        self.customer.magnum.delete(self.cluster.uuid)
        pattern = rf"waiting: deletion of Machine {name}( \(\d machines left\))?: "
        pattern += r"requested at \d{4}-\d\d-\d\d \d\d:\d\d UTC, "
        pattern += rf"held by {re.escape(_HOLDER)}"
        rows = self.cluster.until(
            lambda rows: bool(re.fullmatch(pattern, rows.reason)), pattern, 300.0
        )
        assert rows.status == "DELETE_IN_PROGRESS", rows
        assert management().objects("Cluster", namespace), "the Cluster is gone"
        left = self.services.existing()
        assert left == self.services.things, "what Services have left goes before the last machine"

    @ending
    def delete(self) -> None:
        """When it is taken away the deletion goes on; only the users' volumes stay."""
        for one in management().objects("Machine", self.customer.tenant.namespace):
            self._patch(one["metadata"]["name"], None)
        self.customer.magnum.delete(self.cluster.uuid)
        self.cluster.forgotten()
        assert self.services.existing() == self.services.volumes, self.services.existing()
        self.services.delete()
        assert not self.cluster.left(), self.cluster.left()
        self.customer.leave()

    def _machine(self) -> dict[str, dict[str, object]]:
        found = management().objects("Machine", self.customer.tenant.namespace)
        return next(one for one in found if "-default-worker-" in one["metadata"]["name"])

    def _patch(self, name: str, finalizers: list[str] | None) -> None:
        change = {"metadata": {"finalizers": finalizers}}
        management().patch("Machine", self.customer.tenant.namespace, name, change)


class TestFaults(LifeCase, life=Faults):
    """create, no janitor, revoked, rotated, held, delete."""
