# SPDX-License-Identifier: Apache-2.0
"""What belongs to one cluster in OpenStack, and what is left of it."""
