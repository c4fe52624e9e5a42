# SPDX-License-Identifier: Apache-2.0
"""A Magnum's configuration and templates, and the played OpenStack.

That is in a file, because it outlives the conductors that use it.
"""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
import threading
import types
from typing import Any
import uuid

from magnum.drivers.k8s_capi_helm.model import ApplicationCredential
from magnum.tests.functional.k8s_capi_helm.adoption.setting import TEMPLATE
from magnum.tests.unit.drivers.k8s_capi_helm import fakes
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import FakeCloud
from sandbox.cloud.ini import ini

#: Image of the next template, and that.
NEXT = "ubuntu-kube-1.35"
NEXT_TEMPLATE = "21111111-2222-4333-8444-555555555555"
TEMPLATES = (
    TEMPLATE,
    {**TEMPLATE, "uuid": NEXT_TEMPLATE, "name": "next", "image_id": NEXT},
)
_IMAGES = {
    "ubuntu-kube": ("2b8a4d0a-6d3c-4a7f-8d27-3f0f2f4a9b01", "1.34.4"),
    NEXT: ("2b8a4d0a-6d3c-4a7f-8d27-3f0f2f4a9b02", "1.35.2"),
}
_NETWORK = "9f1f4a0e-6d3c-4a7f-8d27-3f0f2f4a9b01"
#: What configures a Magnum, in its directory.
CONFIGURATION = "magnum.conf"
#: What its conductors write, in the same directory.
LOG = "conductor.log"
_NOTHING: dict[str, Any] = {"groups": [], "addresses": [], "credentials": {}}


def configure(place: Path, **options: str) -> None:
    """Write the configuration of a Magnum that has a directory for itself.

    :param options: of ``[capi_helm]``.
    """
    groups = {
        "DEFAULT": {"transport_url": "fake:/", "state_path": str(place), "use_stderr": "true"},
        "database": {"connection": f"sqlite:///{place}/magnum.sqlite?timeout=60"},
        "oslo_messaging_notifications": {"driver": "noop"},
        "certificates": {"cert_manager_type": "x509keypair"},
        "x509": {"rsa_key_size": "1024"},
        "capi_helm": options,
    }
    (place / CONFIGURATION).write_text(ini(groups))


class Project:
    """What is in a project; one conductor at a time reads and writes it, in any of its threads.

    :param path: of the file; it is either the old one or the new one, whenever somebody is killed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = threading.Lock()

    def read(self) -> dict[str, Any]:
        """Server groups, floating IPs and application credentials."""
        if not self._path.exists():
            return dict(_NOTHING)
        found: dict[str, Any] = json.loads(self._path.read_text())
        return found

    def keep(self, **changed: Any) -> None:
        """From now on these are there."""
        new = self._path.with_suffix(".new")
        with self._writing:
            # Another thread may add to what is being written.
            there = {key: copy.copy(found) for key, found in changed.items()}
            new.write_text(json.dumps({**self.read(), **there}, default=vars))
            os.replace(new, self._path)


class OpenStack(fakes.FakeOpenStack):
    """Server groups and floating IPs that stay."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._kept = project
        found = project.read()
        self.groups = [types.SimpleNamespace(**one) for one in found["groups"]]
        self.addresses = [types.SimpleNamespace(**one) for one in found["addresses"]]

    def _create_server_group(self, **wanted: str) -> Any:
        made = super()._create_server_group(**wanted)
        made.id = str(uuid.uuid4())
        self._kept.keep(groups=self.groups)
        return made

    def _delete_server_group(self, group_id: str, **more: bool) -> None:
        super()._delete_server_group(group_id, **more)
        self._kept.keep(groups=self.groups)

    def _create_ip(self, **wanted: str) -> Any:
        made = super()._create_ip(**wanted)
        made.id = str(uuid.uuid4())
        self._kept.keep(addresses=self.addresses)
        return made

    def _delete_ip(self, address_id: str, **more: bool) -> None:
        super()._delete_ip(address_id, **more)
        self._kept.keep(addresses=self.addresses)


class Cloud(FakeCloud):
    """The cloud of the driver's other tests, whose project stays."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self.kept = project
        self.credentials = project.read()["credentials"]
        self.images = dict(_IMAGES)
        self.openstack = OpenStack(project)
        self.external = _NETWORK

    def create_credential(
        self, user_id: str, name: str, text: str, roles: Any
    ) -> ApplicationCredential:
        made = super().create_credential(user_id, name, text, roles)
        self.kept.keep(credentials=self.credentials)
        return made

    def delete_credential(self, user_id: str, credential_id: str) -> None:
        super().delete_credential(user_id, credential_id)
        self.kept.keep(credentials=self.credentials)
