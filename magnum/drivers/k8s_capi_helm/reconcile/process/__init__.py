# SPDX-License-Identifier: Apache-2.0
"""What a process has for all its passes: clients, caches, and what it asks now and then."""
