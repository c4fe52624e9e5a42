# SPDX-License-Identifier: Apache-2.0
"""Find what commands are about: clusters, templates, and the objects of their namespaces."""
