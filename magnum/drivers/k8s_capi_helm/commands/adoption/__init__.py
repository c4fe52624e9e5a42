# SPDX-License-Identifier: Apache-2.0
"""The adoption of clusters of magnum-capi-helm: predicted, or proved."""
