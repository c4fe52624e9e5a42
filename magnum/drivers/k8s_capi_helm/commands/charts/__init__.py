# SPDX-License-Identifier: Apache-2.0
"""The charts of clusters on this host, and bundles of charts and images without a network."""
