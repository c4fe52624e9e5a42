# SPDX-License-Identifier: Apache-2.0
"""The real barbican-kms-plugin between a real API server and the cloud's Barbican.

Both start with the flags and files that the chart gives a machine of the control plane; the
credential is one that may read the key, as the chart's page describes.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
import tempfile

from magnum.tests.functional.k8s_capi_helm.envtest import key_machine
from magnum.tests.functional.k8s_capi_helm.envtest.key_machine import KeyMachine, WRITTEN
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step

#: Barbican's policies ask for it since they follow Keystone's default roles.
_ROLE = "member"
_CLOUD = "openstack"


class BarbicanKey(Life):
    """A customer who encrypts Secrets with a key in Barbican."""

    name = "barbican-key"
    machine: KeyMachine
    key_id: str

    @step
    def create_key(self) -> None:
        """The customer makes the key."""
        found = self.customer.tenant.connection.key_manager.create_secret(
            name=self.name,
            algorithm="aes",
            bit_length=256,
            mode="cbc",
            secret_type="symmetric",
            payload=base64.b64encode(os.urandom(32)).decode(),
            payload_content_type="application/octet-stream",
            payload_content_encoding="base64",
        )
        self.key_id = found.secret_ref.rpartition("/")[2]

    @step
    def prepare_machine(self) -> None:
        """A machine has the credential that may read the key."""
        self._place = tempfile.TemporaryDirectory()
        self.machine = KeyMachine(Path(self._place.name))
        self.machine.keys["clouds.yaml"] = self._clouds()

    @step
    def encrypt(self) -> None:
        """A Secret is encrypted in etcd, and the API server reads it."""
        with self.machine.server(key_machine.values(self.key_id)):
            self.machine.make_secret("hidden")
            assert self.machine.says("hidden") == "it-is-hidden"
            assert WRITTEN in self.machine.stored()
            assert b"it-is-hidden" not in self.machine.stored()

    @step
    def read_after_restart(self) -> None:
        """Another process of the API server reads it, which has to ask Barbican for that."""
        with self.machine.server(key_machine.values(self.key_id)):
            assert self.machine.says("hidden") == "it-is-hidden"

    @ending
    def stop(self) -> None:
        """The machine is gone."""
        self.machine.stack.close()
        self._place.cleanup()

    @ending
    def delete_key(self) -> None:
        """The key is deleted."""
        self.customer.tenant.connection.key_manager.delete_secret(self.key_id)

    @ending
    def sweep(self) -> None:
        """The tenant can leave."""
        connection = self.customer.tenant.connection
        connection.identity.delete_application_credential(
            connection.current_user_id, self._credential
        )
        self.customer.tenant.leave()

    def _clouds(self) -> str:
        """A clouds.yaml with an application credential of the customer."""
        connection = self.customer.tenant.connection
        made = connection.identity.create_application_credential(
            connection.current_user_id, self.name, roles=[{"name": _ROLE}]
        )
        self._credential = made.id
        auth = {
            "auth_url": connection.config.get_auth_args()["auth_url"],
            "application_credential_id": made.id,
            "application_credential_secret": made.secret,
        }
        region = connection.config.get_region_name()
        cloud = {"auth": auth, "auth_type": "v3applicationcredential", "region_name": region}
        return json.dumps({"clouds": {_CLOUD: cloud}})


class TestBarbicanKey(LifeCase, life=BarbicanKey):
    """A test for each step."""
