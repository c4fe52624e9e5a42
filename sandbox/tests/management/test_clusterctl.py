# SPDX-License-Identifier: Apache-2.0
"""What clusterctl is given: programs, names of providers, and the files of its repository."""

import json
from pathlib import Path
import shutil
import tempfile
import unittest
from unittest import mock

import yaml

from sandbox.management import backup, binaries, clusterctl, gomodules
from sandbox.management.leader_leases import LEASES
from sandbox.management.pki import Pki
from sandbox.management.releases import choose, Providers
from sandbox.state import State

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.org"},
    "spec": {"versions": [{"name": "v1"}, {"name": "v2"}]},
}


class TestProviders(unittest.TestCase):
    def test_names_are_those_of_clusterctls_inventory(self) -> None:
        found = {one.label: one.namespace for one in clusterctl.components(Providers())}
        wanted = {
            "cluster-api": "capi-system",
            "bootstrap-kubeadm": "capi-kubeadm-bootstrap-system",
            "control-plane-kubeadm": "capi-kubeadm-control-plane-system",
            "infrastructure-openstack": "capo-system",
        }
        self.assertEqual(wanted, found)
        self.assertEqual(set(clusterctl.PROVIDERS), set(LEASES))

    def test_options_name_provider_and_version(self) -> None:
        providers = Providers()
        core, *_, openstack = clusterctl.components(providers)
        self.assertEqual(f"--core=cluster-api:v{providers.capi.version}", core.choice)
        wanted = f"--infrastructure=capo-system/openstack:v{providers.capo.version}"
        self.assertEqual(wanted, openstack.upgrade)

    def test_clusterctl_is_built_in_the_pinned_module_of_its_release(self) -> None:
        program = clusterctl.program()
        self.assertEqual(Providers.capi, program.release)
        self.assertTrue(Providers.capi.pins())

    def test_etcds_tools_are_of_the_release_of_etcd(self) -> None:
        (etcd,) = (one for one in binaries.programs(Providers()) if one.name == "etcd")
        pinned = (gomodules.GO / "etcdtools" / "go.mod").read_text()
        for program in (backup.ETCDCTL, backup.ETCDUTL):
            self.assertEqual(etcd.version, program.version)
            self.assertIn(f"{program.package} v{etcd.version}", pinned)


class TestRepository(unittest.TestCase):
    def setUp(self) -> None:
        self.place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place)
        self.state = State(self.place / "state")
        Pki(self.state).ensure()
        built = self.place / "built"
        built.mkdir()
        entries = [{"manager": name, "document": CRD} for name in clusterctl.PROVIDERS]
        (built / binaries.MANIFESTS).write_text(json.dumps(entries))
        (built / "metadata.yaml").write_text("kind: Metadata\n")
        for module, name in ((binaries, "build"), (Providers.capi.__class__, "directory")):
            self.enterContext(mock.patch.object(module, name, return_value=built))

    def test_every_provider_has_its_files_where_its_url_says(self) -> None:
        configuration = yaml.safe_load(
            clusterctl.repository(self.state, Providers()).read_text(encoding="utf-8")
        )
        self.assertEqual("true", configuration["cert-manager"]["externallyProvisioned"])
        self.assertEqual(len(clusterctl.PROVIDERS), len(configuration["providers"]))
        for entry in configuration["providers"]:
            path = Path(entry["url"].removeprefix("file://"))
            self.assertTrue((path.parent / "metadata.yaml").exists(), path)
            self.assertTrue(path.exists(), path)

    def test_components_are_for_this_sandbox_and_run_no_pod(self) -> None:
        configuration = clusterctl.repository(self.state, Providers())
        version = f"v{Providers.capo.version}"
        path = configuration.parent / "infrastructure-openstack" / version
        text = (path / "infrastructure-components.yaml").read_text(encoding="utf-8")
        namespace, crd, deployment = yaml.safe_load_all(text)
        self.assertEqual("capo-system", namespace["metadata"]["name"])
        webhook = crd["spec"]["conversion"]["webhook"]["clientConfig"]["url"]
        port = self.state.port("capo-webhook")
        self.assertEqual(f"https://127.0.0.1:{port}/convert", webhook)
        self.assertEqual(0, deployment["spec"]["replicas"])

    def test_what_a_sandbox_has_is_there_beside_what_it_is_to_have(self) -> None:
        choose(self.state, "1.11.3", "0.12.1").record(self.state)
        root = clusterctl.repository(self.state, Providers()).parent / "cluster-api"
        wanted = {"v1.11.3", f"v{Providers.capi.version}"}
        self.assertEqual(wanted, {path.name for path in root.iterdir()})
