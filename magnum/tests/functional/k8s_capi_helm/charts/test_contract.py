# SPDX-License-Identifier: Apache-2.0
"""Every key of the contract has its row, and the row says what the chart does.

``tests/contract.yaml`` of a chart has the keys of azimuth-cloud/capi-helm-charts 0.27 and their
defaults, ``tests/parity.yaml`` what this chart makes of each: same, improved, or refused.
"""

from __future__ import annotations

from collections.abc import Iterator
import functools
from pathlib import Path
import re
from typing import Any
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import rendering, test_schema
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

Row = tuple[Path, str, Any, Any]
DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
#: Values of an addon's own chart: ours are told in values.yaml, the operator's are passed through.
PASSED_THROUGH = ".values"
#: Where to find an addon's chart, and in which release, changes with every release of ours.
PINS = ".chart"


@functools.cache
def read(chart: Path, name: str) -> dict[str, Any]:
    """One of the two tables of a chart."""
    found: dict[str, Any] = yaml.safe_load((chart / "tests" / f"{name}.yaml").read_text())
    return found


def rows() -> Iterator[Row]:
    """Chart, key, the contract's default, and what is made of it here."""
    for chart in (rendering.CLUSTER, rendering.ADDONS):
        here = read(chart, "parity")
        yield from (
            (chart, key, default, here.get(key)) for key, default in read(chart, "contract").items()
        )


@functools.cache
def paths_of(chart: Path) -> dict[str, test_schema.Schema]:
    """Every path of a chart's schema."""
    root = test_schema.schema_of(chart)
    return dict(test_schema.properties(root, root))


def known(chart: Path, key: str) -> bool:
    """Whether the schema of a chart has a key, or has one open above it."""
    if chart == rendering.CLUSTER and key.startswith("addons."):
        return known(rendering.ADDONS, key.removeprefix("addons."))
    path, paths = key.replace("[]", ".[]"), paths_of(chart)
    return path in paths or test_schema.open_above(path, paths)


@functools.cache
def values_of(chart: Path) -> dict[str, Any]:
    """values.yaml of a chart."""
    found: dict[str, Any] = yaml.safe_load((chart / "values.yaml").read_text())
    return found


def default_of(chart: Path, key: str) -> Any:
    """What values.yaml has for a key, None if nothing."""
    found: Any = values_of(chart)
    for step in key.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def plain(value: Any) -> Any:
    """A value without differences that mean nothing: nothing set, 20m or 20m0s, true or "true"."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()} or None
    if isinstance(value, list):
        return [plain(inner) for inner in value] or None
    if isinstance(value, bool):
        return str(value).lower()
    text = "" if value is None else str(value)
    found = DURATION.fullmatch(text)
    if text and found:
        return sum(
            int(part or 0) * unit for part, unit in zip(found.groups(), (3600, 60, 1), strict=True)
        )
    return text or None


class ContractTest(unittest.TestCase):
    def test_each_key_has_its_row_and_no_row_is_without_key(self) -> None:
        for chart in (rendering.CLUSTER, rendering.ADDONS):
            self.assertEqual(
                sorted(read(chart, "contract")), sorted(read(chart, "parity")), chart.name
            )

    def test_a_row_says_same_improved_or_refused_in_words(self) -> None:
        for chart, key, _, here in at_least_one(rows()):
            with self.subTest(chart=chart.name, key=key):
                if here != "same":
                    self.assertEqual("same", here.get("default", "same"))
                    self.assertEqual(1, len(here.keys() - {"default"}))
                    self.assertLessEqual(here.keys(), {"improved", "refused", "default"})
                    self.assertTrue(all(words.strip() for words in here.values()))

    def test_a_key_that_is_taken_is_in_the_schema(self) -> None:
        for chart, key, _, here in at_least_one(rows()):
            with self.subTest(chart=chart.name, key=key):
                self.assertEqual("refused" not in here, known(chart, key))

    def test_what_is_the_same_has_the_same_default(self) -> None:
        for chart, key, default, here in at_least_one(rows()):
            if (here != "same" and "default" not in here) or key.endswith(PASSED_THROUGH):
                continue
            with self.subTest(chart=chart.name, key=key):
                ours = default_of(chart, key)
                if key.endswith(PINS):
                    default, ours = default["name"], (ours or {}).get("name")
                self.assertEqual(plain(default), plain(ours))

    def test_what_differs_in_its_default_only_is_not_called_the_same(self) -> None:
        differing = [
            key
            for chart, key, default, here in rows()
            if here != "same" and plain(default) != plain(default_of(chart, key))
        ]
        self.assertIn("controlPlane.certificatesExpiryDays", differing)
        self.assertIn("registryMirrors", differing)


class PlainTest(unittest.TestCase):
    """Differences that mean nothing are none; others are."""

    def test_the_same(self) -> None:
        for one, other in (
            (None, []),
            ({}, ""),
            ("20m", "20m0s"),
            ("1h", "60m"),
            (True, "true"),
            (4, "4"),
            ({"a": None}, {"a": []}),
        ):
            with self.subTest(one=one, other=other):
                self.assertEqual(plain(one), plain(other))

    def test_not_the_same(self) -> None:
        for one, other in ((False, None), (0, None), ("20m", "20s"), (["a"], ["a", "b"])):
            with self.subTest(one=one, other=other):
                self.assertNotEqual(plain(one), plain(other))


class SwapTest(unittest.TestCase):
    """A cluster of the chart that the contract comes from can be given this one."""

    def releases(self) -> dict[str, str]:
        """Component of each addon -> its release in the workload cluster."""
        objects = rendering.scenarios(rendering.CLUSTER)["minimal"].objects
        return {
            found["metadata"]["labels"]["capi.stackhpc.com/component"]: found["spec"]["releaseName"]
            for kind in ("HelmRelease", "Manifests")
            for found in rendering.by_kind(objects, kind)
        }

    def test_policies_stay_in_their_release(self) -> None:
        """They have the same names there, and Helm gives nothing from one release to another."""
        self.assertEqual(
            "cni-calico-metadata-global-netpolicy", self.releases()["cni-calico-globalnetpolicy"]
        )

    def test_the_job_of_etcd_keeps_away_from_the_release_that_is_being_removed(self) -> None:
        self.assertNotIn("etcd-defrag", self.releases().values())
