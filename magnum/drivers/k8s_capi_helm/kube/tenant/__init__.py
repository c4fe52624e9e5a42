# SPDX-License-Identifier: Apache-2.0
"""The API of a tenant's cluster: another server, with another client and a budget."""
