# SPDX-License-Identifier: Apache-2.0
"""Tests of the charts: rendered by the real helm, held against the real CRDs."""
