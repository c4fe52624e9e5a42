# SPDX-License-Identifier: Apache-2.0
"""Values of the Kubernetes components: API server settings, kubeadm flags.

Flags stand in ``kubeadmConfigSpec``, which all charts of the contract lay over their own.
"""

from __future__ import annotations

from typing import Any

from magnum.drivers.k8s_capi_helm.labels import Labels
from magnum.drivers.k8s_capi_helm.model import CloudFacts, ClusterRequest, Json
from magnum.drivers.k8s_capi_helm.values.sections.network import has_floating_ip

#: Fields of KubeProxyConfiguration by the flag of kube-proxy
#: (https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/).
_PROXY_FIELDS = {
    "conntrack-max-per-core": ("conntrack", "maxPerCore"),
    "conntrack-min": ("conntrack", "min"),
    "ipvs-scheduler": ("ipvs", "scheduler"),
    "ipvs-strict-arp": ("ipvs", "strictARP"),
    "masquerade-all": ("iptables", "masqueradeAll"),
    "metrics-bind-address": ("metricsBindAddress",),
    "proxy-mode": ("mode",),
}
_NODE_RESTRICTION = "NodeRestriction"


def api_server(request: ClusterRequest, facts: CloudFacts) -> Json:
    """Load balancer, address, log and audit of the API server."""
    labels = request.labels
    values: Json = {
        "enableLoadBalancer": request.load_balancer,
        "loadBalancerProvider": labels.octavia_provider,
    }
    if request.load_balancer:
        values.update(_load_balancer(labels))
    values["associateFloatingIP"] = has_floating_ip(request)
    address = facts.api_address or labels.api_server_floating_ip
    if address and has_floating_ip(request):
        values["floatingIP"] = address
    if request.apiserver_port:
        values["port"] = request.apiserver_port
    if verbosity := dict(labels.kubeapi_options).get("v"):
        values["logLevel"] = int(verbosity)
    if labels.audit_log_enabled:
        values["audit"] = {
            "policy": {"omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]},
            "log": {
                "maxAge": labels.audit_log_max_age,
                "maxBackup": labels.audit_log_max_backup,
                "maxSize": labels.audit_log_max_size,
            },
        }
    return values


def _load_balancer(labels: Labels) -> Json:
    values: Json = {}
    if labels.api_server_lb_flavor:
        values["loadBalancerFlavor"] = labels.api_server_lb_flavor
    if labels.api_server_lb_availability_zone:
        values["loadBalancerAvailabilityZone"] = labels.api_server_lb_availability_zone
    if labels.api_master_lb_allowed_cidrs:
        # The reference charts read the first spelling since 0.24 and the second one before.
        values["allowedCIDRs"] = list(labels.api_master_lb_allowed_cidrs)
        values["allowedCidrs"] = list(labels.api_master_lb_allowed_cidrs)
    return values


def oidc(labels: Labels) -> Json:
    """Sign-in by OpenID Connect; {} without it."""
    if not (labels.oidc_issuer_url and labels.oidc_client_id):
        return {}
    return {
        "issuerUrl": labels.oidc_issuer_url,
        "clientId": labels.oidc_client_id,
        "usernameClaim": labels.oidc_username_claim,
        "usernamePrefix": labels.oidc_username_prefix,
        "groupsClaim": labels.oidc_groups_claim,
        # Only for names of users does Kubernetes take "-" for nothing.
        "groupsPrefix": "" if labels.oidc_groups_prefix == "-" else labels.oidc_groups_prefix,
    }


def control_plane(request: ClusterRequest) -> Json:
    """``kubeadmConfigSpec`` of the control plane; {} where nothing is asked for."""
    labels = request.labels
    spec: Json = {}
    if parts := _cluster_configuration(labels):
        spec["clusterConfiguration"] = parts
    if node := _node_registration(labels):
        spec.update(initConfiguration=node, joinConfiguration=_node_registration(labels))
    if labels.kubeproxy_options and request.cni != "cilium":
        spec["kubeProxyConfiguration"] = _proxy(labels)
    return spec


def workers(labels: Labels) -> Json:
    """``kubeadmConfigSpec`` of all nodegroups; {} where nothing is asked for."""
    node = _node_registration(labels)
    return {"joinConfiguration": node} if node else {}


def _cluster_configuration(labels: Labels) -> Json:
    flags = {name: text for name, text in labels.kubeapi_options if name != "v"}
    if labels.admission_control_list:
        plugins = (
            plugin for plugin in labels.admission_control_list if plugin != _NODE_RESTRICTION
        )
        flags["enable-admission-plugins"] = ",".join((_NODE_RESTRICTION, *plugins))
    if labels.api_server_tls_cipher_suites:
        flags["tls-cipher-suites"] = ",".join(labels.api_server_tls_cipher_suites)
    server: Json = {"extraArgs": flags} if flags else {}
    if labels.api_server_cert_sans:
        server["certSANs"] = list(labels.api_server_cert_sans)
    configuration: Json = {"apiServer": server} if server else {}
    if labels.kubecontroller_options:
        configuration["controllerManager"] = {"extraArgs": dict(labels.kubecontroller_options)}
    if labels.kubescheduler_options:
        configuration["scheduler"] = {"extraArgs": dict(labels.kubescheduler_options)}
    return configuration


def _node_registration(labels: Labels) -> Json:
    flags = dict(labels.kubelet_options)
    if labels.kubelet_tls_cipher_suites:
        flags["tls-cipher-suites"] = ",".join(labels.kubelet_tls_cipher_suites)
    return {"nodeRegistration": {"kubeletExtraArgs": flags}} if flags else {}


def _proxy(labels: Labels) -> Json:
    result: Json = {}
    for flag, text in labels.kubeproxy_options:
        *sections, key = _PROXY_FIELDS[flag]
        section = result
        for name in sections:
            section = section.setdefault(name, {})
        section[key] = _scalar(text)
    return result


def _scalar(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdigit() else text
