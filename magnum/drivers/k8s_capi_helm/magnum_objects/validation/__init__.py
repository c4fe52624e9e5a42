# SPDX-License-Identifier: Apache-2.0
"""What a request may not have."""
