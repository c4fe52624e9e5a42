# SPDX-License-Identifier: Apache-2.0
"""The management cluster changes under living clusters: moved, restored from a backup, upgraded."""
