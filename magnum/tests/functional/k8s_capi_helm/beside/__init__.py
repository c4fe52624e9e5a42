# SPDX-License-Identifier: Apache-2.0
"""The packages of other drivers in one environment with this one."""
