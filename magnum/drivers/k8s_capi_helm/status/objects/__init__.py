# SPDX-License-Identifier: Apache-2.0
"""What objects of the management cluster say of the parts of a cluster, each for itself."""
