# SPDX-License-Identifier: Apache-2.0
"""Controls: drivers and charts that are broken on purpose, to see the tests catch them."""
