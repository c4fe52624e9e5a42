# SPDX-License-Identifier: Apache-2.0
"""With which credential a cluster's addons log in, and which never gets into the cluster."""

from __future__ import annotations

import base64
import json
import unittest

import jinja2
import yaml

from magnum.tests.functional.k8s_capi_helm.charts import addon_operator, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object

MACHINES, ADDONS = "credential-of-machines", "credential-of-addons"
BOTH = ("cloud-config", "csi-manila-storageclass")


def cloud(name: str) -> Object:
    auth = {
        "auth_url": "https://keystone.example.org/v3",
        "application_credential_id": name,
        "application_credential_secret": f"secret-{name}",
    }
    return {"auth": auth, "auth_type": "v3applicationcredential"}


def clouds(name: str) -> str:
    return yaml.safe_dump({"clouds": {"openstack": cloud(name)}})


class AddonCredentialTest(unittest.TestCase):
    """The Secret of the cluster has both."""

    identity = addon_operator.credential(
        cloud(MACHINES), **{"addon-clouds.yaml": clouds(ADDONS), "cacert": "PEM"}
    )

    def inside(self, component: str, *, separate: bool, identity: Object | None = None) -> str:
        """Everything that an addon puts into the cluster, with what is Base64 as text."""
        given = rendering.scenarios(rendering.ADDONS)["shared-filesystems"].values
        change = {"openstack.enabled": True, "openstack.separateCredential": separate}
        objects = rendering.render(rendering.ADDONS, rendering.changed(given, change))
        found = addon_operator.manifests(objects, component, identity=identity or self.identity)
        packed = [text for one in found for text in (one.get("data") or {}).values()]
        return json.dumps(found) + "".join(base64.b64decode(text).decode() for text in packed)

    def test_only_the_chosen_one_gets_into_the_cluster(self) -> None:
        for component in BOTH:
            for separate, yes, no in ((True, ADDONS, MACHINES), (False, MACHINES, ADDONS)):
                with self.subTest(component=component, separate=separate):
                    text = self.inside(component, separate=separate)
                    self.assertIn(f"secret-{yes}", text)
                    self.assertNotIn(f"secret-{no}", text)

    def test_it_stands_where_the_addons_look(self) -> None:
        given = rendering.scenarios(rendering.ADDONS)["standalone"].objects
        [secret] = addon_operator.manifests(given, "cloud-config", identity=self.identity)
        self.assertEqual({"clouds.yaml", "cacert"}, set(secret["data"]))
        found = yaml.safe_load(base64.b64decode(secret["data"]["clouds.yaml"]))
        self.assertEqual(cloud(ADDONS), found["clouds"]["openstack"])

    def test_without_it_nothing_is_installed_rather_than_the_other(self) -> None:
        alone = {"data": {"clouds.yaml": self.identity["data"]["clouds.yaml"]}}
        for component in BOTH:
            wrong = (TypeError, jinja2.UndefinedError)
            with self.subTest(component=component), self.assertRaises(wrong):
                self.inside(component, separate=True, identity=alone)
