# SPDX-License-Identifier: Apache-2.0
"""The nodegroups of a release: new and removed ones, sizes, refused and lost ones."""
