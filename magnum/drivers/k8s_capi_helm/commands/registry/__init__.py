# SPDX-License-Identifier: Apache-2.0
"""Container images and charts: in a registry, in a directory, and copied between them."""
