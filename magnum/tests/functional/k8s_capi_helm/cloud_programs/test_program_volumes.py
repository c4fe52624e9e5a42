# SPDX-License-Identifier: Apache-2.0
"""The real Cinder driver with the real csi-provisioner and csi-resizer: claims become volumes.

They have the values, cloud.conf, credential, StorageClasses and permissions that the charts and the
driver's own chart give them, in the versions that this chart has.
"""

from __future__ import annotations

import functools
from typing import Any

from magnum.tests.functional.k8s_capi_helm.cloud_programs import machine_node
from magnum.tests.functional.k8s_capi_helm.cloud_programs.pod_process import PodProcess
from magnum.tests.functional.k8s_capi_helm.cloud_programs.program_life import ProgramLife, workload
from magnum.tests.functional.k8s_capi_helm.cloud_programs.tenant_api import Object
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.waiting import until
from sandbox.cloud import seed
from sandbox.management import cloud_programs

_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
_VOLUMES = "/api/v1/persistentvolumes"
_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
#: What the scheduler writes when a Pod with the claim has a Node.
_SELECTED = "volume.kubernetes.io/selected-node"
_CINDERS = "__DEFAULT__"
_DEFAULT = "storageclass.kubernetes.io/is-default-class"


class Volumes(ProgramLife):
    """A cluster whose users have volumes of both types."""

    name = "volumes"
    programs: tuple[PodProcess, ...]
    node: str

    @step
    def create(self) -> None:
        """A cluster whose volumes go with their claims; by default they are retained."""
        template = self.customer.template(labels={"csi_cinder_reclaim_policy": "Delete"})
        self.customer.create(template=template).complete("CREATE")

    @step
    def install_driver(self) -> None:
        """Driver, provisioner and resizer start with flags, Secret and role of the chart."""
        self.start_api()
        release = cloud_programs.VOLUME_RELEASE
        objects = self.install("csi-cinder", release, "cinder-csi-plugin")
        self.api.apply(self.addon("csi-cinder-storageclass").content(), "default")
        found = []
        for program in (
            cloud_programs.VOLUMES,
            cloud_programs.PROVISIONER,
            cloud_programs.RESIZER,
        ):
            pod = workload(objects, program)
            found.append(PodProcess(self.api, pod, program))
        self.programs = tuple(found)
        driver, *rest = found
        assert f"--cluster={self.cluster.release}" in driver.arguments(), driver.arguments()
        driver.start()
        until(lambda: "Listening for connections" in driver.log(), "the driver listens")
        for process in rest:
            namespace = self.addon("csi-cinder").namespace
            process.start(
                f"--kubeconfig={process.kubeconfig()}",
                f"--leader-election-namespace={namespace}",
            )

    @step
    def classes(self) -> None:
        """One StorageClass for each volume type, the first of them the default."""
        found = self.api.request("GET", _CLASSES)["items"]
        types = {one["metadata"]["name"]: one["parameters"]["type"] for one in found}
        assert {name: name for name in seed.VOLUME_TYPES}.items() <= types.items(), types
        # The one that Cinder makes itself has no name of a StorageClass.
        assert {*types.values()} == {*seed.VOLUME_TYPES, _CINDERS}, types
        default = [
            one["metadata"]["name"]
            for one in found
            if one["metadata"]["annotations"][_DEFAULT] == "true"
        ]
        assert len(default) == 1, default

    @step
    def claim(self) -> None:
        """A claim gets a volume of its class's type, which names the cluster."""
        (server,) = machine_node.servers(self.customer.tenant, workers=True)
        machine_node.register(self.api, server)
        self.node = server.name
        for name, chosen in (("plain", None), ("fast", "fast")):
            self._create_claim(name, chosen)
            # Cinder shows a volume as soon as it is asked for.
            until(functools.partial(self._is_available, name), f"the volume of {name} is available")
            volume = self._volume(name)
            assert volume.volume_type == (chosen or self._default_type()), volume
            assert volume.size == 1, volume
            owner = volume.metadata["cinder.csi.openstack.org/cluster"]
            assert owner == self.cluster.release, volume.metadata
            assert volume.metadata["csi.storage.k8s.io/pvc/name"] == name, volume.metadata

    @step
    def expand(self) -> None:
        """A claim that grows makes its volume grow; the file system waits for a Node."""
        change = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
        self.api.request("PATCH", f"{_CLAIMS}/plain", change)
        until(lambda: self._volume("plain").size == 3, "the volume has 3 GiB")
        persistent = f"{_VOLUMES}/{self._claim('plain')['spec']['volumeName']}"

        def answer() -> bool:
            found = self.api.request("GET", persistent)
            return bool(found["spec"]["capacity"]["storage"] == "3Gi")

        until(answer, "Kubernetes knows of the 3 GiB")

    @step
    def remove(self) -> None:
        """A claim that is deleted loses its volume: the label sets the reclaim policy."""
        for name in ("plain", "fast"):
            self.api.request("DELETE", f"{_CLAIMS}/{name}")
        until(lambda: not self.customer.tenant.volumes(), "no volume is left")
        until(lambda: not self.api.request("GET", _VOLUMES)["items"], "nor a PersistentVolume")

    @step
    def allowed(self) -> None:
        """Their role allows all that they have asked for."""
        self.check_allowed(*self.programs)

    @ending
    def delete(self) -> None:
        """The cluster is deleted."""
        self.customer.delete()

    @ending
    def sweep(self) -> None:
        """The tenant can leave."""
        self.customer.leave()

    def _create_claim(self, name: str, storage_class: str | None) -> None:
        spec: Object = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
        if storage_class:
            spec["storageClassName"] = storage_class
        metadata = {"name": name, "annotations": {_SELECTED: self.node}}
        self.api.request("POST", _CLAIMS, {"metadata": metadata, "spec": spec})
        until(lambda: self._claim(name)["status"]["phase"] == "Bound", f"{name} is bound")

    def _claim(self, name: str) -> Object:
        return self.api.request("GET", f"{_CLAIMS}/{name}")

    def _is_available(self, claim: str) -> bool:
        return bool(self._volume(claim).status == "available")

    def _volume(self, claim: str) -> Any:
        """Cinder's volume of a claim."""
        persistent = self.api.request(
            "GET", f"{_VOLUMES}/{self._claim(claim)['spec']['volumeName']}"
        )
        handle = persistent["spec"]["csi"]["volumeHandle"]
        return self.customer.tenant.connection.block_storage.get_volume(handle)

    def _default_type(self) -> str:
        """Volume type of the default StorageClass."""
        found = self.api.request("GET", _CLASSES)["items"]
        (name,) = (
            one["parameters"]["type"]
            for one in found
            if one["metadata"]["annotations"][_DEFAULT] == "true"
        )
        return str(name)


class TestVolumes(LifeCase, life=Volumes):
    """A test for each step."""
