# SPDX-License-Identifier: Apache-2.0
"""What is chosen for tenants: API servers, and who installs addons from which charts."""

import os
from pathlib import Path
import sys
import tarfile
import tempfile
from unittest import mock

import yaml

from sandbox import management, processes
from sandbox.management import addon_provider, binaries, chart_repository, controllers, tenant_api
from sandbox.management.pki import Pki
from sandbox.state import SandboxError
from sandbox.tests.test_state import StateCase


class TestApi(StateCase):
    def test_it_is_in_memory_unless_it_is_chosen(self) -> None:
        box = self.sandbox()
        self.assertEqual(tenant_api.MEMORY, tenant_api.chosen(box))
        self.assertEqual([], tenant_api.arguments(box, Path("/nowhere")))

    def test_a_choice_is_remembered(self) -> None:
        box = self.sandbox()
        management.choose_tenants(box, tenant_api.REAL, None)
        management.choose_tenants(box, None, None)
        self.assertEqual(tenant_api.REAL, tenant_api.chosen(box))

    def test_clusters_that_run_keep_theirs(self) -> None:
        box = self.sandbox()
        processes.record(box, controllers.MACHINES, os.getpid())
        with self.assertRaisesRegex(
            SandboxError, "run with --tenant-api memory; .* reset --tenant"
        ):
            tenant_api.choose(box, tenant_api.REAL)
        self.assertEqual(tenant_api.MEMORY, tenant_api.chosen(box))


class TestAddonProvider(StateCase):
    def given(self, checkout: str, python: str) -> None:
        values = {
            addon_provider.CHECKOUT.variable: checkout,
            addon_provider.CHECKOUT.python_variable: python,
        }
        given = mock.patch.dict(os.environ, values)
        given.start()
        self.addCleanup(given.stop)

    def checkout(self) -> str:
        path = self.place / "checkout" / "capi_addons"
        path.mkdir(parents=True)
        (path / "operator.py").touch()
        return str(path.parent)

    def test_it_is_simulated_unless_it_is_chosen(self) -> None:
        self.assertEqual(addon_provider.SIMULATED, addon_provider.chosen(self.sandbox()))

    def test_the_real_one_needs_a_checkout(self) -> None:
        self.given("", sys.executable)
        with self.assertRaisesRegex(SandboxError, r"\$ADDON_PROVIDER names no checkout"):
            addon_provider.choose(self.sandbox(), addon_provider.REAL)

    def test_the_real_one_needs_a_python(self) -> None:
        self.given(self.checkout(), "/no/python")
        with self.assertRaisesRegex(SandboxError, "'/no/python': .* tox -e addon-provider"):
            addon_provider.choose(self.sandbox(), addon_provider.REAL)

    def test_the_real_one_needs_real_api_servers(self) -> None:
        self.given(self.checkout(), sys.executable)
        with self.assertRaisesRegex(SandboxError, "add --tenant-api real"):
            addon_provider.choose(self.sandbox(), addon_provider.REAL)

    def test_it_is_the_service_account_of_its_chart(self) -> None:
        """The name of a user fits into a certificate."""
        state = self.sandbox()
        Pki(state).ensure()
        account = {"kind": "ServiceAccount", "metadata": {"name": addon_provider.CHECKOUT.release}}
        path = addon_provider.CHECKOUT.write_kubeconfig(state, [account])
        (user,) = yaml.safe_load(path.read_text())["users"]
        self.assertIn("client-certificate", user["user"])

    def test_a_management_cluster_keeps_the_one_whose_crds_it_has(self) -> None:
        self.given(self.checkout(), sys.executable)
        box = self.sandbox()
        box.path("management", "etcd").mkdir()
        with self.assertRaisesRegex(SandboxError, "reset --addon-provider real"):
            management.choose_tenants(box, tenant_api.REAL, addon_provider.REAL)

    def test_with_all_of_it_the_real_one_is_chosen(self) -> None:
        self.given(self.checkout(), sys.executable)
        box = self.sandbox()
        management.choose_tenants(box, tenant_api.REAL, addon_provider.REAL)
        self.assertEqual(addon_provider.REAL, addon_provider.chosen(box))


class TestCharts(StateCase):
    def test_every_chart_of_an_addon_is_named_once(self) -> None:
        found = [(one["name"], one["version"]) for one in chart_repository.charts()]
        self.assertEqual(sorted(set(found)), sorted(found))
        self.assertIn("tigera-operator", dict(found))

    def test_the_overlay_names_the_repository_for_each(self) -> None:
        box = self.sandbox()
        text = yaml.safe_dump(chart_repository.overlay(box))
        count = text.count(f"repo: {chart_repository.url(box)}\n")
        self.assertEqual(len(chart_repository.charts()), count)

    def test_helm_packs_them(self) -> None:
        if not binaries.built():
            self.skipTest("the programs are not built; `python -m sandbox build` does it")
        folder = Path(tempfile.mkdtemp(dir=self.place)) / "charts"
        chart_repository.write(folder, str(binaries.one(binaries.HELM)))
        index = yaml.safe_load((folder / "index.yaml").read_text())
        self.assertEqual({one["name"] for one in chart_repository.charts()}, set(index["entries"]))
        (entry,) = index["entries"]["tigera-operator"]
        with tarfile.open(folder / entry["urls"][0]) as packed:
            names = packed.getnames()
        self.assertIn("tigera-operator/templates/workload-0.yaml", names)
        self.assertIn("tigera-operator/crds/globalnetworkpolicies.yaml", names)
