# SPDX-License-Identifier: Apache-2.0
"""The sections of the values, each from its labels."""
