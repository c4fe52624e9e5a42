# SPDX-License-Identifier: Apache-2.0
"""What a request for support needs: one archive about a cluster, without secrets."""
