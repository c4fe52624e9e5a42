# SPDX-License-Identifier: Apache-2.0
"""What every entrance begins with: logging, deadline of the request, reconciliation."""
