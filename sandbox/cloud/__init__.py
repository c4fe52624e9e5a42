# SPDX-License-Identifier: Apache-2.0
"""Every OpenStack service that Magnum and Cluster API need, real, on this machine."""

from sandbox.cloud.lifecycle import down, erase, restart, start_magnum, status, up

__all__ = ["down", "erase", "restart", "start_magnum", "status", "up"]
