# SPDX-License-Identifier: Apache-2.0
"""Who the driver is on a management cluster: kubeconfig, certificates, proxy."""
