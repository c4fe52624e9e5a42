# SPDX-License-Identifier: Apache-2.0
"""Magnum's API as a tenant uses it: the newest microversion, rows as Magnum shows them."""

from __future__ import annotations

import dataclasses
from typing import Any

Json = dict[str, Any]

#: https://docs.openstack.org/magnum/latest/ "REST API Version History": nodegroups with 0 nodes
#: need 1.10, node_labels and node_taints 1.14.
_VERSION = {"OpenStack-API-Version": "container-infra latest"}

#: Seconds: the API of Magnum 20 has four processes, and the SDK repeats what has taken too long.
_TIMEOUT = 300


class Refused(Exception):
    """Magnum's API said no.

    :ivar status: HTTP status.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"HTTP {status}: {text}")
        self.status = status


@dataclasses.dataclass(frozen=True)
class Rows:
    """A cluster's row, read last, and by name those of its nodegroups in the list's few fields."""

    cluster: Json
    groups: dict[str, Json]

    @property
    def status(self) -> str:
        return str(self.cluster["status"])

    @property
    def reason(self) -> str:
        return self.cluster.get("status_reason") or ""

    @property
    def release(self) -> str:
        """Name of the Helm release and of the Cluster: ``stack_id`` until microversion 1.12."""
        return self.cluster.get("cluster_id") or self.cluster.get("stack_id") or ""

    @property
    def health(self) -> str:
        return self.cluster.get("health_status") or ""

    def has_failed(self, group: str) -> bool:
        """Whether a nodegroup that is there is in a FAILED state."""
        return group in self.groups and str(self.groups[group]["status"]).endswith("_FAILED")

    def __str__(self) -> str:
        groups = ", ".join(
            f"{name} {row['status']} {row['node_count']}" for name, row in self.groups.items()
        )
        return f"{self.status} ({groups}) {self.reason}".rstrip()


class MagnumApi:
    """Requests to Magnum with a tenant's token.

    :param connection: the tenant's connection of the SDK.
    """

    def __init__(self, connection: Any) -> None:
        self._adapter = connection.container_infrastructure_management

    def template(self, **fields: Any) -> str:
        """Make a cluster template; returns its uuid."""
        return str(self._ask("post", "/clustertemplates", json=fields)["uuid"])

    def delete_template(self, uuid: str) -> None:
        self._ask("delete", f"/clustertemplates/{uuid}")

    def create(self, **fields: Any) -> str:
        """Ask for a cluster; returns its uuid."""
        return str(self._ask("post", "/clusters", json=fields)["uuid"])

    def rows(self, uuid: str) -> Rows | None:
        """What Magnum shows of a cluster; None when the cluster is gone.

        The groups are read before the cluster: a cluster is complete after its groups, so what is
        returned is never younger groups beside an older cluster.
        """
        try:
            groups = self._ask("get", f"/clusters/{uuid}/nodegroups")["nodegroups"]
            cluster = self._ask("get", f"/clusters/{uuid}")
        except Refused as refusal:
            # Magnum removes the groups first, and has no answer for a cluster without masters.
            if refusal.status != 404 and "master_count" not in str(refusal):
                raise
            return None if self._is_gone(uuid) else self.rows(uuid)
        return Rows(cluster, {row["name"]: row for row in groups})

    def group(self, uuid: str, name: str) -> Json:
        """All fields of a nodegroup's row."""
        return self._ask("get", f"/clusters/{uuid}/nodegroups/{name}")

    def update(self, uuid: str, **fields: Any) -> None:
        """``coe cluster update UUID replace ...``."""
        self._ask("patch", f"/clusters/{uuid}", json=_replacing(fields))

    def resize(self, uuid: str, count: int, **fields: Any) -> None:
        self._ask("post", f"/clusters/{uuid}/actions/resize", json={"node_count": count, **fields})

    def upgrade(self, uuid: str, template: str, **fields: Any) -> None:
        body = {"cluster_template": template, "max_batch_size": 1, **fields}
        self._ask("post", f"/clusters/{uuid}/actions/upgrade", json=body)

    def rotate_credential(self, uuid: str) -> None:
        self._ask("patch", f"/credentials/{uuid}")

    def create_group(self, uuid: str, name: str, count: int, **fields: Any) -> None:
        group = {"name": name, "node_count": count, "role": "worker", **fields}
        self._ask("post", f"/clusters/{uuid}/nodegroups", json=group)

    def update_group(self, uuid: str, name: str, **fields: Any) -> None:
        self._ask("patch", f"/clusters/{uuid}/nodegroups/{name}", json=_replacing(fields))

    def delete_group(self, uuid: str, name: str) -> None:
        self._ask("delete", f"/clusters/{uuid}/nodegroups/{name}")

    def delete(self, uuid: str) -> None:
        self._ask("delete", f"/clusters/{uuid}")

    def authority(self, uuid: str) -> str:
        """PEM of the cluster's certificate authority."""
        return str(self._ask("get", f"/certificates/{uuid}")["pem"])

    def rotate_authorities(self, uuid: str) -> None:
        self._ask("patch", f"/certificates/{uuid}")

    def sign(self, uuid: str, request: str) -> str:
        """PEM of a certificate that Magnum signs for a certificate signing request."""
        body = {"cluster_uuid": uuid, "csr": request}
        return str(self._ask("post", "/certificates", json=body)["pem"])

    def _is_gone(self, uuid: str) -> bool:
        try:
            self._ask("get", f"/clusters/{uuid}")
        except Refused as refusal:
            return refusal.status == 404
        return False

    def _ask(self, verb: str, path: str, **more: Any) -> Json:
        answer = self._adapter.request(
            path, verb.upper(), headers=dict(_VERSION), raise_exc=False, timeout=_TIMEOUT, **more
        )
        if answer.status_code >= 400:
            raise Refused(answer.status_code, answer.text[:2000])
        parsed: Json = answer.json() if answer.content else {}
        return parsed


def _replacing(fields: Json) -> list[Json]:
    """A JSON patch."""
    return [{"op": "replace", "path": f"/{key}", "value": fields[key]} for key in fields]
