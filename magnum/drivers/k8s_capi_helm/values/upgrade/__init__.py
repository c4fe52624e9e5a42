# SPDX-License-Identifier: Apache-2.0
"""What an upgrade changes in the values, and what it leaves for later."""
