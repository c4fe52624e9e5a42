# SPDX-License-Identifier: Apache-2.0
"""Alerts, the dashboard, and the pages about both: each metric that they use exists."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import testtools
import yaml

from magnum.drivers import k8s_capi_helm
from magnum.drivers.k8s_capi_helm.commands.check import check
from magnum.drivers.k8s_capi_helm.metrics import exposition
from magnum.drivers.k8s_capi_helm.model import clock
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one
from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import CHECKOUT

_FILES = pathlib.Path(k8s_capi_helm.__file__).parent / "manifests"
_ADMIN = CHECKOUT / "doc" / "source" / "admin"
_METRICS, _ALERTS = (_ADMIN / f"{name}.rst" for name in ("metrics", "alerts"))
#: The page of the alerts as it is published.
_RUNBOOKS = "https://docs.example.org/magnum-k8s-capi-helm/admin/alerts.html"
NAME = re.compile(r"\bk8s_capi_helm_[a-z_]+\b")
_SECTION = re.compile(r"^(CapiHelm\w+)\n=+\n\n(.*?)(?=^CapiHelm\w+\n=|\Z)", re.M | re.S)
_COMMAND = re.compile(r"``(k8s-capi-helm |systemctl )[a-z]+")


def metrics() -> dict[str, set[str]]:
    """Metrics as the page names them, and the names of their series."""
    found = {}
    for family in exposition.registry_of(0, clock.utc_now).collect():
        name = family.name + ("_total" if family.type == "counter" else "")
        histogram = {f"{name}_{part}" for part in ("bucket", "sum", "count")}
        found[name] = histogram if family.type == "histogram" else {name}
    return found


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((_FILES / "prometheus-rules.yaml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def expressions() -> list[str]:
    """Every expression of the dashboard."""
    dashboard = json.loads((_FILES / "grafana-dashboard.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


class TestMetricsDocuments(testtools.TestCase):
    def test_alerts_and_panels_use_metrics_that_exist(self) -> None:
        series = set().union(*metrics().values())
        used: set[str] = set()
        for text in at_least_one([*(rule["expr"] for rule in rules()), *expressions()]):
            names = set(NAME.findall(text))
            self.assertNotEqual(set(), names, text)
            used |= names
        self.assertEqual(set(), used - series)
        # None is counted for nothing.
        unused = [name for name, own in metrics().items() if not own & used]
        self.assertEqual([], unused)

    def test_brackets_are_balanced(self) -> None:
        for text in at_least_one([*(rule["expr"] for rule in rules()), *expressions()]):
            for opening, closing in ("()", "{}", "[]"):
                self.assertEqual(text.count(opening), text.count(closing), text)

    def test_the_page_has_each_metric_and_no_other(self) -> None:
        page = _METRICS.read_text(encoding="utf-8")
        listed = re.findall(r"^   \* - ``(k8s_capi_helm_\w+)``$", page, re.M)
        self.assertEqual(sorted(metrics()), sorted(listed))

    def test_each_alert_has_its_section_and_first_command(self) -> None:
        page = _ALERTS.read_text(encoding="utf-8")
        sections = dict(_SECTION.findall(page))
        self.assertEqual(sorted(rule["alert"] for rule in rules()), sorted(sections))
        for rule in at_least_one(rules()):
            name, notes = rule["alert"], rule["annotations"]
            self.assertEqual(f"{_RUNBOOKS}#{name.lower()}", notes["runbook_url"])
            self.assertTrue(notes["summary"].endswith("."), name)
            self.assertIn(rule["labels"]["severity"], ("warning", "critical"))
            self.assertIsNotNone(_COMMAND.search(sections[name]), name)

    def test_checks_that_the_page_names_exist(self) -> None:
        page = _ALERTS.read_text(encoding="utf-8")
        named = re.findall(r"``k8s-capi-helm check ([a-z -]+)``", page)
        for name in at_least_one([word for words in named for word in words.split()]):
            self.assertIn(name, check.CHECKS)
