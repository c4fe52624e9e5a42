# SPDX-License-Identifier: Apache-2.0
"""What is written after an evaluation: rows, record, notifications."""
