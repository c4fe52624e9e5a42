# SPDX-License-Identifier: Apache-2.0
"""What leaves the host has no secrets in it, and is readable all the same."""

from __future__ import annotations

import base64
import json
import string
from typing import Any
import urllib.parse

from hypothesis import given, settings, strategies
from oslotest import base as test_base

from magnum.drivers.k8s_capi_helm.commands.output.secret_mask import (
    MASK,
    SecretMask,
    secrets_of_text,
)

SECRET = "s3cr3t-of-the-tenant"  # noqa: S105 - of a test
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    "MIIEpAIBAAKCAQEAx5mYlQ0oQ2p4f7fG0w8n3yqzq1m4b1\n"
    "-----END RSA PRIVATE KEY-----"
)
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl"
FERNET = f"gAAAA{'Bk9' * 20}=="


class TestByTheKey(test_base.BaseTestCase):
    def test_what_is_a_secret_by_its_key(self) -> None:
        for key in (
            "password",
            "adminPassword",
            "trustee_password",
            "application_credential_secret",
            "token",
            "client-key-data",
            "privateKey",
            "htpasswd",
            "clouds.yaml",
            ".dockerconfigjson",
            "userData",
            "secretKey",
        ):
            self.assertEqual({key: MASK}, SecretMask().json({key: SECRET}), key)
            inside = SecretMask().json({key: {"a": [SECRET, 1, True, None]}})
            self.assertEqual({key: {"a": [MASK, 1, True, None]}}, inside, key)

    def test_what_only_names_a_secret_stays(self) -> None:
        for key, value in (
            ("cloudCredentialsSecretName", "demo-cloud-credentials"),
            ("secretRef", {"name": "demo", "key": "value"}),
            ("secretKeyRef", {"name": "demo", "key": "password"}),
            ("tokenFile", "/var/run/token"),
            ("kubeconfig_file", "/etc/magnum/kubeconfig"),
            ("app_cred_roles", ["member"]),
            ("image", "registry.k8s.io/pause:3.10"),
            ("tokenTTL", "24h0m0s"),
        ):
            self.assertEqual({key: value}, SecretMask().json({key: value}), key)

    def test_names_beside_secrets_stay(self) -> None:
        pull_secrets = {"imagePullSecrets": [{"name": "mine", "auth": SECRET}]}
        self.assertEqual(
            {"imagePullSecrets": [{"name": "mine", "auth": MASK}]}, SecretMask().json(pull_secrets)
        )

    def test_a_variable_with_the_name_of_a_secret(self) -> None:
        found = SecretMask().json(
            [{"name": "OS_PASSWORD", "value": SECRET}, {"name": "A", "value": "b"}]
        )
        self.assertEqual(
            [{"name": "OS_PASSWORD", "value": MASK}, {"name": "A", "value": "b"}], found
        )

    def test_files_and_manifests_of_secrets_are_only_measured(self) -> None:
        manifest = f"apiVersion: v1\nkind: Secret\nstringData:\n  a: {SECRET}\n"
        found = SecretMask().json({"content": SECRET, "template": manifest})
        self.assertEqual(
            {
                "content": f"{MASK} ({len(SECRET)} bytes)",
                "template": f"{MASK} ({len(manifest)} bytes)",
            },
            found,
        )


class TestByTheForm(test_base.BaseTestCase):
    def test_what_is_a_secret_by_its_form(self) -> None:
        for text, masked in (
            (f"key: {PEM} end", f"key: {MASK} end"),
            (PEM.partition("-----END")[0], MASK),
            (f"Authorization: Bearer {JWT}", f"Authorization: Bearer {MASK}"),
            (f"X-Auth-Token was {FERNET}", f"X-Auth-Token was {MASK}"),
            ("kubeadm join --token abcdef.0123456789abcdef", f"kubeadm join --token {MASK}"),
            (f"https://user:{SECRET}@proxy.example:3128/", "https://proxy.example:3128/"),
            (f"--registry-token={SECRET}", f"--registry-token={MASK}"),
            (f"password: {SECRET}, next", f"password: {MASK}, next"),
            (
                f"Authorization: Basic {base64.b64encode(SECRET.encode()).decode()}",
                f"Authorization: Basic {MASK}",
            ),
        ):
            self.assertEqual(masked, SecretMask().text(text))

    def test_sentences_stay(self) -> None:
        for text in (
            "no such Secret: demo-cloud-credentials",
            "The credential is refused. Rotate it.",
            "basic authentication is not offered",
            "quota: Quota exceeded for cores: requested 4, but already used 10 of 10 cores",
            "image registry.k8s.io/kube-apiserver:v1.34.4 cannot be pulled",
        ):
            self.assertEqual(text, SecretMask().text(text))


class TestByTheValue(test_base.BaseTestCase):
    def test_secrets_of_files(self) -> None:
        for text, expected in (
            (
                f"clouds: {{openstack: {{auth: {{application_credential_secret: {SECRET}}}}}}}",
                {SECRET},
            ),
            (
                f"users: [{{name: a, user: {{token: {SECRET}, client-certificate-data: b}}}}]",
                {SECRET},
            ),
            (SECRET, {SECRET}),
            (f"{{not yaml: [{SECRET}", {f"{{not yaml: [{SECRET}"}),
        ):
            self.assertEqual(expected, set(secrets_of_text(text)))
        self.assertIn("MIIEpAIBAAKCAQEAx5mYlQ0oQ2p4f7fG0w8n3yqzq1m4b1", set(secrets_of_text(PEM)))

    def test_short_values_are_no_secrets(self) -> None:
        self.assertEqual("the admin says", SecretMask(["admin", ""]).text("the admin says"))

    def test_a_secret_that_begins_with_another_one(self) -> None:
        mask = SecretMask([SECRET, f"{SECRET}-and-more"])
        self.assertEqual(f"{MASK} {MASK}", mask.text(f"{SECRET}-and-more {SECRET}"))

    @settings(max_examples=200, deadline=None)
    @given(
        secret=strategies.text(
            string.ascii_letters + string.digits + "+/=&'\"\\: é\n", min_size=8
        ).filter(lambda text: len(text.strip()) >= 8),
        before=strategies.text(max_size=20),
        after=strategies.text(max_size=20),
    )
    def test_a_known_secret_is_nowhere(self, secret: str, before: str, after: str) -> None:
        forms = (
            secret,
            base64.b64encode(secret.encode()).decode(),
            urllib.parse.quote(secret, safe=""),
        )
        mask = SecretMask([secret])
        for form in forms:
            value: Any = {"a": [f"{before}{form}{after}"], f"{form}": 1}
            for shown in (mask.text(f"{before}{form}{after}"), json.dumps(mask.json(value))):
                self.assertFalse(
                    [one for one in forms if one in shown and one not in MASK], (form, shown)
                )
