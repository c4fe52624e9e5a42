# SPDX-License-Identifier: Apache-2.0
"""A whole cloud with Cluster API on one machine, without containers and virtual machines."""
