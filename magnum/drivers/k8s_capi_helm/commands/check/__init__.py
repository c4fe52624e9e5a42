# SPDX-License-Identifier: Apache-2.0
"""Checks of all that the driver needs, and the command that runs them."""
