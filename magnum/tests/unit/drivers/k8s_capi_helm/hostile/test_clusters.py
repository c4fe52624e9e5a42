# SPDX-License-Identifier: Apache-2.0
"""Whole requests through Magnum's conductor: what its rows say, and what the release has."""

from __future__ import annotations

from hypothesis import strategies as st

from magnum import objects
from magnum.drivers.k8s_capi_helm import labels
from magnum.tests.unit.drivers.k8s_capi_helm import driver_case, hostile
from magnum.tests.unit.drivers.k8s_capi_helm.hostile.test_texts import HEALTH, STATUSES

#: Bytes of Magnum's column (MySQL's TEXT).
COLUMN = (1 << 16) - 1
#: What a database that keeps UTF-8 can be given; Magnum saves a cluster before the driver has it.
kept = hostile.spoiled.filter(
    lambda text: text.isascii() or text.encode("utf-8", "ignore").decode() == text
)


#: Labels that Magnum's conductor reads as numbers before it calls a driver.
MAGNUMS_NUMBERS = ("min_node_count", "max_node_count")


class TestClusters(driver_case.DriverCase):
    """A cluster with one hostile label, another one, and a hostile nodegroup."""

    @hostile.given(
        st.sampled_from([one.name for one in labels.REGISTRY]) | kept,
        kept,
        st.dictionaries(kept, kept, max_size=2),
        examples=0.25,
    )
    def test_a_cluster_and_a_nodegroup(self, name: str, text: str, marks: dict[str, str]) -> None:
        try:
            self.ask(name[:255], text)
            self.look()
            if self.cluster().stack_id:
                self.capi_converges()
                self.status_task(2)
                self.add_group("more", labels={name[:255]: text}, node_labels=marks)
                self.change_group(node_labels=marks)
                self.status_task()
                self.health_task()
                self.look()
        finally:
            self.forget()

    def ask(self, name: str, text: str) -> None:
        """Create a cluster with a label; what Magnum itself cannot read, the driver names later."""
        try:
            self.create(labels={name: text})
        except ValueError:
            self.assertIn(name, MAGNUMS_NUMBERS)
            self.status_task()
            cluster = self.cluster()
            self.assertEqual("CREATE_FAILED", cluster.status)
            self.assertIn(name, cluster.status_reason)

    def look(self) -> None:
        cluster = self.cluster()
        self.assertIn(cluster.health_status, {*HEALTH, None})
        for row in (cluster, *cluster.nodegroups):
            self.assertIn(row.status, STATUSES)
            reason = row.status_reason or ""
            self.assertLessEqual(len(reason.encode()), COLUMN)
            self.assertNotIn("Traceback", reason)
            self.assertNotIn(driver_case.SECRET_TEXT, reason)
        texts = cluster.health_status_reason or {}
        self.assertEqual([], [one for one in texts.values() if not isinstance(one, str)])
        self.assertNotIn(driver_case.SECRET_TEXT, f"{texts}{self.helm.runs[-1:]}")
        # Nothing for another release, and nothing outside of the project's namespace.
        self.assertLessEqual({release for _, release, _ in self.helm.runs}, {driver_case.RELEASE})
        spaces = {one["metadata"].get("namespace") for one in self.kube.everything()}
        self.assertLessEqual(spaces, {driver_case.NAMESPACE, None})

    def forget(self) -> None:
        for cluster in objects.Cluster.list(self.context):
            for row in cluster.nodegroups:
                row.destroy()
            cluster.destroy()
        self.helm.releases.clear()
        self.helm.runs.clear()
        self.kube.restore()
        self.cloud.credentials.clear()
