# SPDX-License-Identifier: Apache-2.0
"""Find the chart of a release by name, version and digest in any source; cache it locally."""

from magnum.drivers.k8s_capi_helm.chart_store.autoscaler_image import uses_tenant_registry
from magnum.drivers.k8s_capi_helm.chart_store.configmap import ChartConfigMaps
from magnum.drivers.k8s_capi_helm.chart_store.inventory import ChartInventory, StoredChart
from magnum.drivers.k8s_capi_helm.chart_store.source import ChartChoice
from magnum.drivers.k8s_capi_helm.chart_store.store import ChartStore

__all__ = [
    "ChartChoice",
    "ChartConfigMaps",
    "ChartInventory",
    "ChartStore",
    "StoredChart",
    "uses_tenant_registry",
]
