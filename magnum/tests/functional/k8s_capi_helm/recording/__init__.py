# SPDX-License-Identifier: Apache-2.0
"""Recordings: what the sandbox's real controllers say through a cluster's life, for pure tests."""
