# SPDX-License-Identifier: Apache-2.0
"""The management cluster of a sandbox: real Kubernetes, Cluster API and CAPO as plain processes."""

from sandbox.management.binaries import build
from sandbox.management.lifecycle import choose, choose_tenants, down, status, up, up_api
from sandbox.management.server import driver_kubeconfig, kubeconfig

__all__ = [
    "build",
    "choose",
    "choose_tenants",
    "down",
    "driver_kubeconfig",
    "kubeconfig",
    "status",
    "up",
    "up_api",
]
