# SPDX-License-Identifier: Apache-2.0
"""A fleet of magnum-capi-helm: several projects, each with a cluster of each chart."""

from __future__ import annotations

import dataclasses
import json
from typing import Any
import uuid

from kubernetes import config, dynamic

from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.functional.k8s_capi_helm.adoption.fleet_charts import FleetChart, FleetCharts
from magnum.tests.functional.k8s_capi_helm.adoption.objects import (
    changes,
    Key,
    lasting,
    ObjectStore,
    Snapshot,
)
from magnum.tests.functional.k8s_capi_helm.adoption.setting import (
    CLUSTER,
    HandoverCase,
    PREDECESSOR,
    SUCCESSOR,
    TEMPLATE,
    TIMEOUT,
)
from magnum.tests.functional.k8s_capi_helm.envtest import kubeconfig

PROJECTS = ("p1", "p2", "p3", "p4")
#: The paths that differ of each object; "" where it comes or disappears.
Changes = dict[Key, set[str]]
_MACHINES = " (replaces machines)"
_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")


@dataclasses.dataclass(frozen=True)
class FleetCluster:
    """A cluster of the fleet."""

    uuid: str
    project: str
    chart: FleetChart
    release: str = ""

    @property
    def name(self) -> str:
        return f"{self.chart.title}-{self.chart.version}-{self.project}".replace(".", "-")


class FleetCase(HandoverCase):
    """Clusters that magnum-capi-helm has created, and the namespaces of their projects."""

    def setUp(self) -> None:
        super().setUp()
        self.stores = {name: self.store_of(name) for name in PROJECTS}
        self.charts = FleetCharts(self.directory / "repository")
        self.configure(
            capi_helm={
                "helm_chart_repo": self.enterContext(self.charts.served()),
                "helm_chart_name": "openstack-cluster",
            }
        )
        untyped: Any = config
        api = untyped.new_client_from_config(kubeconfig())
        self.addCleanup(api.close)
        untyped = dynamic
        self._kinds = untyped.DynamicClient(api)
        self.clusters = self.created()

    def store_of(self, project: str) -> ObjectStore:
        if project == "p1":
            return self.store
        store = ObjectStore(kubeconfig(), f"{self.prefix}-{project}")
        self.addCleanup(store.close)
        return store

    def created(self) -> list[FleetCluster]:
        """A cluster of each chart in each project, made by magnum-capi-helm, and complete."""
        self.ask(PREDECESSOR, "make_database")
        clusters = []
        for chart in self.charts.charts:
            template = str(uuid.uuid4())
            labels = {"capi_helm_chart_version": chart.version}
            fields = {"uuid": template, "name": chart.title, "labels": labels, "public": True}
            self.ask(PREDECESSOR, "template", **{**TEMPLATE, **fields})
            for project in PROJECTS:
                cluster = FleetCluster(str(uuid.uuid4()), project, chart)
                clusters.append(cluster)
                fields = {"uuid": cluster.uuid, "name": cluster.name, "project": project}
                fields |= {"cluster_template_id": template, "masters": 1, "workers": 2}
                # A label of the Heat driver, which has no effect in either.
                fields |= {"labels": {"heapster_enabled": "true"} if project == "p1" else {}}
                self.ask(PREDECESSOR, "create", **{**CLUSTER, **fields})
        self.ask(PREDECESSOR, "settle")
        releases = {row["uuid"]: row["stack_id"] for row in self.rows()}
        return [dataclasses.replace(one, release=releases[one.uuid]) for one in clusters]

    def of(self, chart: FleetChart, project: str) -> FleetCluster:
        """The cluster of a project that has a chart."""
        [found] = [one for one in self.clusters if (one.chart, one.project) == (chart, project)]
        return found

    def objects(self) -> Snapshot:
        """Everything in the namespaces of all projects; the names begin with the project."""
        return {
            (kind, f"{project}/{name}"): one
            for project, store in self.stores.items()
            for (kind, name), one in store.snapshot().items()
        }

    def patch(self, cluster: FleetCluster, kind: str, ending: str, change: Any) -> None:
        """Change an object of a cluster as a user or a controller does; None deletes it."""
        name = f"{cluster.release}{ending}"
        manifest = self.objects()[kind, f"{cluster.project}/{name}"]
        resource = self._kinds.resources.get(api_version=manifest["apiVersion"], kind=kind)
        place = {"name": name, "namespace": self.stores[cluster.project].namespace}
        if change is None:
            resource.delete(**place, _request_timeout=TIMEOUT)
            return
        content_type = "application/strategic-merge-patch+json"
        if "." in manifest["apiVersion"].partition("/")[0]:
            content_type = "application/merge-patch+json"
        resource.patch(**place, body=change, content_type=content_type, _request_timeout=TIMEOUT)

    def predicted(self) -> dict[str, dict[str, Any]]:
        """What the operator's command says of each cluster, by UUID."""
        argv = ["adopt", "--dry-run", "--all", "-f", "json"]
        printed = self.ask(SUCCESSOR, "command", argv=argv)
        rows: list[dict[str, Any]] = json.loads(printed["out"])
        self.assertEqual(len(self.clusters), len(rows), printed["error"])
        return {row["UUID"]: row for row in rows}

    def changed(self, before: Snapshot, after: Snapshot) -> Changes:
        """What differs, but for what the driver keeps beside a release."""
        return {
            key: {path for path, _, _ in listed}
            for key, listed in changes(before, after).items()
            if not is_kept_beside(key)
        }

    def told_changes(self, cluster: FleetCluster, row: dict[str, Any]) -> Changes:
        """What a row of the command says, as :meth:`changed` tells it."""
        found: Changes = {}
        for text in filter(None, row["Changes"].split("; ")):
            if text.startswith("Magnum's records ask for"):
                continue
            title, _, path = text.removesuffix(_MACHINES).partition(": ")
            kind, name = title.split()[:2]
            found.setdefault((kind, f"{cluster.project}/{name}"), set()).add(_path(path))
        return found


def is_kept_beside(key: Key) -> bool:
    """Whether it is Helm's history, the driver's Lease, or a copy of a chart for conductors."""
    kind, name = key[0], key[1].partition("/")[2]
    return (
        kind == "Lease"
        or not lasting({(kind, name): {}})
        or (kind == "ConfigMap" and name.startswith(names.chart_copy("")))
    )


def _path(text: str) -> str:
    if not text:
        return ""
    return f".metadata.{text}" if text.startswith(_METADATA) else f".{text}"
