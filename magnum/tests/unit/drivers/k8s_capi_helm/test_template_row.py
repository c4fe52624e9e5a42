# SPDX-License-Identifier: Apache-2.0
"""The template of a cluster is the same, however it is loaded."""

from __future__ import annotations

from typing import Any

from magnum import objects
from magnum.common import context as magnum_context
from magnum.common import exception
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import template_row
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase


class TemplateRowTest(DriverCase):
    def setUp(self) -> None:
        super().setUp()
        self.create()
        self.admin = magnum_context.make_admin_context(all_tenants=True)
        self.statements = self.selects()

    def listed(self, context: Any) -> Any:
        """The cluster as a periodic task lists it."""
        [cluster] = objects.Cluster.list(context)
        self.statements.clear()
        return cluster

    def test_it_is_the_one_that_magnum_loads(self) -> None:
        loaded = template_row.load_template(self.listed(self.admin))
        by_magnum = self.listed(self.admin).cluster_template
        self.assertEqual(by_magnum.as_dict(), loaded.as_dict())
        self.assertEqual(set(), loaded.obj_what_changed())

    def test_a_periodic_task_asks_for_the_row_alone_and_once(self) -> None:
        cluster = self.listed(self.admin)
        loaded = template_row.load_template(cluster)
        self.assertIs(loaded, template_row.load_template(cluster))
        self.assertIs(loaded, cluster.cluster_template)
        [statement] = self.statements
        self.assertNotIn("UNION", statement)

    def test_the_cluster_has_no_change_to_save(self) -> None:
        cluster = self.listed(self.admin)
        template_row.load_template(cluster)
        self.assertEqual(set(), cluster.obj_what_changed())

    def test_a_tenant_reads_as_magnum_does(self) -> None:
        cluster = self.listed(self.context)
        self.context.is_admin = self.context.all_tenants = False
        template_row.load_template(cluster)
        [statement] = self.statements
        self.assertIn("UNION", statement)

    def test_a_template_that_is_gone_is_not_found(self) -> None:
        cluster = self.listed(self.admin)
        cluster.cluster_template_id = "gone"
        self.assertRaises(exception.ClusterTemplateNotFound, template_row.load_template, cluster)

    def test_a_template_that_is_loaded_is_kept(self) -> None:
        cluster = self.listed(self.admin)
        loaded = cluster.cluster_template
        self.statements.clear()
        self.assertIs(loaded, template_row.load_template(cluster))
        self.assertEqual([], self.statements)
