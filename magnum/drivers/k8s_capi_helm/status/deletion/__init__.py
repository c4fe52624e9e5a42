# SPDX-License-Identifier: Apache-2.0
"""The end of a cluster: the next step, and what remains or blocks."""
