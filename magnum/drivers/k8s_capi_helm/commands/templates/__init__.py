# SPDX-License-Identifier: Apache-2.0
"""What a template may name: its images, the words of other drivers, and their check."""
