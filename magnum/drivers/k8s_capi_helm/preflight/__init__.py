# SPDX-License-Identifier: Apache-2.0
"""ClusterRequest + CloudFacts -> everything that would keep Cluster API from building it.

Asked before the first write, so that a tenant reads all of it at once and not one per attempt.
Cluster API's OpenStack provider tries for ever what a quota refuses, and says little of a flavor,
zone or network that is not there.
"""

from magnum.drivers.k8s_capi_helm.preflight.machines import size_problems, Terms
from magnum.drivers.k8s_capi_helm.preflight.message import refuse
from magnum.drivers.k8s_capi_helm.preflight.needs import (
    Growth,
    machine_needs,
    needs,
    new_group,
    resized,
)
from magnum.drivers.k8s_capi_helm.preflight.networks import (
    external,
    extra_network_problems,
    meanings,
    named,
    only,
)
from magnum.drivers.k8s_capi_helm.preflight.offers import (
    kinds,
    Named,
    of_cluster,
    of_group,
    of_machines,
)
from magnum.drivers.k8s_capi_helm.preflight.problems import (
    group_problems,
    problems,
    quota_problems,
    software_problems,
)

__all__ = [
    "Growth",
    "Named",
    "Terms",
    "external",
    "extra_network_problems",
    "group_problems",
    "kinds",
    "machine_needs",
    "meanings",
    "named",
    "needs",
    "new_group",
    "of_cluster",
    "of_group",
    "of_machines",
    "only",
    "problems",
    "quota_problems",
    "refuse",
    "resized",
    "size_problems",
    "software_problems",
]
