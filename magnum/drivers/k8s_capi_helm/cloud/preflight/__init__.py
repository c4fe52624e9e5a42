# SPDX-License-Identifier: Apache-2.0
"""ClusterRequest + CloudFacts -> everything that would keep Cluster API from building it.

It is asked before the first write, so that a tenant reads all of it at once and not one problem per
attempt. Cluster API's OpenStack provider retries for ever what a quota refuses, and says little of
a flavor, zone or network that does not exist."""
