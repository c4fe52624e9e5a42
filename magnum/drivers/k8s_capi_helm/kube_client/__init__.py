# SPDX-License-Identifier: Apache-2.0
"""The management cluster through the official `kubernetes` client: discover, get, list, apply."""

from magnum.drivers.k8s_capi_helm.kube_client.client import KubeClient
from magnum.drivers.k8s_capi_helm.kube_client.sweeping import sweep

__all__ = ["KubeClient", "sweep"]
