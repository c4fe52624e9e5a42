# SPDX-License-Identifier: Apache-2.0
"""How often the files of a chart are read and parsed, and that its digest is what it was."""

from __future__ import annotations

import hashlib
import json
import pathlib
from typing import Any

import fixtures
import yaml

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.chart_store import archive
from magnum.tests.unit.drivers.k8s_capi_helm.suites.helm import write_chart
from magnum.tests.unit.drivers.k8s_capi_helm.test_chart_store import StoreCase


class TestReads(StoreCase):
    """How often the files of a chart are read: it takes a good part of a request."""

    def setUp(self) -> None:
        super().setUp()
        self.read: list[str] = []
        read_bytes = pathlib.Path.read_bytes

        def noted(path: pathlib.Path) -> bytes:
            if path.name == "values.yaml":
                self.read.append("store" if "store" in path.parts else "source")
            return read_bytes(path)

        self.useFixture(fixtures.MonkeyPatch("pathlib.Path.read_bytes", noted))

    def test_for_a_new_cluster_source_and_copy_are_read_once(self) -> None:
        store = self.store()
        for times in (["source"], ["source", "store"]):
            self.read.clear()
            store.for_new_cluster(None)
            self.assertEqual(times, self.read)

    def test_of_a_release_the_copy_is_read_once(self) -> None:
        store = self.store()
        chart = store.for_new_cluster(None)
        self.read.clear()
        store.of_release(self.live(chart), chart.digest)
        self.assertEqual(["store"], self.read)

    def test_each_text_of_metadata_is_parsed_once(self) -> None:
        parsed: list[Any] = []
        load = yaml.safe_load

        def noted(text: Any) -> Any:
            parsed.append(text)
            return load(text)

        chart = pathlib.Path(self.first.path)
        (chart / "Chart.yaml").write_text(f"{(chart / 'Chart.yaml').read_text()}# once\n")
        self.useFixture(fixtures.MonkeyPatch("yaml.safe_load", noted))
        before = archive.read_chart(chart)
        # As a text, and as the bytes that count for the digest.
        self.assertEqual(2, len(parsed))
        self.assertEqual(before, archive.read_chart(chart))
        self.assertEqual(2, len(parsed))
        (chart / "Chart.yaml").write_text("name: other\nversion: 7.0.0\n")
        other = archive.read_chart(chart)
        self.assertEqual(("other", "7.0.0", ""), (other.name, other.version, other.family))
        self.assertNotEqual(before.digest, other.digest)

    def test_a_text_that_says_nothing_is_refused_each_time(self) -> None:
        for text in ("[]", "name: a", ": :", "annotations: {}"):
            (pathlib.Path(self.first.path) / "Chart.yaml").write_text(text)
            for _ in range(2):
                chart = pathlib.Path(self.first.path)
                self.assertRaises(errors.ChartNotFound, archive.read_chart, chart)


class TestDigest(StoreCase):
    """The digests that Leases have recorded."""

    def test_it_is_that_of_drivers_of_before(self) -> None:
        """Another way to read the files must not make other charts of those that are recorded."""
        chart = pathlib.Path(self.first.path)
        write_chart(chart / "charts" / "cluster-addons", "1.0.0", "cluster-addons")
        for ignored in ("ci/a-values.yaml", "templates/tests/b.yaml", "charts/c.txt"):
            (chart / ignored).parent.mkdir(exist_ok=True)
            (chart / ignored).write_text("a: b")
        total = hashlib.sha256()
        for path in sorted(path.relative_to(chart).as_posix() for path in chart.rglob("*")):
            inside = path.removeprefix("charts/cluster-addons/")
            if (chart / path).is_dir() or inside.startswith(("ci/", "tests/")):
                continue
            content = (chart / path).read_bytes()
            if inside == "Chart.yaml":
                content = json.dumps(yaml.safe_load(content), sort_keys=True).encode()
            total.update(f"{path}\0{len(content)}\0".encode() + content)
        self.assertEqual(total.hexdigest(), archive.digest(chart))
