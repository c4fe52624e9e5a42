# SPDX-License-Identifier: Apache-2.0
"""Machines that do not come, each for a reason of its own: what Magnum says, word for word."""

from __future__ import annotations

import secrets

from magnum.tests.functional.k8s_capi_helm.sandbox import provider
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.management import Json, management

#: Seconds until an empty nodegroup is complete.
_EMPTY_AFTER = 300.0
_NO_HOST, _NO_START, _OLD_KUBELET = "no-valid-host", "server-fails", "wrong-kubelet"
#: The group that each has here, and what ``why`` says of it when no other one is left before it.
_WORDS = {
    _NO_HOST: ("full", "capacity No valid host was found"),
    _NO_START: ("broken", "Failed to deploy instance: asked for with the fault server-fails"),
    _OLD_KUBELET: ("old", "runs kubelet v1.30.0 instead of v1.34.4"),
}
_GROUP = "capi.stackhpc.com/node-group"


class MachinesFail(Life):
    """Groups of one cluster, each with a fault; a tenant reads on each group what it is."""

    name = "machines"

    def __init__(self) -> None:
        super().__init__()
        self.flavor = f"crowded-{secrets.token_hex(3)}"

    @step
    def create(self) -> None:
        self.customer.create().complete("CREATE")

    @step
    def fail(self) -> None:
        """No host has room; none can start it; its kubelet is another; its version is too new."""
        provider.offer_flavor(self.flavor)
        release = self.cluster.release
        self.fault(_NO_HOST, True, f"^{self.flavor}$")
        self.fault(_NO_START, True, f"^{release}-broken-")
        self.fault(_OLD_KUBELET, True, f"^{release}-old-")
        self.customer.create_group("full", 1, flavor_id=self.flavor)
        self.customer.create_group("broken", 1)
        self.customer.create_group("old", 1)
        self.customer.create_group("newer", 0)

    @step
    def no_valid_host(self) -> None:
        """Nova's scheduler says it, and only Nova: Cluster API shows ERROR without a word."""
        said = "capacity: No valid host was found (server <machine>)"
        self._told("full", said)
        self.cluster.says(f"{said}; 0 of 1 full machine is ready")

    @step
    def server_in_error(self) -> None:
        """Nova has tried every host: the word of the last one, and the server."""
        why = "Failed to deploy instance: asked for with the fault server-fails"
        said = (
            f"internal: 3 hosts failed to start the server, the last one: {why} (server <machine>)"
        )
        self._told("broken", said)

    @step
    def wrong_kubelet(self) -> None:
        said = (
            "image: machine <machine> runs kubelet v1.30.0 instead of v1.34.4: the image does not "
            "match its property kube_version"
        )
        self._told("old", said)

    @step
    def newer(self) -> None:
        """Whoever may change objects there sets a group to more than the control plane has."""
        self.cluster.until(
            lambda rows: rows.groups["newer"]["status"] == "CREATE_COMPLETE", "newer", _EMPTY_AFTER
        )
        self._set_version("v1.35.0")
        self.cluster.intent = self.cluster.intent.with_groups(newer=1)
        self.customer.magnum.resize(self.cluster.uuid, 1, nodegroup="newer")
        said = (
            "request: <machine> creates no machines: its version is 1.35.0, and that of the "
            "control "
            "plane is 1.34.4 (KubernetesVersionSkew); nodegroup newer is not set to version 1.34.4 "
            "yet"
        )
        self.cluster.says(said, "newer")

    @step
    def heal(self) -> None:
        """One cause after the other goes, and ``why`` names the next; then all is well."""
        self._set_version("v1.34.4")
        for fault, (name, words) in _WORDS.items():
            self.explained(fault, words)
            self.fault(fault, False)
            self.customer.delete_group(name)
        self.cluster.complete()

    @ending
    def delete(self) -> None:
        self._end_faults()
        self.customer.delete()
        provider.withdraw_flavor(self.flavor)
        self.customer.leave()

    def _told(self, group: str, text: str) -> None:
        said = f"{text}; 0 of 1 {group} machine is ready"
        rows = self.cluster.says(said, group)
        assert rows.groups[group]["status"] == "CREATE_IN_PROGRESS", rows

    def _of(self, kind: str, group: str) -> list[Json]:
        found = management().objects(kind, self.customer.tenant.namespace)
        return [one for one in found if one["metadata"]["labels"].get(_GROUP) == group]

    def _set_version(self, version: str) -> None:
        (owner,) = self._of("MachineDeployment", "newer")
        change = {"spec": {"template": {"spec": {"version": version}}}}
        namespace, name = self.customer.tenant.namespace, owner["metadata"]["name"]
        management().patch("MachineDeployment", namespace, name, change)

    def _end_faults(self) -> None:
        for fault in _WORDS:
            self.fault(fault, False)


class TestMachinesFail(LifeCase, life=MachinesFail):
    """Three groups fail, one is too new; delete."""
