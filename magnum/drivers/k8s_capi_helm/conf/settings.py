# SPDX-License-Identifier: Apache-2.0
"""Settings: the options that the driver reads of Magnum's configuration, with their types.

``oslo.config`` has no types to check, so this says what ``magnum.conf.CONF`` looks like to the
driver. It is handed down as it is: an option that oslo.config reloads is the new one in the next
reconciliation.
"""

from __future__ import annotations

from typing import Any, Protocol


class CapiHelm(Protocol):
    """The group ``[capi_helm]``."""

    addon_check_interval: float
    addon_cred_roles: list[str]
    allow_chart_family_change: bool
    allowed_chart_versions: list[str]
    allowed_charts: list[str]
    api_resources: str
    app_cred_interface_type: str
    app_cred_roles: list[str]
    autoscaler_image: str
    autoscaler_image_tags: list[str]
    bare_metal_start_timeout: int
    chart_directory: str
    controller_leases: list[str]
    controller_silence: float
    correct_autoscalers: bool
    csi_cinder_allowed_topologies: list[str]
    csi_cinder_default_volume_type: str | None
    default_helm_chart_version: str
    delete_timeout: int
    helm_chart_name: str
    helm_chart_repo: str
    helm_timeout: int
    ignore_keypairs: bool
    k8s_control_plane_resource_conditions: list[str]
    kubeconfig_file: str
    lease_duration: float
    lock_wait: float
    management_breaker_failures: int
    management_breaker_pause: float
    management_clusters: list[str]
    management_connect_timeout: float
    management_read_timeout: float
    max_helm_runs: int
    metrics_directory: str
    metrics_port: int
    minimum_flavor_ram: int
    minimum_flavor_vcpus: int
    namespace_prefix: str
    overlay_directory: str
    pod_security_level: str
    policy_file: str
    preflight_quota: bool
    separate_addon_credential: bool
    server_start_timeout: int
    update_timeout: int
    watch_staleness: float


class Drivers(Protocol):
    """What of Magnum's own group ``[drivers]`` is read."""

    openstack_ca_file: str
    verify_ca: bool


class Cinder(Protocol):
    """What of Magnum's own group ``[cinder]`` is read."""

    default_boot_volume_size: int | None
    default_boot_volume_type: str | None


class Settings(Protocol):
    """Magnum's configuration, as far as the driver reads it."""

    capi_helm: CapiHelm
    drivers: Drivers
    cinder: Cinder

    def __getitem__(self, group: str) -> Any:
        """A group by its name."""

    def __contains__(self, group: object) -> bool:
        """Whether there is such a group."""

    def register_group(self, group: Any) -> None:
        """Make a group known."""

    def register_opts(self, opts: Any, group: Any = None) -> None:
        """Make options of a group known; idempotent."""

    def get_location(self, name: str, group: str | None = None) -> Any:
        """Where an option is set, an ``oslo_config.cfg.LocationInfo``; None for no option."""
