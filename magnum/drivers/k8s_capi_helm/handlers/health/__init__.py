# SPDX-License-Identifier: Apache-2.0
"""The health poll, and what it repairs."""
