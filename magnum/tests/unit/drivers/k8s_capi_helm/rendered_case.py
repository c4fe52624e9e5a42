# SPDX-License-Identifier: Apache-2.0
"""A cluster whose chart renders what the test says, beside what Helm has written last."""

from __future__ import annotations

import base64
from collections.abc import Callable
import copy
import gzip
import json

from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.drivers.k8s_capi_helm.values.tree import merge
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import CommandCase
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE

DEPLOYMENT = f"{RELEASE}-default-worker"
#: What Helm writes on each object.
OWNERSHIP = {
    "labels": {"app.kubernetes.io/managed-by": "Helm"},
    "annotations": {
        "meta.helm.sh/release-name": RELEASE,
        "meta.helm.sh/release-namespace": NAMESPACE,
    },
}
_RENDERED = (names.CLUSTER, names.CONTROL_PLANE, names.MACHINE_DEPLOYMENT)


class RenderedCase(CommandCase):
    """Base of the tests of commands that show what Helm would change.

    :ivar rendered_values: of each time that the chart was rendered.
    """

    def setUp(self) -> None:
        super().setUp()
        self.rendered_values: list[Json] = []
        self.made()
        self.deployed(self.existing())
        self.renders(lambda objects: None)

    def capi_converges(self) -> None:
        """As Helm has made the objects, they say whose they are."""
        super().capi_converges()
        for kind in _RENDERED:
            for obj in self.kube.list(kind, NAMESPACE):
                self.kube.put(kind, merge.merge(obj, {"metadata": OWNERSHIP}))

    def existing(self) -> list[Json]:
        """The objects that are there, as the chart renders them."""
        return [copy.deepcopy(o) for kind in _RENDERED for o in self.kube.list(kind, NAMESPACE)]

    def config_map(self, name: str, text: str = "", **annotations: str) -> Json:
        """The manifest of a ConfigMap that is there, as Helm has made it."""
        manifest: Json = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "annotations": annotations},
            "data": {"text": text},
        }
        there = {"metadata": {**OWNERSHIP, "namespace": NAMESPACE}}
        self.kube.put(names.CONFIG_MAP, merge.merge(there, manifest))
        return manifest

    def renders(self, change: Callable[[list[Json]], object]) -> None:
        """From now on the chart renders the changed objects."""

        def render(values: Json) -> list[Json]:
            self.rendered_values.append(values)
            objects = self.existing()
            change(objects)
            return objects

        self.helm.renders = render

    def deployed(self, objects: list[Json]) -> None:
        """What Helm says that it has written last."""
        release = {"manifest": "\n---\n".join(map(json.dumps, objects))}
        packed = base64.b64encode(gzip.compress(json.dumps(release).encode()))
        labels = {"owner": "helm", "name": RELEASE, "version": "1", "status": "deployed"}
        self.kube.put(
            names.SECRET,
            {
                "metadata": {
                    "name": f"sh.helm.release.v1.{RELEASE}.v1",
                    "namespace": NAMESPACE,
                    "labels": labels,
                },
                "data": {"release": base64.b64encode(packed).decode()},
            },
        )

    def world(self) -> list[str]:
        """Everything on the management cluster."""
        return sorted(map(str, self.kube.everything()))
