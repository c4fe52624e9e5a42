# SPDX-License-Identifier: Apache-2.0
"""The real addon provider installs with the real Helm into a cluster's real API server.

With a checkout of cluster-api-addon-provider in ADDON_PROVIDER (``tox -e functional-tenant`` makes
what it needs); without one these tests are skipped. The charts are the sandbox's own small ones.
"""

from __future__ import annotations

import base64

from magnum.tests.functional.k8s_capi_helm.sandbox.customer import VERSION
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.management import Json, management
from magnum.tests.functional.k8s_capi_helm.tenant import inside
from magnum.tests.functional.k8s_capi_helm.tenant.test_real_life import missing
from magnum.tests.functional.k8s_capi_helm.waiting import until
from sandbox import cli
from sandbox.management import addon_provider, chart_repository
from sandbox.state import State

_KINDS = ("HelmRelease", "Manifests")
_HEALTH = 300.0


class RealAddons(Life):
    """A cluster with the addons that it has by default, without one, and with a new credential."""

    name = "addons-real"

    @classmethod
    def missing(cls) -> str:
        if why := missing():
            return why
        if addon_provider.chosen(State(cli.default_directory())) == addon_provider.REAL:
            return ""
        return "the addon provider of this sandbox is simulated; see `up --addon-provider real`"

    @step
    def create(self) -> None:
        """Every addon is a release of Helm in the cluster, and the cluster is healthy."""
        self.customer.create().complete("CREATE")
        self.cluster.until(lambda rows: rows.health == "HEALTHY", "health", _HEALTH)
        until(self._all_deployed, "every addon", _HEALTH)
        releases = inside.helm_releases(self.cluster.workload())
        self.say(f"{len(releases)} releases: {', '.join(sorted(releases))}")
        for addon in self._addons():
            release = releases[self._release(addon)]
            assert release["info"]["status"] == "deployed", release["info"]
            assert release["namespace"] == addon["spec"]["targetNamespace"], release["namespace"]

    @step
    def charts(self) -> None:
        """Helm has the chart that the addon names, and its templates the values of the addon."""
        releases = inside.helm_releases(self.cluster.workload())
        with_values = set()
        for addon in self._addons("HelmRelease"):
            chart, release = addon["spec"]["chart"], releases[self._release(addon)]
            assert chart["repo"].rstrip("/") == chart_repository.url(
                State(cli.default_directory())
            ), chart
            about = release["chart"]["metadata"]
            assert (about["name"], about["version"]) == (chart["name"], chart["version"]), about
            path = f"/api/v1/namespaces/{release['namespace']}/secrets/"
            found = inside.ask(
                self.cluster.workload(), "GET", f"{path}{release['name']}-given-values"
            )
            text = base64.b64decode(found["data"]["values.yaml"]).decode()
            for key in release.get("config") or {}:
                assert f"{key}:" in text, (release["name"], key)
                with_values.add(release["name"])
        assert with_values, "no addon has a value"

    @step
    def owned(self) -> None:
        """The Cluster owns each addon."""
        for addon in self._addons():
            owners = [(one["kind"], one["name"]) for one in addon["metadata"]["ownerReferences"]]
            assert ("Cluster", self.cluster.release) in owners, owners

    @step
    def upgraded(self) -> None:
        """A new credential is a new revision of what has it in the cluster."""
        before = self._cloud_config()
        self.customer.magnum.rotate_credential(self.cluster.uuid)

        def deployed() -> Json | None:
            new = self._cloud_config()
            is_new = new["version"] > before["version"] and new["info"]["status"] == "deployed"
            return new if is_new else None

        after = until(deployed, "a new revision that is deployed", _HEALTH)
        assert after["manifest"] != before["manifest"], "the same credential"

    @step
    def removed(self) -> None:
        """An addon that is not wanted any more is uninstalled by Helm."""
        name = f"{self.cluster.release}-metrics-server"
        own = [one for one in self._addons() if one["metadata"]["name"] == name]
        assert len(own) == 1, own
        release = self._release(own[0])
        self.customer.upgrade(VERSION, labels={"metrics_server_enabled": "false"})
        until(
            lambda: release not in inside.helm_releases(self.cluster.workload()),
            "no release of metrics-server",
            _HEALTH,
        )
        self.cluster.until(lambda rows: rows.status == "UPDATE_COMPLETE", "the upgrade", 900.0)
        self.cluster.complete()

    @ending
    def delete(self) -> None:
        """Nothing holds the cluster's deletion, and no process is left."""
        release = self.cluster.release
        self.customer.delete()
        until(lambda: not inside.children(release), "no process", 30.0)
        self.customer.leave()

    def _addons(self, *kinds: str) -> list[Json]:
        namespace = self.customer.tenant.namespace
        return [one for kind in kinds or _KINDS for one in management().objects(kind, namespace)]

    def _all_deployed(self) -> bool:
        phases = {(one.get("status") or {}).get("phase") for one in self._addons()}
        return phases == {"Deployed"}

    def _release(self, addon: Json) -> str:
        return str(addon["spec"].get("releaseName") or addon["metadata"]["name"])

    def _cloud_config(self) -> Json:
        name = f"{self.cluster.release}-cloud-config"
        (addon,) = (one for one in self._addons() if one["metadata"]["name"] == name)
        return inside.helm_releases(self.cluster.workload())[self._release(addon)]


class TestRealAddons(LifeCase, life=RealAddons):
    """create, charts, owned, upgraded, removed, delete."""
