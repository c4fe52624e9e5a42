# SPDX-License-Identifier: Apache-2.0
"""The real Prometheus reads the driver's port, loads the rules, and answers the dashboard."""

from __future__ import annotations

import json
from pathlib import Path
import subprocess
import sys
import tempfile
import threading
from typing import Any
import unittest
import urllib.parse
import urllib.request

import yaml

from magnum.tests.functional.k8s_capi_helm.metrics import exposed_process, test_alerts
from magnum.tests.unit.drivers.k8s_capi_helm import test_metrics_documents, test_metrics_exposition
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one
from sandbox import processes
from sandbox.management import binaries, prometheus
from sandbox.state import State

_ADDRESS = "127.0.0.1"
#: Looks, and seconds between two.
_LOOKS, _PAUSE = 600, 0.1
#: What Grafana puts in the place of its own variable.
_INTERVAL = {"$__rate_interval": "1m"}


class TestPrometheus(unittest.TestCase):
    port: int

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        place = tempfile.TemporaryDirectory(prefix="prometheus-")
        cls.addClassCleanup(place.cleanup)
        first = test_metrics_exposition.free_port()
        cls._expose(first)
        cls.port = first + 4
        state = cls.enterClassContext(processes.throw_away(Path(place.name) / "state"))
        cls._serve(state, Path(place.name), first)

    @classmethod
    def _expose(cls, port: int) -> None:
        """A process with the driver's metrics."""
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", exposed_process.__name__, str(port)],
            stdin=subprocess.PIPE,
        )
        cls.addClassCleanup(process.wait)
        assert process.stdin is not None
        cls.addClassCleanup(process.stdin.close)

    @classmethod
    def _serve(cls, state: State, place: Path, target: int) -> None:
        """Prometheus, which reads that port."""
        targets = [{"targets": [f"{_ADDRESS}:{target}"]}]
        configuration = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(test_alerts.RULES)],
            "scrape_configs": [{"job_name": "magnum-conductor", "static_configs": targets}],
        }
        file = place / "prometheus.yml"
        file.write_text(yaml.safe_dump(configuration))
        processes.start(
            state,
            "prometheus",
            [
                str(binaries.one(prometheus.PROMETHEUS)),
                f"--config.file={file}",
                f"--storage.tsdb.path={place / 'data'}",
                f"--web.listen-address={_ADDRESS}:{cls.port}",
            ],
            ready=cls._is_ready,
        )

    @classmethod
    def _is_ready(cls) -> bool:
        try:
            with urllib.request.urlopen(f"http://{_ADDRESS}:{cls.port}/-/ready", timeout=5):
                return True
        except OSError:
            return False

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer."""
        url = f"http://{_ADDRESS}:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=30) as response:
            answer = json.load(response)
        self.assertEqual("success", answer["status"], path)
        return answer["data"]

    def eventually(self, path: str, holds: Any) -> Any:
        """The answer as soon as something holds of it."""
        waited = threading.Event()
        for _ in range(_LOOKS):
            found = self.ask(path)
            if holds(found):
                return found
            waited.wait(_PAUSE)
        raise AssertionError(f"{path}: {json.dumps(found)[:2000]}")

    def rules(self) -> list[dict[str, Any]]:
        """The rules, once each of them has been evaluated."""

        def are_known(found: Any) -> bool:
            (group,) = found["groups"]
            return all(rule["health"] != "unknown" for rule in group["rules"])

        (group,) = self.eventually("rules", are_known)["groups"]
        return list(group["rules"])

    def test_the_target_is_up(self) -> None:
        found = self.eventually(
            "targets", lambda data: data["activeTargets"][0]["health"] != "unknown"
        )
        (target,) = found["activeTargets"]
        self.assertEqual(("up", ""), (target["health"], target["lastError"]))

    def test_every_rule_is_healthy(self) -> None:
        rules = at_least_one(self.rules())
        self.assertEqual(test_alerts.alerts(), [rule["name"] for rule in rules])
        for rule in rules:
            self.assertEqual("ok", rule["health"], rule)
        sys.stderr.write(f"prometheus {prometheus.VERSION}: {len(rules)} rules are healthy\n")

    def test_what_is_wrong_in_the_process_is_pending(self) -> None:
        """The breaker of the process is open; Keystone refuses a credential; a request failed."""

        def states(found: Any) -> dict[str, str]:
            (group,) = found["groups"]
            return {rule["name"]: rule["state"] for rule in group["rules"]}

        wanted = {
            "CapiHelmManagementUnreachable": "pending",
            "CapiHelmCredentialProblems": "pending",
            "CapiHelmClusterCertificateExpires": "pending",
            "CapiHelmRequestErrors": "firing",
            "CapiHelmWatchStale": "inactive",
            "CapiHelmManagementCertificateExpires": "inactive",
        }
        found = self.eventually("rules", lambda data: wanted.items() <= states(data).items())
        self.assertLessEqual(wanted.items(), states(found).items())

    def test_every_series_of_rules_and_dashboard_is_there(self) -> None:
        used = {
            name
            for text in self.expressions()
            for name in test_metrics_documents.NAME.findall(text)
        }
        found = self.eventually("label/__name__/values", lambda names: used <= set(names))
        sys.stderr.write(f"{len(used)} series are used, {len(found)} are exposed\n")
        known = set().union(*test_metrics_documents.metrics().values())
        exposed = {name for name in found if name.startswith("k8s_capi_helm_")}
        self.assertEqual(known, exposed, "the process uses each metric")

    def test_every_query_of_rules_and_dashboard_is_parsed_and_answered(self) -> None:
        expressions = at_least_one(self.expressions())
        for text in expressions:
            with self.subTest(text):
                self.assertIn("type", self.ask("parse_query", query=text))
                self.assertEqual("vector", self.ask("query", query=text)["resultType"])
        sys.stderr.write(f"prometheus {prometheus.VERSION}: {len(expressions)} queries\n")

    def expressions(self) -> list[str]:
        """All queries, as Grafana would send them."""
        rules = [rule["expr"] for rule in test_metrics_documents.rules()]
        found = []
        for text in [*rules, *test_metrics_documents.expressions()]:
            for variable, interval in _INTERVAL.items():
                text = text.replace(variable, interval)
            found.append(text)
        return found
