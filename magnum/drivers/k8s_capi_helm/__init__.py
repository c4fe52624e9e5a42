# SPDX-License-Identifier: Apache-2.0
"""Kubernetes clusters for OpenStack Magnum, by Cluster API and Helm."""
