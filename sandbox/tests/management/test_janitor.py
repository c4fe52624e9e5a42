# SPDX-License-Identifier: Apache-2.0
"""What the real janitor is started with: as whom, and with what of its own chart."""

import os
from pathlib import Path
import shutil
import sys
import tempfile
from typing import Any
import unittest
from unittest import mock

from cryptography import x509
from cryptography.x509.oid import NameOID
import yaml

from sandbox.management import janitor, server
from sandbox.management.pki import Pki
from sandbox.state import SandboxError, State

_OBJECTS: list[dict[str, Any]] = [
    {"kind": "ServiceAccount", "metadata": {"name": janitor.CHECKOUT.release}},
    {
        "kind": "Deployment",
        "metadata": {"name": janitor.CHECKOUT.release},
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {
                            "env": [
                                {"name": "CAPI_JANITOR_DEFAULT_VOLUMES_POLICY", "value": "delete"},
                                {"name": "DELAY", "value": 60},
                            ]
                        }
                    ]
                }
            }
        },
    },
]


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        self.state = State(self.root / "state")
        self.source = self.root / "source"
        (self.source / "chart").mkdir(parents=True)

    def given(self, **variables: str) -> None:
        """The environment of who starts it."""
        other = {name: text for name, text in os.environ.items() if name not in variables}
        patch = mock.patch.dict(os.environ, {**other, **variables}, clear=True)
        patch.start()
        self.addCleanup(patch.stop)


class TestCheckout(Case):
    def test_without_one_the_variable_is_named(self) -> None:
        self.given(JANITOR="")
        with self.assertRaisesRegex(SandboxError, r"\$JANITOR names no checkout"):
            janitor.CHECKOUT.source()

    def test_another_directory_is_refused(self) -> None:
        self.given(JANITOR=str(self.source))
        with self.assertRaisesRegex(SandboxError, f"is {self.source}, which is no checkout"):
            janitor.CHECKOUT.source()

    def test_one_with_its_chart_is_taken(self) -> None:
        (self.source / "chart" / "Chart.yaml").write_text("name: x\n")
        self.given(JANITOR=str(self.source))
        self.assertEqual(self.source.resolve(), janitor.CHECKOUT.source())


class TestProcess(Case):
    def test_it_has_the_environment_of_its_deployment(self) -> None:
        self.assertEqual(
            {"CAPI_JANITOR_DEFAULT_VOLUMES_POLICY": "delete", "DELAY": "60"},
            janitor.environment(_OBJECTS),
        )

    def test_it_runs_in_the_python_with_its_requirements_on_loopback(self) -> None:
        self.given(K8S_CAPI_HELM_JANITOR_PYTHON=sys.executable)
        argv = janitor.command(self.state, self.source)
        self.assertEqual([sys.executable, "-m", "kopf", "run"], argv[:4])
        port = self.state.ports()["janitor-health"]
        self.assertEqual(f"--liveness=http://127.0.0.1:{port}/healthz", argv[-1])

    def test_without_that_python_it_is_said_how_to_get_one(self) -> None:
        self.given(K8S_CAPI_HELM_JANITOR_PYTHON="")
        with self.assertRaisesRegex(SandboxError, "tox -e janitor creates one"):
            janitor.command(self.state, self.source)

    def test_the_one_in_go_may_list_secrets(self) -> None:
        """Its cache does, and its own chart grants only to read and to delete single ones."""
        self.assertEqual([], janitor.granted(self.source))
        (self.source / "go.mod").write_text("module x\n")
        role, binding = janitor.granted(self.source)
        self.assertEqual(
            [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]}],
            role["rules"],
        )
        self.assertEqual(role["metadata"]["name"], binding["roleRef"]["name"])
        (subject,) = binding["subjects"]
        account = (subject["namespace"], subject["name"])
        self.assertEqual((janitor.CHECKOUT.namespace, janitor.CHECKOUT.release), account)

    def test_it_is_the_service_account_of_its_chart(self) -> None:
        """To the API server, which believes the authority of its certificate."""
        pki = Pki(self.state)
        pki.ensure()
        path = janitor.CHECKOUT.write_kubeconfig(self.state, _OBJECTS)
        (user,) = yaml.safe_load(path.read_text())["users"]
        pem = Path(user["user"]["client-certificate"]).read_bytes()
        certificate = x509.load_pem_x509_certificate(pem)
        (name,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        self.assertEqual(f"system:serviceaccount:janitor:{janitor.CHECKOUT.release}", name.value)
        certificate.verify_directly_issued_by(
            x509.load_pem_x509_certificate(pki.client_authority.read_bytes())
        )
        place = self.root / "bin"
        place.mkdir()
        (place / "kube-apiserver").write_text("")
        (place / "kube-apiserver").chmod(0o755)
        argv = server.apiserver(self.state, place)
        self.assertIn(f"--client-ca-file={pki.client_authority}", argv)
