# SPDX-License-Identifier: Apache-2.0
"""The driver, for Magnum's entry point."""

from magnum.drivers.k8s_capi_helm.driver import Driver

__all__ = ["Driver"]
