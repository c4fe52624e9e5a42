# SPDX-License-Identifier: Apache-2.0
"""Charts that templates name, and charts that only the management cluster still has."""

from __future__ import annotations

import base64
import hashlib
import pathlib
import shutil
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.chart_store import archive, ChartConfigMaps, source
from magnum.drivers.k8s_capi_helm.model import Chart, names
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites.helm import write_chart
from magnum.tests.unit.drivers.k8s_capi_helm.test_chart_store import StoreCase

URL = "https://charts.example.org"


class TestNamedByTemplates(StoreCase):
    def test_nothing_is_allowed_unless_the_operator_says_so(self) -> None:
        store = self.store(default_version="1.0.0")
        for labels in (
            {"name": "mine"},
            {"repository": URL},
            {"repository": URL, "name": "openstack-cluster"},
            {"repository": str(self.directory)},
            {"name": "../../etc"},
        ):
            error = self.assertRaises(errors.InvalidRequest, store.for_new_cluster, None, **labels)
            for text in labels.values():
                self.assertIn(f"'{text}'", str(error))
        self.assertEqual([], self.remote.pulls)

    def test_naming_the_usual_one_asks_for_nothing(self) -> None:
        chart = self.store().for_new_cluster(None, name="openstack-cluster", repository="bundled")
        self.assertEqual((self.first.digest, "bundled"), (chart.digest, chart.source))

    def test_what_the_operator_lists(self) -> None:
        write_chart(self.directory / "remote" / "2.0.0", "2.0.0")
        for entry, labels, pull in (
            (f"{URL}/ mine", {"repository": URL, "name": "mine"}, ("mine", URL, "2.0.0")),
            (
                f"{URL} openstack-cluster",
                {"repository": f"{URL}/"},
                ("openstack-cluster", URL, "2.0.0"),
            ),
            (
                "oci://example.org/charts/mine",
                {"repository": "oci://example.org/charts", "name": "mine"},
                ("oci://example.org/charts/mine", None, "2.0.0"),
            ),
        ):
            store = self.store(allowed_sources=[entry])
            found = store.for_new_cluster("2.0.0", **labels)
            self.assertEqual(pull, self.remote.pulls[-1])
            self.assertEqual(
                f"{labels['repository'].rstrip('/')} {pull[0].rpartition('/')[2]}", found.source
            )
            self.assertEqual("1.0.0", store.for_new_cluster(None).version)

    def test_a_name_alone_is_in_the_operators_own_repository(self) -> None:
        write_chart(self.directory / "own" / "other", "3.0.0", "other")
        own = {"repository": str(self.directory / "own"), "name": "usual"}
        store = self.store(**own, allowed_sources=["other", "bundled openstack-cluster"])
        self.assertEqual("3.0.0", store.for_new_cluster(None, name="other").version)
        bundled = store.for_new_cluster(None, name="openstack-cluster", repository="bundled")
        self.assertEqual(self.first.digest, bundled.digest)
        self.assertRaises(errors.InvalidRequest, store.for_new_cluster, None, name="another")

    def test_versions_that_the_operator_lists(self) -> None:
        for version in ("1.9.0", "2.0.0", "2.1.7"):
            write_chart(self.directory / "remote" / version, version)
        store = self.store(repository=URL, default_version="1.9.0", versions=["v2.1.*", "3.0.0"])
        for version in ("2.1.7", "1.9.0", None):
            self.assertEqual(version or "1.9.0", store.for_new_cluster(version).version)
        source.check_version("v2.1.7", ["2.1.*"])
        for version in ("2.0.0", "2.10.0", "2x1.7", "12.1.7", "3.0.0-rc1"):
            error = self.assertRaises(errors.InvalidRequest, store.for_new_cluster, version)
            self.assertIn(f"is '{version}'", str(error))
            self.assertIn("2.1.*, 3.0.0, 1.9.0", str(error))

    def test_a_cluster_keeps_a_version_that_is_allowed_no_more(self) -> None:
        write_chart(self.directory / "remote" / "2.0.0", "2.0.0")
        chart = self.store(repository=URL).for_new_cluster("2.0.0")
        store = self.store("another", repository=URL, versions=["2.1.*"])
        self.assertEqual(chart.digest, store.of_release(self.live(chart), chart.digest).digest)

    def test_a_wrong_entry_is_the_operators_affair(self) -> None:
        for entry in ("a b c", ""):
            error = self.assertRaises(
                errors.InvalidConfiguration,
                self.store(allowed_sources=[entry]).for_new_cluster,
                None,
            )
            self.assertIn("allowed_charts", error.detail)

    def test_a_password_stays_out_of_the_record(self) -> None:
        write_chart(self.directory / "remote" / "2.0.0", "2.0.0")
        store = self.store(repository="https://me:s3cret@charts.example.org")
        self.assertNotIn("s3cret", store.for_new_cluster("2.0.0").source)

    def test_places(self) -> None:
        for options, place in (
            ((None, None), source.ChartSource("bundled", "openstack-cluster")),
            (("", "mine"), source.ChartSource("bundled", "mine")),
            ((f"{URL}/", None), source.ChartSource(URL, "openstack-cluster")),
            ((None, "oci://r/c/mine"), source.ChartSource("oci://r/c", "mine")),
            ((None, "/srv/mine.tgz"), source.ChartSource("/srv", "mine.tgz")),
            ((None, "/mine"), source.ChartSource("/", "mine")),
        ):
            self.assertEqual(place, source.source_of_options(*options))

    def test_a_release_finds_its_named_chart_again(self) -> None:
        write_chart(self.directory / "remote" / "2.0.0", "2.0.0")
        entry = f"{URL} openstack-cluster"
        chart = self.store(allowed_sources=[entry]).for_new_cluster("2.0.0", repository=URL)
        other = self.store("another", allowed_sources=[entry])
        self.assertEqual(chart.digest, other.of_release(self.live(chart), chart.digest).digest)


