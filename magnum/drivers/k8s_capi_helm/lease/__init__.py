# SPDX-License-Identifier: Apache-2.0
"""The Lease of a release: lock, pending operations, proof of the management cluster.

One Lease object per release is lock and record at once. Its ``spec`` is used as Kubernetes' own
leader election uses it (https://kubernetes.io/docs/concepts/architecture/leases/); what no Magnum
row holds is in its annotations; its labels say whose it is. Every change compares the resource
version, so that nothing that somebody else wrote is lost.
"""

from magnum.drivers.k8s_capi_helm.lease.lock import HeldLease
from magnum.drivers.k8s_capi_helm.lease.release_lease import ReleaseLeases

__all__ = ["HeldLease", "ReleaseLeases"]
