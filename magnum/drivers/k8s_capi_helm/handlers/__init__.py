# SPDX-License-Identifier: Apache-2.0
"""Magnum's requests and periodic tasks: one file each."""
