# SPDX-License-Identifier: Apache-2.0
"""Upgrades of many clusters: planned, recorded, and taken step by step."""
