# SPDX-License-Identifier: Apache-2.0
"""Labels of Magnum's other drivers that are not supported: reason and alternative."""

from __future__ import annotations

from collections.abc import Mapping

#: What asks for nothing: a switch that is off is no reason to refuse.
_OFF = frozenset({"", "false", "no", "off", "0", "n", "f", "none"})
_ON = frozenset({"", "true", "yes", "on", "1", "y", "t"})

_MONITORING = (
    "Create an Ingress for the services in the namespace monitoring-system yourself, with the "
    "authentication that you want."
)
_ADAPTER = (
    "metrics-server gives autoscaling of pods its metrics; install prometheus-adapter yourself "
    "for others."
)

#: Why a label is refused and what to use, by its name. Only where it would ask for something, and
#: only when a cluster is made or takes it from a new template.
REFUSED: Mapping[str, str] = {
    "different_failure_domain": (
        "It needs a filter of Nova's scheduler that OpenStack does not have. Use "
        "control_plane_availability_zones, and availability_zone of nodegroups."
    ),
    "flannel_network_cidr": (
        "Flannel is not supported. Use calico_ipv4pool or cilium_ipv4pool, with the network driver "
        "calico or cilium."
    ),
    "calico_ipv4pool_ipip": "Pods always reach each other through VXLAN. Leave it out.",
    "cloud_provider_enabled": (
        "Nodes always need the OpenStack cloud controller. Leave it out, or set it to true."
    ),
    "grafana_admin_passwd": (
        "Everybody who sees the cluster would see the password. Grafana creates its own, in the "
        "Secret kube-prometheus-stack-grafana of the namespace monitoring-system."
    ),
    "monitoring_ingress_enabled": _MONITORING,
    "cluster_basic_auth_secret": _MONITORING,
    "cluster_root_domain_name": _MONITORING,
    "prometheus_adapter_enabled": _ADAPTER,
    "prometheus_adapter_configmap": _ADAPTER,
    "prometheus_monitoring": "Use monitoring_enabled.",
    "influx_grafana_dashboard_enabled": "Use monitoring_enabled.",
    "heapster_enabled": "Use metrics_server_enabled.",
    "ingress_controller_role": (
        "The ingress controller runs on any worker. Leave it out, and set its nodeSelector "
        "yourself in the cluster."
    ),
}
#: What a refused label may say all the same, where that is not "off".
_HARMLESS = {"cloud_provider_enabled": _ON}

#: Versions of what comes with the chart, with Kubernetes or not at all.
BUNDLED = frozenset(
    {
        "coredns_tag",
        "draino_tag",
        "etcd_tag",
        "flannel_cni_tag",
        "flannel_tag",
        "grafana_tag",
        "helm_client_tag",
        "kube_dashboard_version",
        "magnum_auto_healer_tag",
        "metrics_scraper_tag",
        "metrics_server_chart_tag",
        "nginx_ingress_controller_chart_tag",
        "nginx_ingress_controller_tag",
        "octavia_ingress_controller_tag",
        "prometheus_adapter_chart_tag",
        "prometheus_operator_chart_tag",
        "prometheus_tag",
        "traefik_ingress_controller_tag",
    }
)
#: What the cloud's operator chooses, for it runs beside the cloud's other clusters, and why.
OPERATORS: Mapping[str, str] = {
    "autoscaler_tag": (
        "the cluster autoscaler runs outside of the cluster, in the version that this cloud's "
        "operator sets for the cluster's Kubernetes version."
    ),
}
#: What only Magnum's Heat driver needed.
HEAT = frozenset(
    {
        "auto_healing_controller",
        "cert_manager_api",
        "cgroup_driver",
        "container_runtime",
        "containerd_tarball_sha256",
        "containerd_tarball_url",
        "containerd_version",
        "flannel_backend",
        "flannel_network_subnetlen",
        "heat_container_agent_tag",
        "helm_client_sha256",
        "helm_client_url",
        "hyperkube_prefix",
        "kube_image_digest",
        "ostree_commit",
        "ostree_remote",
        "selinux_mode",
        "system_pods_initial_delay",
        "system_pods_timeout",
        "use_podman",
    }
)


def has_effect(name: str, text: str) -> bool:
    """Whether a refused label with this text asks for something that cannot be had."""
    return name in REFUSED and text.strip().casefold() not in _HARMLESS.get(name, _OFF)
