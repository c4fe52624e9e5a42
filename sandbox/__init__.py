# SPDX-License-Identifier: Apache-2.0
"""A complete cloud with Cluster API on one host, without containers and virtual machines."""
