# SPDX-License-Identifier: Apache-2.0
"""How OpenStack is asked: services, endpoints, roles."""
