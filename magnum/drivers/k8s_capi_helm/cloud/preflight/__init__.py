# SPDX-License-Identifier: Apache-2.0
"""ClusterRequest + CloudFacts -> all problems that would prevent the cluster.

It is asked before the first write, so that a tenant reads all of it at once and not one problem per
attempt. Cluster API's OpenStack provider retries for ever what a quota refuses, and says little of
a flavor, zone or network that does not exist."""
