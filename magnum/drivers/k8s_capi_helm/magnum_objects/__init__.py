# SPDX-License-Identifier: Apache-2.0
"""Magnum's Cluster, NodeGroup and ClusterTemplate: read, validated and saved."""
