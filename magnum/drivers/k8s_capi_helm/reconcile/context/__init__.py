# SPDX-License-Identifier: Apache-2.0
"""What one reconciliation is handed: its context, and Magnum's objects of the cluster."""
