# SPDX-License-Identifier: Apache-2.0
"""Labels of the Kubernetes components: flags, authentication, audit, ciphers, admission."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm.labels.value_types import component_flags, network_types, types
from magnum.drivers.k8s_capi_helm.labels.value_types.label import label

#: Plugins that Kubernetes 1.32 and later have and that need no configuration file
#: (https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/).
_PLUGINS = (
    "AlwaysPullImages",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "DenyServiceExternalIPs",
    "ExtendedResourceToleration",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "MutatingAdmissionWebhook",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NamespaceLifecycle",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "PodNodeSelector",
    "PodSecurity",
    "PodTolerationRestriction",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
)
#: What Go offers below TLS 1.3 and does not call insecure (https://pkg.go.dev/crypto/tls).
_SUITES = (
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
)
#: Go's HTTP/2 asks for one of them, and without it neither API server nor kubelet starts.
#: https://pkg.go.dev/golang.org/x/net/http2#ConfigureServer
_HTTP2_SUITES = (
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
)
_CIPHERS = types.word_list(
    _SUITES,
    "Go's names of cipher suites for TLS 1.2, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or the same of "
    "ECDSA among them, as HTTP/2 needs it, with commas between them",
    _HTTP2_SUITES,
)
_ADMISSION_PLUGINS = types.word_list(
    _PLUGINS,
    "admission plugins that Kubernetes has today and that need no file, like "
    "NodeRestriction,AlwaysPullImages",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ApiServerLabels:
    """Labels of the Kubernetes components."""

    kubelet_options: tuple[tuple[str, str], ...] = label(
        component_flags.KUBELET,
        (),
        "--max-pods=64 --v=3",
        "Flags of the kubelet on all nodes.",
    )
    kubeapi_options: tuple[tuple[str, str], ...] = label(
        component_flags.API_SERVER,
        (),
        "--feature-gates=AllAlpha=false,ContextualLogging=true --v=3",
        "Flags of the Kubernetes API server.",
    )
    kubecontroller_options: tuple[tuple[str, str], ...] = label(
        component_flags.CONTROLLER_MANAGER,
        (),
        "--node-monitor-grace-period=60s",
        "Flags of the Kubernetes controller manager.",
    )
    kubescheduler_options: tuple[tuple[str, str], ...] = label(
        component_flags.SCHEDULER,
        (),
        "--v=3",
        "Flags of the Kubernetes scheduler.",
    )
    kubeproxy_options: tuple[tuple[str, str], ...] = label(
        component_flags.PROXY,
        (),
        "--proxy-mode=nftables",
        "Flags of kube-proxy, which become its configuration. Kubernetes reads it when the "
        "cluster is created. Has no effect with cilium, which replaces kube-proxy.",
        immutable=True,
    )
    admission_control_list: tuple[str, ...] = label(
        _ADMISSION_PLUGINS,
        (),
        "AlwaysPullImages,PodNodeSelector",
        "Admission plugins of the API server in addition to the default ones. NodeRestriction is "
        "always enabled.",
    )
    api_server_cert_sans: tuple[str, ...] = label(
        network_types.HOSTS,
        (),
        "k8s.example.org,192.0.2.10",
        "Additional names and addresses in the certificate of the API server.",
    )
    api_server_tls_cipher_suites: tuple[str, ...] = label(
        _CIPHERS,
        (),
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "Cipher suites of the API server below TLS 1.3. The default is that of Kubernetes.",
    )
    kubelet_tls_cipher_suites: tuple[str, ...] = label(
        _CIPHERS,
        (),
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "Cipher suites of the kubelets below TLS 1.3. The default is that of Kubernetes.",
    )
    audit_log_enabled: bool = label(
        types.SWITCH,
        False,
        "true",
        "Whether the API server writes an audit log (metadata of each request, no bodies) to "
        "/var/log/kubernetes/audit/audit.log on each control plane node.",
        requires_bundled_chart=True,
    )
    audit_log_max_age: int = label(
        types.SOME,
        30,
        "7",
        "Days for which files of the audit log are kept.",
        aliases=("audit_log_maxage",),
        requires_bundled_chart=True,
    )
    audit_log_max_backup: int = label(
        types.SOME,
        10,
        "3",
        "Number of rotated files of the audit log that are kept.",
        aliases=("audit_log_maxbackup",),
        requires_bundled_chart=True,
    )
    audit_log_max_size: int = label(
        types.SOME,
        100,
        "50",
        "Size in MiB at which the audit log is rotated.",
        aliases=("audit_log_maxsize",),
        requires_bundled_chart=True,
    )
    oidc_issuer_url: str | None = label(
        network_types.HTTPS_URL,
        None,
        "https://sso.example.org/realms/k8s",
        "URL of an OpenID Connect issuer whose tokens the Kubernetes API accepts. Requires "
        "oidc_client_id.",
    )
    oidc_client_id: str | None = label(
        types.NAME,
        None,
        "kubernetes",
        "OpenID Connect client for which tokens must be issued.",
    )
    oidc_username_claim: str = label(
        types.NAME,
        "sub",
        "email",
        "Claim of a token that has the name of the user.",
    )
    oidc_username_prefix: str = label(
        types.NAME,
        "oidc:",
        "sso:",
        "Prefix of user names, '-' for none.",
    )
    oidc_groups_claim: str = label(
        types.NAME,
        "groups",
        "roles",
        "Claim of a token that has the list of the user's groups.",
    )
    oidc_groups_prefix: str = label(
        types.NAME,
        "oidc:",
        "sso:",
        "Prefix of group names, '-' for none.",
    )
