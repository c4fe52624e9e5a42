# SPDX-License-Identifier: Apache-2.0
"""Clusters through Magnum's API in the sandbox, from their creation to their last trace."""
