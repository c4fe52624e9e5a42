# SPDX-License-Identifier: Apache-2.0
"""A Helm release in its namespace: what it needs there, its values, its revisions."""
