# SPDX-License-Identifier: Apache-2.0
"""How manifests of a module become those of a sandbox."""

import base64
from pathlib import Path
import shutil
import tempfile
from typing import Any
import unittest

import yaml

from sandbox.management import manifests

AUTHORITY = b"-----BEGIN CERTIFICATE-----"
ADDRESSES = {"capi-core": "https://127.0.0.1:20001", "capo": "https://127.0.0.1:20002"}


def crd(*versions: str) -> dict[str, Any]:
    return {
        "kind": manifests.CRD,
        "metadata": {"name": "clusters.cluster.x-k8s.io"},
        "spec": {"versions": [{"name": version} for version in versions]},
        "status": {"conditions": []},
    }


def webhooks() -> dict[str, Any]:
    service = {"name": "webhook-service", "namespace": "system", "path": "/validate-x"}
    return {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "validating-webhook-configuration"},
        "webhooks": [{"name": "x", "clientConfig": {"service": service}}],
    }


def localized(manager: str, document: dict[str, Any]) -> dict[str, Any]:
    entry = {"manager": manager, "document": document}
    (found,) = manifests.localize([entry], ADDRESSES, AUTHORITY)
    return found


class TestLocalize(unittest.TestCase):
    def test_a_webhook_is_an_address_on_loopback_that_the_authority_vouches_for(self) -> None:
        found = localized("capi-core", webhooks())
        client = found["webhooks"][0]["clientConfig"]
        self.assertEqual("https://127.0.0.1:20001/validate-x", client["url"])
        self.assertEqual(AUTHORITY, base64.b64decode(client["caBundle"]))
        self.assertNotIn("service", client)

    def test_webhooks_of_two_providers_do_not_overwrite_each_other(self) -> None:
        names = {localized(name, webhooks())["metadata"]["name"] for name in ADDRESSES}
        self.assertEqual(2, len(names))

    def test_a_kind_with_two_versions_is_converted_by_its_manager(self) -> None:
        conversion = localized("capi-core", crd("v1beta1", "v1beta2"))["spec"]["conversion"]
        self.assertEqual("Webhook", conversion["strategy"])
        url = conversion["webhook"]["clientConfig"]["url"]
        self.assertEqual("https://127.0.0.1:20001/convert", url)

    def test_a_kind_with_one_version_or_without_manager_is_not(self) -> None:
        for manager, versions in (("capo", ("v1beta1",)), ("", ("v1alpha1", "v1beta1"))):
            self.assertNotIn("conversion", localized(manager, crd(*versions))["spec"])

    def test_what_was_read_stays_as_it_is(self) -> None:
        document = webhooks()
        localized("capo", document)
        self.assertEqual(webhooks(), document)


class TestRead(unittest.TestCase):
    def setUp(self) -> None:
        self.config = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.config)
        self.write("crd/bases/a.yaml", crd("v1"))
        self.write("crd/bases/a_images.yaml", crd("v2"))
        self.write("crd/kustomization.yaml", {"labels": [{"pairs": {"contract": "v1"}}]})

    def write(self, name: str, document: dict[str, Any]) -> None:
        path = self.config / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(document))

    def test_contract_labels_are_set_and_status_is_left_away(self) -> None:
        for document in manifests.read(self.config):
            self.assertEqual({"contract": "v1"}, document["metadata"]["labels"])
            self.assertNotIn("status", document)

    def test_kustomizes_older_name_of_labels_is_read(self) -> None:
        self.write("crd/kustomization.yaml", {"commonLabels": {"contract": "v1alpha7_v1"}})
        for document in manifests.read(self.config):
            self.assertEqual({"contract": "v1alpha7_v1"}, document["metadata"]["labels"])

    def test_only_some_files_can_be_taken(self) -> None:
        (document,) = manifests.read(self.config, "_images")
        self.assertEqual("v2", document["spec"]["versions"][0]["name"])

    def test_webhooks_come_along(self) -> None:
        self.write("webhook/manifests.yaml", webhooks())
        kinds = [document["kind"] for document in manifests.read(self.config)]
        self.assertEqual([manifests.CRD] * 2 + ["ValidatingWebhookConfiguration"], kinds)
