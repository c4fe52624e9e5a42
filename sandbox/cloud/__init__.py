# SPDX-License-Identifier: Apache-2.0
"""All OpenStack services that Magnum and Cluster API need, real, on this host."""

from sandbox.cloud.lifecycle import down, erase, restart, start_magnum, status, stop_magnum, up

__all__ = ["down", "erase", "restart", "start_magnum", "status", "stop_magnum", "up"]
