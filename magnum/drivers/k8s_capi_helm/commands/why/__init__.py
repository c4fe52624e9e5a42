# SPDX-License-Identifier: Apache-2.0
"""The cause of a cluster's state, the tree of its objects, and what to do next."""
