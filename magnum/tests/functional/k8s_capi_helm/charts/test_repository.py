# SPDX-License-Identifier: Apache-2.0
"""Charts from a repository that wants a login, fetched by both generations of the real Helm."""

from __future__ import annotations

import base64
from http import HTTPStatus
import http.server
import os
from pathlib import Path
import shutil
import tempfile
import threading
from typing import Any
import unittest
from unittest import mock

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import HelmClient
from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube

_USER, _PASSWORD = "the reader", "p@ss:word/"
#: As it stands in a URL.
_LOGIN = "the%20reader:p%40ss%3Aword%2F@"
_CHART, _VERSION = "small", "1.2.3"


class _Open(http.server.SimpleHTTPRequestHandler):
    """Files for all."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""


class _Closed(_Open):
    """Files for who has the password."""

    def do_GET(self) -> None:
        given = self.headers.get("Authorization", "")
        if given != f"Basic {base64.b64encode(f'{_USER}:{_PASSWORD}'.encode()).decode()}":
            self.send_error(HTTPStatus.UNAUTHORIZED)
            return
        super().do_GET()


class TestRepository(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.served, self.unpacked = self.directory / "served", self.directory / "unpacked"
        self.unpacked.mkdir()
        chart = self.directory / _CHART
        chart.mkdir()
        (chart / "Chart.yaml").write_text(
            f"apiVersion: v2\nname: {_CHART}\nversion: {_VERSION}\n", encoding="utf-8"
        )
        rendering.run("package", chart, "--destination", self.served)
        rendering.run("repo", "index", self.served)
        self.place = self.serve(_Closed)

    def serve(self, handler: type[http.server.SimpleHTTPRequestHandler]) -> str:
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), lambda *args: handler(*args, directory=str(self.served))
        )
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"127.0.0.1:{server.server_port}"

    def pull(self, program: str, login: str) -> Path:
        """Fetch the chart with a helm that writes its arguments down."""
        helm = self.directory / "helm"
        helm.write_text(f'#!/bin/sh\necho "$@" >> {self.directory}/argv\nexec {program} "$@"\n')
        helm.chmod(0o755)
        client = HelmClient(FakeKube(), executable=str(helm), timeout=30)
        return client.pull(
            _CHART,
            repository=f"http://{login}{self.place}",
            version=_VERSION,
            into=self.unpacked,
        )

    def test_the_password_is_sent_and_nobody_can_read_it(self) -> None:
        for program in (rendering.helm(), rendering.helm4()):
            with self.subTest(helm=program):
                found = self.pull(program, _LOGIN)
                self.assertTrue((found / _CHART / "Chart.yaml").is_file())
                arguments = (self.directory / "argv").read_text()
                self.assertIn(f"repo add own http://{self.place}", arguments)
                self.assertNotIn("p@ss", arguments)
                self.assertNotIn("p%40ss", arguments)
                self.assertEqual([], list(self.directory.rglob("repositories.yaml")))

    def test_a_home_that_cannot_be_written_is_not_needed(self) -> None:
        """As in a container with a read-only root, where helm calls the repository invalid."""
        self.place = self.serve(_Open)
        with mock.patch.dict(os.environ, HOME="/proc/nowhere"):
            os.environ.pop("HELM_CACHE_HOME", None)
            os.environ.pop("XDG_CACHE_HOME", None)
            for program in (rendering.helm(), rendering.helm4()):
                with self.subTest(helm=program):
                    found = self.pull(program, "")
                    self.assertTrue((found / _CHART / "Chart.yaml").is_file())
                    # Nothing of what helm has cached is left but the chart.
                    self.assertEqual([found], list(self.unpacked.iterdir()))
                    shutil.rmtree(found)

    def test_a_wrong_one_is_said_without_telling_it(self) -> None:
        for program in (rendering.helm(), rendering.helm4()):
            with self.subTest(helm=program):
                with self.assertRaises(errors.ChartNotFound) as caught:
                    self.pull(program, "reader:wrong-one@")
                self.assertIn("401", caught.exception.detail)
                self.assertNotIn("wrong-one", f"{caught.exception} {caught.exception.detail}")
