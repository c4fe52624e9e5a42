# SPDX-License-Identifier: Apache-2.0
"""Behind kube_client.py: transport, discovery, informers and snapshots, tenants' API servers."""
