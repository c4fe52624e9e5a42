# SPDX-License-Identifier: Apache-2.0
"""The Secret with the credential, where the chart makes it itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.infrastructure import rendered, template_names
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object

JANITOR = "janitor.capi.stackhpc.com"


class CredentialTest(unittest.TestCase):
    CLOUDS: Mapping[str, Any] = {
        "openstack": {"auth": {"auth_url": "https://a.example.org", "user_id": "0123"}},
        "b": {"auth": {"auth_url": "https://b.example.org", "password": "a: b #{{ c }}"}},
    }

    def secret(self, **change: Any) -> Object:
        objects = rendered(cloudCredentialsSecretName=None, clouds=self.CLOUDS, **change)
        found = rendering.only(objects, "Secret")
        self.assertEqual(
            found["metadata"]["name"],
            rendering.only(objects, "OpenStackCluster")["spec"]["identityRef"]["name"],
        )
        return found

    def test_only_the_chosen_cloud_is_in_it_and_is_called_openstack(self) -> None:
        for name in self.CLOUDS:
            found = self.secret(cloudName=name)
            self.assertEqual("demo-cloud-credentials", found["metadata"]["name"])
            self.assertEqual(["clouds.yaml"], list(found["stringData"]))
            self.assertEqual(
                {"clouds": {"openstack": self.CLOUDS[name]}},
                yaml.safe_load(found["stringData"]["clouds.yaml"]),
            )

    def test_the_authority_arrives_as_it_is(self) -> None:
        text = "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n"
        self.assertEqual(text, self.secret(cloudCACert=text)["stringData"]["cacert"])

    def test_it_outlives_the_release_and_the_janitor_takes_it_if_told(self) -> None:
        notes = self.secret()["metadata"]["annotations"]
        self.assertEqual({"helm.sh/resource-policy": "keep"}, notes)
        notes = self.secret(credentialPolicy="delete")["metadata"]["annotations"]
        self.assertEqual("delete", notes[f"{JANITOR}/credential-policy"])

    def test_there_is_none_beside_a_secret_of_the_operators(self) -> None:
        self.assertEqual([], rendering.by_kind(rendered(), "Secret"))

    def test_it_moves_no_machine(self) -> None:
        objects = rendered(cloudCredentialsSecretName=None, clouds=self.CLOUDS)
        self.assertEqual(template_names(rendered()), template_names(objects))
