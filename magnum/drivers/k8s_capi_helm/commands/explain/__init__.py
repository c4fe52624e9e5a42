# SPDX-License-Identifier: Apache-2.0
"""Where the value of each label and field comes from, and what it moves and rolls."""
