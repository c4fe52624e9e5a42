# SPDX-License-Identifier: Apache-2.0
"""What commands print: rows, errors in one line, how urgent an end is, and no secrets."""
