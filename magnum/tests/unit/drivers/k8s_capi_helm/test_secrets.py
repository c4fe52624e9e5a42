# SPDX-License-Identifier: Apache-2.0
"""The Secrets carry what Cluster API and the cloud need, and say whose they are."""

import base64
import dataclasses

import testtools
import yaml

from magnum.drivers.k8s_capi_helm.model import ApplicationCredential, names, secrets

OWNER = secrets.Owner("demo-abcdefghijkl", "magnum-p1", "p1", "u1", "c1")
CREDENTIAL = ApplicationCredential("id-1", "s3cret", "magnum-demo")


def decoded(secret):
    return {key: base64.b64decode(text).decode() for key, text in secret["data"].items()}


class TestCredential(testtools.TestCase):
    def clouds(self, **kwargs):
        wanted = {"auth_url": "http://keystone/v3", "region": "RegionOne", "interface": "internal"}
        text = secrets.clouds_yaml(CREDENTIAL, verify=True, **{**wanted, **kwargs})
        return yaml.safe_load(text)["clouds"][names.CLOUD_NAME]

    def test_interface_is_spelled_for_both_readers(self):
        cloud = self.clouds()
        self.assertEqual("internal", cloud["interface"])
        self.assertEqual("internal", cloud["endpoint_type"])

    def test_region_with_other_letters_survives(self):
        self.assertEqual("zürich-1", self.clouds(region="zürich-1")["region_name"])

    def test_no_region_is_no_key(self):
        self.assertNotIn("region_name", self.clouds(region=None))

    def test_secret_holds_clouds_and_bundle_and_its_owner(self):
        secret = secrets.credential_secret(OWNER, "clouds: {}", "PEM")
        self.assertEqual({"clouds.yaml": "clouds: {}", "cacert": "PEM"}, decoded(secret))
        self.assertEqual("demo-abcdefghijkl-cloud-credentials", secret["metadata"]["name"])
        self.assertEqual(
            {
                "magnum.openstack.org/project-id": "p1",
                "magnum.openstack.org/user-id": "u1",
                "magnum.openstack.org/cluster-uuid": "c1",
                "cluster.x-k8s.io/cluster-name": "demo-abcdefghijkl",
                "clusterctl.cluster.x-k8s.io/move": "",
            },
            secret["metadata"]["labels"],
        )

    def test_credential_is_read_back(self):
        text = secrets.clouds_yaml(
            CREDENTIAL, auth_url="http://k/v3", region=None, interface="public", verify=True
        )
        secret = secrets.credential_secret(OWNER, text, "")
        [found] = secrets.credentials_of(secret)
        self.assertEqual(("id-1", "s3cret"), (found.id, found.secret))
        self.assertFalse(secrets.has_addon_credential(secret))

    def test_both_credentials_are_read_back(self):
        about = {"auth_url": "http://k/v3", "region": None, "interface": "public", "verify": True}
        inside = dataclasses.replace(CREDENTIAL, id="id-2")
        texts = [secrets.clouds_yaml(one, **about) for one in (CREDENTIAL, inside)]
        secret = secrets.credential_secret(OWNER, texts[0], "", texts[1])
        self.assertEqual(["id-1", "id-2"], [one.id for one in secrets.credentials_of(secret)])
        self.assertTrue(secrets.has_addon_credential(secret))

    def test_secret_without_credential_has_none(self):
        for secret in (None, {}, {"data": {}}, secrets.credential_secret(OWNER, "clouds: {}", "")):
            self.assertEqual((), secrets.credentials_of(secret))

    def test_secret_text_is_not_in_the_credentials_repr(self):
        self.assertNotIn("s3cret", repr(CREDENTIAL))


class TestCertificateAuthorities(testtools.TestCase):
    def test_one_secret_for_each_purpose(self):
        pairs = {
            purpose: secrets.KeyPair(f"cert {purpose}", f"key {purpose}")
            for purpose in names.CA_PURPOSES
        }
        made = secrets.ca_secrets(OWNER, pairs)
        self.assertEqual(
            {
                f"demo-abcdefghijkl-{purpose}": {
                    "tls.crt": f"cert {purpose}",
                    "tls.key": f"key {purpose}",
                }
                for purpose in ("ca", "etcd", "proxy", "sa")
            },
            {secret["metadata"]["name"]: decoded(secret) for secret in made},
        )
        self.assertEqual({"cluster.x-k8s.io/secret"}, {secret["type"] for secret in made})

    def test_key_is_not_in_the_repr(self):
        self.assertNotIn("private", repr(secrets.KeyPair("public", "private")))
