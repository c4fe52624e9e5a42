# SPDX-License-Identifier: Apache-2.0
"""The objects of a core addon can be scheduled where the addon's own can."""

import unittest

from sandbox.addons import tenant_install
from sandbox.tests.addons import builders

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


class TestPods(unittest.TestCase):
    def test_a_deployment_is_not_scheduled_onto_a_node_that_is_being_drained(self) -> None:
        """Its drain would not end: the next pod is there when the last one is gone.

        https://github.com/cilium/cilium/issues/28549
        """
        for chart in tenant_install.CHARTS:
            addon = builders.addon(chart={"repo": "", "name": chart, "version": "1.0.0"})
            for found in tenant_install.documents(addon, {}):
                pods = found["spec"]["template"]["spec"]
                keys = [one.get("key") for one in pods["tolerations"]]
                with self.subTest(chart=chart, name=found["metadata"]["name"]):
                    if found["kind"] == "Deployment":
                        self.assertEqual({tenant_install.CONTROL_PLANE: ""}, pods["nodeSelector"])
                        self.assertIn(tenant_install.CONTROL_PLANE, keys)
                        self.assertFalse({UNSCHEDULABLE, None} & {*keys})
                    else:
                        self.assertEqual([{"operator": "Exists"}], pods["tolerations"])
