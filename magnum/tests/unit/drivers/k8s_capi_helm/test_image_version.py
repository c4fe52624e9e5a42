# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes version of a cluster is that of its image, and never a guess."""

from __future__ import annotations

from typing import Any

from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

UNKNOWN = (
    "The image has no property 'kube_version', so its Kubernetes version is not known. Set it on "
    "image 'ubuntu-kube', for example kube_version=v1.36.3, choose another image, or set the label "
    "kube_tag (for an upgrade, in the new template)."
)
INVALID = (
    "Property 'kube_version' of the image is not a full Kubernetes version. Image 'ubuntu-kube' "
    "has '{}': set it to one like v1.36.3, or choose another image."
)
DIFFERENT = (
    "Label 'kube_tag' and the image have different Kubernetes versions. The label is v1.34.5, and "
    "image 'ubuntu-kube' has v1.34.4. Use a label and an image that agree."
)


class TestImageVersion(DriverCase):
    def refused(self, version: str, words: str, **changes: Any) -> None:
        """A create with an image of that property ends with these words and touches nothing."""
        self.cloud.images["ubuntu-kube"] = ("image-1", version)
        cluster = self.create(**changes)
        self.assertEqual(("CREATE_FAILED", words), (cluster.status, cluster.status_reason))
        self.assertIsNone(cluster.stack_id)
        self.assertEqual([], list(self.kube.everything()))
        self.assertEqual(({}, []), (self.cloud.credentials, self.helm.runs))
        self.assertEqual(([], []), (self.cloud.openstack.groups, self.cloud.openstack.addresses))
        self.delete()
        self.status_task()

    def test_none_or_no_version_is_refused_before_anything_is_touched(self) -> None:
        self.refused("", UNKNOWN)
        for version in ("latest", "1.34", "1.34.4 beta", "1.034.4"):
            self.refused(version, INVALID.format(version))
        self.refused("1.34.4", DIFFERENT, labels={"kube_tag": "v1.34.5"})

    def test_a_label_says_it_for_an_image_that_does_not(self) -> None:
        self.cloud.images["ubuntu-kube"] = ("image-1", "")
        self.create(labels={"kube_tag": "v1.34.4"})
        self.assertEqual("1.34.4", self.helm.live(NAMESPACE, RELEASE).values["kubernetesVersion"])

    def test_a_cluster_keeps_it_when_the_image_says_it_no_more(self) -> None:
        self.made()
        for version in ("", "latest"):
            self.cloud.images["ubuntu-kube"] = ("image-1", version)
            self.resize(2 if version else 3)
            self.capi_converges()
            self.status_task(2)
            self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual("1.34.4", self.helm.live(NAMESPACE, RELEASE).values["kubernetesVersion"])
