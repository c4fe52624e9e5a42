# SPDX-License-Identifier: Apache-2.0
"""Helm through `pyhelm3` with a supervised process; stderr families as errors; recovery."""

from magnum.drivers.k8s_capi_helm.helm.cli import END_MARGIN
from magnum.drivers.k8s_capi_helm.helm.client import HelmClient
from magnum.drivers.k8s_capi_helm.helm.packages import ChartPackages

__all__ = ["END_MARGIN", "ChartPackages", "HelmClient"]
