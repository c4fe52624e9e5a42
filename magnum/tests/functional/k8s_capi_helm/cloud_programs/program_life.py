# SPDX-License-Identifier: Apache-2.0
"""A life of a cluster beside which programs of it run, on a real API server of its own."""

from __future__ import annotations

from pathlib import Path
import shutil
import tempfile

from magnum.tests.functional.k8s_capi_helm.cloud_programs.addon import Addon
from magnum.tests.functional.k8s_capi_helm.cloud_programs.pod_process import PodProcess
from magnum.tests.functional.k8s_capi_helm.cloud_programs.tenant_api import Object, TenantApi
from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from magnum.tests.functional.k8s_capi_helm.sandbox.life import Life
from sandbox.management.binaries import Program
from sandbox.management.cloud_programs import CloudRelease


class ProgramLife(Life):
    """What the lives of these tests have in common.

    :ivar api: the API server of the cluster.
    """

    api: TenantApi

    def start_api(self) -> None:
        """Start an API server, with cloud.conf and the credential of the cluster."""
        self.api = TenantApi(setting.state().path("cloud-programs", self.name, "x").parent)
        self.api.start()
        config = self.addon("cloud-config")
        self.create_namespace(config.namespace)
        self.api.apply(config.content(), config.namespace)

    def addon(self, component: str) -> Addon:
        """An addon of the cluster."""
        return Addon(self.customer.tenant.namespace, self.cluster.release, component)

    def install(self, component: str, release: CloudRelease, folder: str) -> list[Object]:
        """Install the chart of an addon; its objects, with their namespaces."""
        addon, place = self.addon(component), Path(tempfile.mkdtemp())
        try:
            objects = addon.chart_objects(release, folder, place)
        finally:
            shutil.rmtree(place)
        self.api.apply(objects, addon.namespace)
        return objects

    def create_namespace(self, name: str) -> None:
        """Create a namespace."""
        document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.api.apply([document], name)

    def check_allowed(self, *processes: PodProcess) -> None:
        """Their roles allow all that they have asked for."""
        for process in processes:
            assert process.is_alive(), process.log()[-2000:]
            refused = [line for line in process.log().splitlines() if "forbidden" in line]
            assert not refused, refused

    def end(self) -> None:
        """Wait until the last step has ended, and end the API server."""
        super().end()
        if hasattr(self, "api"):
            self.api.stop()


def workload(objects: list[Object], program: Program) -> Object:
    """The DaemonSet or Deployment that runs a program on machines of the control plane."""
    (found,) = (
        one
        for one in objects
        if one["kind"] in ("DaemonSet", "Deployment")
        and program.name in [item["name"] for item in one["spec"]["template"]["spec"]["containers"]]
        and "nodeplugin" not in one["metadata"]["name"]
    )
    return found
