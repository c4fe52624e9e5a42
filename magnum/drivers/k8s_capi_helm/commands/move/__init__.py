# SPDX-License-Identifier: Apache-2.0
"""Clusters that change their management cluster."""