class TestCopies(StoreCase):
    """What one conductor has applied, another one finds on the management cluster."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = FakeKube()
        self.kube.put(names.NAMESPACE, {"metadata": {"name": "n"}})

    def conductor(self, place: str, **settings: Any) -> Any:
        return self.store(place, copies=ChartConfigMaps(self.kube), **settings)  # type: ignore[arg-type]

    def applied(self) -> Chart:
        """A chart with another one inside, applied by a conductor; its source is gone since."""
        inner = pathlib.Path(self.first.path) / "charts" / "cluster-addons"
        write_chart(inner, "1.0.0", "cluster-addons")
        first = self.conductor("first")
        chart: Chart = first.for_new_cluster(None)
        first.secure("n", chart)
        shutil.rmtree(self.bundled)
        return chart

    def kept(self) -> list[str]:
        return [one["metadata"]["name"] for one in self.kube.list(names.CONFIG_MAP, "n")]

    def test_a_conductor_without_it(self) -> None:
        chart = self.applied()
        write_chart(self.bundled / names.CLUSTER_CHART, "1.1.0")
        second = self.conductor("second")
        found = second.of_release(self.live(chart), chart.digest)
        self.assertEqual(chart.digest, archive.digest(pathlib.Path(found.path)))
        self.assertTrue((pathlib.Path(found.path) / "charts/cluster-addons/Chart.yaml").exists())
        self.assertEqual([], self.remote.pulls)
        self.assertEqual([], list((self.directory / "second").glob(".*")))
        # And from now on it needs nobody.
        self.kube.unreachable = True
        self.assertEqual(found, second.of_release(self.live(chart), chart.digest))

    def test_it_is_kept_once(self) -> None:
        chart = self.applied()
        for place in ("first", "second"):
            self.conductor(place).secure("n", chart)
        self.assertEqual([names.chart_copy(chart.digest)], self.kept())
        self.assertEqual(1, len([c for c in self.kube.calls if c[:2] == ("create", "ConfigMap")]))

    def test_one_that_is_not_what_it_says_is_not_taken(self) -> None:
        chart = self.applied()
        (copy,) = self.kube.list(names.CONFIG_MAP, "n")
        evil = write_chart(self.directory / "evil", "1.0.0")
        self.conductor("first").secure("n", evil)
        (other,) = (
            one
            for one in self.kube.list(names.CONFIG_MAP, "n")
            if one["metadata"]["name"] != copy["metadata"]["name"]
        )
        for data in (other["binaryData"], {"chart.tgz": base64.b64encode(b"x").decode()}, {}):
            self.kube.put(names.CONFIG_MAP, {**copy, "binaryData": data})
            error = self.assertRaises(
                errors.ChartNotFound,
                self.conductor("second").of_release,
                self.live(chart),
                chart.digest,
            )
            self.assertIn("could replace its machines", str(error))

    def test_a_role_that_may_not_write_it_stops_nothing(self) -> None:
        def refuse(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("create", names.CONFIG_MAP):
                raise errors.ManagementRefused("not allowed", "403")

        self.kube.before = refuse
        self.applied()
        self.assertEqual([], self.kept())

    def test_one_that_is_too_large_is_left_out(self) -> None:
        for number in range(40):
            path = pathlib.Path(self.first.path) / "files" / f"{number}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(_noise(number, 32768))
        self.conductor("first").secure("n", self.conductor("first").for_new_cluster(None))
        self.assertEqual([], self.kept())

    def test_what_nobody_uses_is_swept(self) -> None:
        chart = self.applied()
        other = write_chart(self.bundled / names.CLUSTER_CHART, "2.0.0")
        store = self.conductor("first")
        store.secure("n", other)
        stranger = {"metadata": {"name": "of-somebody-else", "namespace": "n"}}
        self.kube.put(names.CONFIG_MAP, stranger)
        store.delete_unused("n", {chart.digest})
        self.assertEqual(
            sorted([names.chart_copy(chart.digest), "of-somebody-else"]), sorted(self.kept())
        )


def _noise(seed: int, size: int) -> bytes:
    """Bytes that no compression makes smaller."""
    pieces = (hashlib.sha256(f"{seed} {n}".encode()).digest() for n in range(size // 32))
    return b"".join(pieces)
