# SPDX-License-Identifier: Apache-2.0
"""Labels about what Kubernetes' programs are told: flags, sign-in, audit, ciphers, admission."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm.labels import component_flags, text_types, types
from magnum.drivers.k8s_capi_helm.labels.label import label


@dataclasses.dataclass(frozen=True, kw_only=True)
class ApiServerLabels:
    """Labels about what Kubernetes' programs are told."""

    kubelet_options: tuple[tuple[str, str], ...] = label(
        component_flags.KUBELET,
        (),
        "--max-pods=64 --v=3",
        "Flags of the kubelet on all nodes.",
    )
    kubeapi_options: tuple[tuple[str, str], ...] = label(
        component_flags.API_SERVER,
        (),
        "--feature-gates=A=true,B=false --v=3",
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
        "Flags of kube-proxy, which become its configuration. Kubernetes reads it when the cluster "
        "is made. Has no effect with cilium, which takes the place of kube-proxy.",
        immutable=True,
    )
    admission_control_list: tuple[str, ...] = label(
        text_types.ADMISSION_PLUGINS,
        (),
        "AlwaysPullImages,PodNodeSelector",
        "Admission plugins of the API server besides those that are on by default. NodeRestriction "
        "is always on.",
    )
    api_server_cert_sans: tuple[str, ...] = label(
        text_types.HOSTS,
        (),
        "k8s.example.org,192.0.2.10",
        "Further names and addresses for which the API server's certificate is good.",
    )
    api_server_tls_cipher_suites: tuple[str, ...] = label(
        text_types.CIPHERS,
        (),
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "Cipher suites of the API server below TLS 1.3. Without it Kubernetes' own.",
    )
    kubelet_tls_cipher_suites: tuple[str, ...] = label(
        text_types.CIPHERS,
        (),
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "Cipher suites of the kubelets below TLS 1.3. Without it Kubernetes' own.",
    )
    audit_log_enabled: bool = label(
        types.SWITCH,
        False,
        "true",
        "Whether the API server writes who asked for what (the metadata of each request, no "
        "bodies) into /var/log/kubernetes/audit/audit.log on each control plane node.",
        requires_bundled_chart=True,
    )
    audit_log_max_age: int = label(
        text_types.SOME,
        30,
        "7",
        "Days for which files of the audit log are kept.",
        aliases=("audit_log_maxage",),
        requires_bundled_chart=True,
    )
    audit_log_max_backup: int = label(
        text_types.SOME,
        10,
        "3",
        "Number of old files of the audit log that are kept.",
        aliases=("audit_log_maxbackup",),
        requires_bundled_chart=True,
    )
    audit_log_max_size: int = label(
        text_types.SOME,
        100,
        "50",
        "MiB after which a new file of the audit log is begun.",
        aliases=("audit_log_maxsize",),
        requires_bundled_chart=True,
    )
    oidc_issuer_url: str | None = label(
        text_types.HTTPS_URL,
        None,
        "https://sso.example.org/realms/k8s",
        "URL of an OpenID Connect issuer whose tokens the Kubernetes API accepts. Needs "
        "oidc_client_id.",
    )
    oidc_client_id: str | None = label(
        types.NAME,
        None,
        "kubernetes",
        "The client for which tokens have to be made.",
    )
    oidc_username_claim: str = label(
        types.NAME,
        "sub",
        "email",
        "What of a token is the name of the user.",
    )
    oidc_username_prefix: str = label(
        types.NAME,
        "oidc:",
        "sso:",
        "What is put before names of users, '-' for nothing.",
    )
    oidc_groups_claim: str = label(
        types.NAME,
        "groups",
        "roles",
        "What of a token is the list of the user's groups.",
    )
    oidc_groups_prefix: str = label(
        types.NAME,
        "oidc:",
        "sso:",
        "What is put before names of groups, '-' for nothing.",
    )
