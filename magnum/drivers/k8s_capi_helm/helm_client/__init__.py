# SPDX-License-Identifier: Apache-2.0
"""Helm through `pyhelm3` with a supervised process; stderr families as errors; recovery."""

from magnum.drivers.k8s_capi_helm.helm_client.client import HelmClient
from magnum.drivers.k8s_capi_helm.helm_client.command import MARGIN

__all__ = ["MARGIN", "HelmClient"]
