# SPDX-License-Identifier: Apache-2.0
"""The deletion of a cluster, by itself or by force, and what it leaves in the cloud."""
