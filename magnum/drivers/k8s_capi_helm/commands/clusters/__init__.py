# SPDX-License-Identifier: Apache-2.0
"""Clusters as a whole: listed, paused, reconciled now, and deleted by force."""
