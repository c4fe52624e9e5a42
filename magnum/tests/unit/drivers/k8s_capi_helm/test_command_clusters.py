# SPDX-License-Identifier: Apache-2.0
"""Which cluster a command is about, where there are several."""

from __future__ import annotations

from typing import Any

from oslo_utils import uuidutils

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import find_cluster, own_clusters
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import CommandCase
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import RELEASE


class TestFind(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.made()
        self.others = [
            self.another("other", "p1", "other-aaaaaaaaaaaa"),
            self.another("twin", "p1", "twin-aaaaaaaaaaaa"),
            self.another("twin", "p2", "twin-bbbbbbbbbbbb"),
        ]

    def another(self, name: str, project: str, release: str) -> Any:
        cluster = objects.Cluster(
            self.context,
            uuid=uuidutils.generate_uuid(),
            name=name,
            project_id=project,
            user_id="u1",
            stack_id=release,
            status="CREATE_COMPLETE",
            cluster_template_id=self.template.uuid,
        )
        cluster.create()
        return cluster

    def test_by_uuid_release_and_name(self) -> None:
        for text, uuid in (
            (self.cluster_of("demo").uuid, self.cluster_of("demo").uuid),
            (RELEASE, self.cluster_of("demo").uuid),
            ("demo", self.cluster_of("demo").uuid),
            (self.others[0].uuid, self.others[0].uuid),
            ("other", self.others[0].uuid),
            ("twin-bbbbbbbbbbbb", self.others[2].uuid),
            (self.others[1].uuid, self.others[1].uuid),
        ):
            with self.subTest(text):
                self.assertEqual(uuid, find_cluster(text).uuid)

    def cluster_of(self, name: str) -> Any:
        [found] = [one for one in objects.Cluster.list(self.context) if one.name == name]
        return found

    def test_a_uuid_that_is_none_stands_for_no_other(self) -> None:
        for cluster in self.others:
            cluster.destroy()
        for text in (uuidutils.generate_uuid(), "nothing", "demo-xyz"):
            error = self.assertRaises(errors.InvalidRequest, find_cluster, text)
            self.assertIn(f"'{text}' is no UUID, no name and no release", str(error))

    def test_a_name_of_two(self) -> None:
        error = self.assertRaises(errors.InvalidRequest, find_cluster, "twin")
        for cluster in self.others[1:]:
            self.assertIn(f"{cluster.uuid} (project {cluster.project_id})", str(error))

    def test_those_of_a_project(self) -> None:
        self.assertEqual(["twin"], [one.name for one in own_clusters("p2")])
        self.assertEqual(["demo", "other", "twin", "twin"], [one.name for one in own_clusters()])
