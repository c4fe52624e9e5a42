# SPDX-License-Identifier: Apache-2.0
"""Metrics: what this process has done and seen, counted for Prometheus, and where it is read."""
