# SPDX-License-Identifier: Apache-2.0
"""What runs in the cluster from its beginning."""

from __future__ import annotations

from collections.abc import Sequence

from magnum.drivers.k8s_capi_helm.helm_values import storage
from magnum.drivers.k8s_capi_helm.model import CloudFacts, ClusterRequest, Json


def addons(
    request: ClusterRequest,
    facts: CloudFacts,
    storage_class_default: str | None,
    allowed_topologies: Sequence[str],
) -> Json:
    labels = request.labels
    keystone_auth: Json = {"enabled": labels.keystone_auth_enabled}
    if labels.keystone_auth_enabled:
        keystone_auth["values"] = {
            "openstackAuthUrl": facts.auth_url,
            "projectId": request.project_id,
        }
    return {
        "cni": {"type": request.cni},
        "openstack": {
            "enabled": True,
            **({"separateCredential": True} if request.separate_addon_credential else {}),
            "cloudConfig": {
                "LoadBalancer": {
                    "lb-provider": labels.octavia_provider,
                    "lb-method": labels.load_balancer_method,
                    "create-monitor": labels.octavia_lb_healthcheck,
                }
            },
            "csiCinder": storage.classes(
                labels, facts.volume_types, storage_class_default, allowed_topologies
            ),
            "k8sKeystoneAuth": keystone_auth,
        },
        "metricsServer": {"enabled": True},
        "monitoring": {"enabled": labels.monitoring_enabled},
        # An ingress controller's load balancer would outlive the cluster.
        "ingress": {"enabled": False},
    }
