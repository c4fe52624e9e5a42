# SPDX-License-Identifier: Apache-2.0
"""The values as a tree: merged, read from a live release, with keys that only the driver sets."""
