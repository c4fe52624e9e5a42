# SPDX-License-Identifier: Apache-2.0
"""A cluster's life on a real API server of its own: real etcd, RBAC, eviction and scheduling."""
