# SPDX-License-Identifier: Apache-2.0
"""The sections of the chart's values, and how the values of a deployed release change."""
