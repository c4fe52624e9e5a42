# SPDX-License-Identifier: Apache-2.0
"""Overlays: the operator's own values, from a directory, below what tenants ask for."""

from magnum.drivers.k8s_capi_helm.overlays.files import blamed, misused, read, SITE
from magnum.drivers.k8s_capi_helm.overlays.scalars import Context
from magnum.drivers.k8s_capi_helm.overlays.trees import keys, Overlay

__all__ = ["SITE", "Context", "Overlay", "blamed", "keys", "misused", "read"]
