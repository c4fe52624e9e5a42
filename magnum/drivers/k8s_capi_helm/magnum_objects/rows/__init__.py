# SPDX-License-Identifier: Apache-2.0
"""Magnum's objects as the driver reads, writes and saves them."""
