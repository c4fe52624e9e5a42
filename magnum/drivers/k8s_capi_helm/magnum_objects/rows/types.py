# SPDX-License-Identifier: Apache-2.0
"""Types of the attributes of Magnum's objects that the driver reads and sets.

Source: ``magnum.objects``, whose fields are declared at run time. What a conductor always has is
not optional here; ``uuid`` and ``status`` are in Magnum's declaration.
"""

from __future__ import annotations

from collections.abc import Collection
import datetime
from typing import Any, Protocol


class _Saved(Protocol):
    """A record of Magnum's database."""

    uuid: str
    name: str
    project_id: str
    labels: dict[str, str] | None
    created_at: datetime.datetime | None
    updated_at: datetime.datetime | None

    def save(self) -> None: ...
    def obj_name(self) -> str: ...
    def obj_what_changed(self) -> set[str]: ...
    def obj_reset_changes(self, fields: Collection[str], /) -> None: ...


class ClusterTemplate(_Saved, Protocol):
    """``magnum.objects.ClusterTemplate``."""

    apiserver_port: int | None
    cluster_distro: str | None
    coe: str
    dns_nameserver: str | None
    docker_storage_driver: str | None
    driver: str | None
    external_network_id: str | None
    http_proxy: str | None
    https_proxy: str | None
    image_id: str
    insecure_registry: str | None
    network_driver: str | None
    no_proxy: str | None
    server_type: str | None

    def create(self) -> None: ...
    def destroy(self) -> None: ...


class NodeGroup(_Saved, Protocol):
    """``magnum.objects.NodeGroup``."""

    docker_volume_size: int | None
    flavor_id: str | None
    image_id: str | None
    is_default: bool
    max_node_count: int | None
    min_node_count: int
    node_addresses: list[str] | None
    node_count: int
    node_labels: dict[str, str] | None
    node_taints: list[dict[str, str]] | None
    role: str
    status: str
    status_reason: str | None
    version: str | None

    def destroy(self) -> None: ...


class Cluster(_Saved, Protocol):
    """``magnum.objects.Cluster``; reading ``nodegroups`` asks the database."""

    api_address: str | None
    ca_cert_ref: str | None
    cluster_template: ClusterTemplate
    cluster_template_id: str
    coe_version: str | None
    create_timeout: int | None
    docker_volume_size: int | None
    etcd_ca_cert_ref: str | None
    fixed_network: str | None
    fixed_subnet: str | None
    floating_ip_enabled: bool
    front_proxy_ca_cert_ref: str | None
    health_status: str | None
    health_status_reason: dict[str, str] | None
    keypair: str | None
    magnum_cert_ref: str | None
    master_lb_enabled: bool
    obj_context: Any
    stack_id: str | None
    status: str
    status_reason: str | None
    user_id: str

    @property
    def nodegroups(self) -> list[NodeGroup]: ...
    @property
    def default_ng_worker(self) -> NodeGroup: ...
    def __contains__(self, field: str, /) -> bool: ...
