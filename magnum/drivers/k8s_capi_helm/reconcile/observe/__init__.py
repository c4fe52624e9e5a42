# SPDX-License-Identifier: Apache-2.0
"""What a cluster is like, and whether that is what Magnum's objects ask for."""
