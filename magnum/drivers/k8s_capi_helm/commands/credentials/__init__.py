# SPDX-License-Identifier: Apache-2.0
"""What of clusters expires: application credentials and certificates."""
