# SPDX-License-Identifier: Apache-2.0
"""A cluster that is deleted while it is being created, with images from a registry of its own."""

from __future__ import annotations

import base64

from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management

_IMAGES = "registry.example.org:5000/mirror"


class Young(Life):
    """Second thoughts."""

    name = "young"

    @step
    def begin(self) -> None:
        """The first server is on its way."""
        tenant = self.customer.tenant
        template = self.customer.template(labels={"container_infra_prefix": f"{_IMAGES}/"})
        self.customer.create(template=template)
        self.cluster.until(lambda _: bool(tenant.servers()), "the first server")

    @step
    def images(self) -> None:
        """Those of kubeadm, of pods' sandboxes and of addons are to come from below the prefix.

        That such a cluster is completed is seen in the life of ``silence``.
        """
        namespace = self.customer.tenant.namespace
        (plane,) = management().objects("KubeadmControlPlane", namespace)
        (workers,) = management().objects("KubeadmConfigTemplate", namespace)
        setup = plane["spec"]["kubeadmConfigSpec"]
        parts = setup["clusterConfiguration"]
        assert parts["imageRepository"] == f"{_IMAGES}/registry.k8s.io", parts
        assert parts["dns"]["imageRepository"] == f"{_IMAGES}/registry.k8s.io/coredns", parts
        for commands in (
            setup["preKubeadmCommands"],
            workers["spec"]["template"]["spec"]["preKubeadmCommands"],
        ):
            (command,) = (one for one in commands if "containerd.sh" in one)
            assert _IMAGES in command, command
        addons = {
            secret["metadata"]["name"]: base64.b64decode(secret["data"]["images"]).decode()
            for secret in management().objects("Secret", namespace)
            if "images" in (secret.get("data") or {})
        }
        (calico,) = (text for name, text in addons.items() if "calico" in name)
        assert f"{_IMAGES}/quay.io" in calico, calico
        assert all(_IMAGES in text for text in addons.values()), addons

    @ending
    def delete(self) -> None:
        """The half-made cluster goes whole."""
        self.customer.delete()

    @ending
    def sweep(self) -> None:
        self.customer.leave()


class TestYoung(LifeCase, life=Young):
    """begin, images, delete, sweep."""
