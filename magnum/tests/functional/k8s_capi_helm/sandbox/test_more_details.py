# SPDX-License-Identifier: Apache-2.0
"""What a running cluster is asked for besides its size: details of groups, new authorities."""

from __future__ import annotations

from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Refused
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management

_WORKERS = "default-worker"
#: Cluster API itself keeps labels of this domain on Nodes.
_LABEL = {"node.cluster.x-k8s.io/pool": "first"}


class Details(Life):
    """A cluster whose machines stay while it is asked for this and that."""

    name = "details"

    @step
    def create(self) -> None:
        """Each group of machines has a server group of its own, and its machines are in it."""
        self.customer.create(workers=2).complete("CREATE")
        members = self._server_groups()
        release = self.cluster.release
        assert set(members) == {f"{release}.default-master", f"{release}.{_WORKERS}"}, members
        assert set().union(*members.values()) == set(self.customer.tenant.servers()), members

    @step
    def bound(self) -> None:
        """New bounds of a group change no machine."""
        before = set(self.customer.tenant.servers())
        self.customer.magnum.update_group(self.cluster.uuid, _WORKERS, max_node_count=5)
        self.cluster.complete()
        assert before == set(self.customer.tenant.servers())
        group = self.customer.magnum.group(self.cluster.uuid, _WORKERS)
        assert group["max_node_count"] == 5, group

    @step
    def rotate_authorities(self) -> None:
        """Refused in a sentence; the authority stays, and what it signs lets a tenant in."""
        before = self.customer.magnum.authority(self.cluster.uuid)
        try:
            self.customer.magnum.rotate_authorities(self.cluster.uuid)
        except Refused as refusal:
            assert "cannot be rotated" in str(refusal), refusal
        else:
            raise AssertionError("The authorities were rotated.")
        assert before == self.customer.magnum.authority(self.cluster.uuid)
        assert len(self.cluster.new_workload().nodes()) == 3

    @step
    def group_of_its_own(self) -> None:
        """A nodegroup with role, labels, availability zone and server group of its own."""
        self.customer.create_group(
            "own",
            1,
            flavor_id="m1.small",
            role="ingress",
            node_labels=_LABEL,
            labels={"availability_zone": "zone-2", "server_group_policies": "anti-affinity"},
        )
        self.cluster.complete()
        (node,) = (
            one
            for one in self.cluster.workload().nodes()
            if "node-role.kubernetes.io/ingress" in one["metadata"]["labels"]
        )
        assert _LABEL.items() <= node["metadata"]["labels"].items(), node["metadata"]
        (machine,) = (
            one
            for one in management().objects("Machine", self.customer.tenant.namespace)
            if one["status"].get("nodeRef", {}).get("name") == node["metadata"]["name"]
        )
        assert machine["spec"]["failureDomain"] == "zone-2", machine["spec"]

    @step
    def drop_it(self) -> None:
        """Its server group goes with it."""
        self.customer.delete_group("own")
        self.cluster.complete()
        assert f"{self.cluster.release}.own" not in self._server_groups()

    @ending
    def delete(self) -> None:
        self.customer.delete()
        self.customer.leave()

    def _server_groups(self) -> dict[str, set[str]]:
        """Members of the project's server groups by name."""
        found = self.customer.tenant.connection.compute.server_groups()
        return {one.name: set(one.member_ids) for one in found}


class TestDetails(LifeCase, life=Details):
    """Create, new bounds, try to rotate the authorities, a group of its own, delete."""
