# SPDX-License-Identifier: Apache-2.0
"""Programs of a tenant's cluster that use OpenStack, as the charts configure them."""
