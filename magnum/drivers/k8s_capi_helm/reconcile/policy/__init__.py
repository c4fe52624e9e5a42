# SPDX-License-Identifier: Apache-2.0
"""What the operator requires of requests, and chooses for new clusters."""
