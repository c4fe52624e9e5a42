# SPDX-License-Identifier: Apache-2.0
"""The labels, by topic."""
