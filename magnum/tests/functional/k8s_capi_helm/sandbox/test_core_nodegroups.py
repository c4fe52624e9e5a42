# SPDX-License-Identifier: Apache-2.0
"""Nodegroups: three created at once, three deleted at once, one that fails alone."""

from __future__ import annotations

from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step

_GROUPS = ("red", "green", "blue")


class NodeGroups(Life):
    """A cluster that groups come to and go from while others stay."""

    name = "groups"

    @step
    def create(self) -> None:
        self.customer.create().complete("CREATE")

    @step
    def create_three_at_once(self) -> None:
        """Every one of them succeeds, and no machine of the others is replaced."""
        before = set(self.customer.tenant.servers())
        for name in _GROUPS:
            self.customer.create_group(name, 1, flavor_id="m1.small")
        self.cluster.complete()
        after = set(self.customer.tenant.servers())
        assert before < after, "a machine that was there was replaced"
        self.cluster.check_release()

    @step
    def fail_alone(self) -> None:
        """What cannot be fails with a sentence; cluster and other groups go on."""
        cluster = self.cluster
        labels = {"boot_volume_size": "huge"}
        self.customer.magnum.create_group(cluster.uuid, "huge", 1, labels=labels)
        cluster.failed.add("huge")
        rows = cluster.complete()
        assert rows.groups["huge"]["status"] == "CREATE_FAILED", rows
        group = self.customer.magnum.group(cluster.uuid, "huge")
        assert "boot_volume_size" in group["status_reason"], group["status_reason"]
        values = cluster.check_release()
        assert "huge" not in [one["name"] for one in values["nodeGroups"]]

    @step
    def delete_three_at_once(self) -> None:
        """Their rows go when their machines have gone; the failed group's row goes as well."""
        before = set(self.customer.tenant.servers())
        for name in ("huge", *_GROUPS):
            self.customer.delete_group(name)
        self.cluster.complete()
        after = set(self.customer.tenant.servers())
        assert after < before, "a machine that was to stay was replaced"
        self.cluster.check_release()

    @ending
    def delete(self) -> None:
        self.customer.delete()

    @ending
    def leave(self) -> None:
        self.customer.leave()


class TestNodeGroups(LifeCase, life=NodeGroups):
    """create, three groups at once, one that fails alone, all away at once, delete, leave."""
