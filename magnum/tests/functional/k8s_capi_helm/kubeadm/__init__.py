# SPDX-License-Identifier: Apache-2.0
"""The kubeadm of each minor release of Kubernetes reads what the charts render."""
