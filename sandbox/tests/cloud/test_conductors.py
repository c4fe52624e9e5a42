# SPDX-License-Identifier: Apache-2.0
"""Helm's runs are counted; only conductors are killed."""

import collections
import os

from sandbox import processes
from sandbox.cloud import conductors
from sandbox.cloud.conductor_layout import Layout
from sandbox.state import SandboxError
from sandbox.tests.test_state import StateCase

LOG = """\
2026-11-22 09:28:58 4632 INFO magnum.cmd.conductor [-] Starting server in PID 4632
2026-11-22 09:28:59 4634 DEBUG magnum.drivers.k8s_capi_helm.helm.cli [None req-1 - - -] \
helm upgrade one /charts/one --namespace here
2026-11-22 09:28:59 4634 DEBUG magnum.drivers.k8s_capi_helm.helm.cli [-] \
helm upgrade two /charts/one --namespace there
2026-11-22 09:29:01 4634 DEBUG magnum.drivers.k8s_capi_helm.helm.cli [None req-1 - - -] \
helm template one /charts/one
helm upgrade one
"""


class TestConductors(StateCase):
    def setUp(self) -> None:
        super().setUp()
        self.box = self.sandbox()

    def test_runs_of_helm_are_counted_of_all_conductors(self) -> None:
        layout = Layout("rabbit", conductors=2)
        layout.record(self.box)
        for name in layout.names:
            self.box.log(name).write_text(LOG)
        runs = conductors.helm_runs(self.box, "one")
        self.assertEqual(collections.Counter(upgrade=2, template=2), runs)

    def test_who_answers_tenants_is_known(self) -> None:
        Layout("rabbit").record(self.box)
        text = (
            f"2026-11-22 09:30:40.242 47 WARNING a.b [None req-1-2 {'7a' * 16} {'39' * 16} - -] c\n"
            "2026-11-22 09:30:41.242 48 WARNING a.b [None req-3-4 - - - - - -] periodic\n"
        )
        self.box.log("magnum-conductor-1").write_text(text)
        self.assertEqual({47}, conductors.answering(self.box))

    def test_beside_the_api_nothing_is_counted(self) -> None:
        self.assertFalse(conductors.helm_runs(self.box, "one"))

    def test_only_a_conductor_is_killed(self) -> None:
        Layout("rabbit", conductors=2).record(self.box)
        processes.record(self.box, "nova", os.getpid())
        for name in ("nova", "magnum-conductor-1", "magnum-conductor-3"):
            with self.assertRaisesRegex(SandboxError, f"no conductor {name} runs"):
                conductors.kill(self.box, name)
