# SPDX-License-Identifier: Apache-2.0
"""The API of a tenant's own cluster, asked for one thing: whether objects are there.

Its administrator is the tenant, so nothing that it answers is believed beyond a yes or a no: no
redirect, no proxy, no more than some megabytes, pieces and lines, and nothing for longer than some
seconds.
"""

from magnum.drivers.k8s_capi_helm.workload.access import Access, access
from magnum.drivers.k8s_capi_helm.workload.door import Door, Unanswered
from magnum.drivers.k8s_capi_helm.workload.inspections import Inspections

__all__ = ["Access", "Door", "Inspections", "Unanswered", "access"]
