# SPDX-License-Identifier: Apache-2.0
"""Periodic tasks, and what they have in common with requests: a pass over one cluster."""
