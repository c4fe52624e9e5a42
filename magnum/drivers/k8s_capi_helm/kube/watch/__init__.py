# SPDX-License-Identifier: Apache-2.0
"""What is watched on a management cluster, and kept of it."""
