# SPDX-License-Identifier: Apache-2.0
"""The chart of a release by name, version and digest, from whatever source; kept locally."""

from magnum.drivers.k8s_capi_helm.chart_store.autoscaler_image import takes_prefix
from magnum.drivers.k8s_capi_helm.chart_store.configmap import ChartConfigMaps
from magnum.drivers.k8s_capi_helm.chart_store.source import ChartChoice
from magnum.drivers.k8s_capi_helm.chart_store.store import ChartStore

__all__ = ["ChartChoice", "ChartConfigMaps", "ChartStore", "takes_prefix"]
