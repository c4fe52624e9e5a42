# SPDX-License-Identifier: Apache-2.0
"""Requests of Magnum: refused before anything is touched, else recorded and started."""
