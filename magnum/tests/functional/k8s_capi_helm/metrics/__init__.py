# SPDX-License-Identifier: Apache-2.0
"""Alerts, dashboard and metrics of the driver, as the real Prometheus and promtool read them."""
