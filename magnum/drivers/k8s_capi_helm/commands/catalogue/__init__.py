# SPDX-License-Identifier: Apache-2.0
"""The images and cluster templates that an operator offers, in one file."""
