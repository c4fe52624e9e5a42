# SPDX-License-Identifier: Apache-2.0
"""Texts of a verdict: its issues, and what of a message a tenant may read."""
