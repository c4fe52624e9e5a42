# SPDX-License-Identifier: Apache-2.0
"""Every scenario is valid for every release of Cluster API and CAPO that a cloud may run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import crds, rendering, validity
from magnum.tests.functional.k8s_capi_helm.charts.crds import Release
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Scenario
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

API_VERSIONS = ("v1beta1", "v1beta2")
#: What the charts are for, whether a directory with more is given or not.
CORE = {(1, minor) for minor in (10, 11, 12, 13, 14)}
INFRASTRUCTURE = {(0, 12), (0, 14)}
#: The first Cluster API beside which CAPO with v1beta2 runs.
PARTNER = (1, 11)


@dataclass(frozen=True)
class Choice:
    """Values of apiVersions, and the releases for whose management cluster they are."""

    core: str
    infrastructure: str
    cluster_api: tuple[int, int]
    releases: tuple[Release, ...]

    @property
    def change(self) -> dict[str, str]:
        """The values, as of rendering.changed()."""
        return {
            "apiVersions.core": self.core,
            "apiVersions.infrastructure": self.infrastructure,
            "apiVersions.clusterApi": "{}.{}".format(*self.cluster_api),
        }

    def suits(self, scenario: Scenario) -> bool:
        """Whether a scenario is for such a management cluster.

        One that says which Cluster API it needs is for that and for newer ones, and one that says
        v1beta2 needs it.
        """
        said: dict[str, str] = scenario.values.get("apiVersions", {})
        needed = tuple(map(int, (said.get("clusterApi") or "0.0").split(".")))
        return (
            needed <= self.cluster_api
            and said.get("core") in (None, "", "v1beta1", self.core)
            and said.get("infrastructure") in (None, "", "v1beta1", self.infrastructure)
        )


def choices() -> Iterator[Choice]:
    """Each way to render for the releases that are here, with all releases that it is for."""
    addons = crds.of(crds.ADDONS)
    for infrastructure in API_VERSIONS:
        below = [
            release
            for release in crds.of(crds.INFRASTRUCTURE)
            if release.serves("infrastructure.cluster.x-k8s.io", infrastructure)
        ]
        above = [
            (core, release.minor, release)
            for core in API_VERSIONS
            for release in crds.of(crds.CORE)
            if release.serves("cluster.x-k8s.io", core)
            and (infrastructure == "v1beta1" or release.minor >= PARTNER)
        ]
        for core, cluster_api in dict.fromkeys((core, asked) for core, asked, _ in above):
            fitting = [one for api, asked, one in above if (api, asked) == (core, cluster_api)]
            if below:
                yield Choice(core, infrastructure, cluster_api, (*fitting, *below, *addons))


class ReleaseTest(unittest.TestCase):
    maxDiff = None

    def test_the_releases_that_the_charts_are_for_are_here(self) -> None:
        self.assertLessEqual(CORE, {release.minor for release in crds.of(crds.CORE)})
        self.assertLessEqual(
            INFRASTRUCTURE, {release.minor for release in crds.of(crds.INFRASTRUCTURE)}
        )
        found = {(one.core, one.cluster_api) for one in choices()}
        self.assertLessEqual(
            {("v1beta1", (1, 10)), *((core, (1, 11)) for core in API_VERSIONS)},
            found,
        )

    def test_every_scenario_is_valid_for_every_release(self) -> None:
        scenarios = rendering.scenarios(rendering.CLUSTER).values()
        wanted = [
            (scenario, choice, rendering.changed(scenario.values, choice.change))
            for scenario in scenarios
            for choice in choices()
            if choice.suits(scenario)
        ]
        rendered = rendering.texts([(one.chart, values) for one, _, values in wanted])
        for (scenario, choice, _), text in at_least_one(zip(wanted, rendered, strict=True)):
            with self.subTest(scenario=scenario.name, **choice.change):
                objects = rendering.documents(text.result())
                cluster = rendering.only(objects, "Cluster")
                self.assertEqual(f"cluster.x-k8s.io/{choice.core}", cluster["apiVersion"])
                below = rendering.only(objects, "OpenStackCluster")
                self.assertEqual(
                    f"infrastructure.cluster.x-k8s.io/{choice.infrastructure}", below["apiVersion"]
                )
                self.assertEqual(
                    [],
                    [
                        fault
                        for found in objects
                        for fault in validity.faults(found, choice.releases)
                    ],
                )

    def test_infrastructure_of_the_next_release(self) -> None:
        served = {choice.infrastructure for choice in choices()}
        if "v1beta2" not in served:
            self.skipTest(
                "no CRDs of CAPO with v1beta2 are here, so apiVersions.infrastructure v1beta2 is "
                f"held against none: name a directory with them in {crds.DIRECTORIES}"
            )
        self.assertIn("v1beta2", served)
