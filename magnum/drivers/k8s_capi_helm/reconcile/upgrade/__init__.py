# SPDX-License-Identifier: Apache-2.0
"""Upgrades: one that an operator plans, the plan of one, and one in progress."""
