# SPDX-License-Identifier: Apache-2.0
"""What an operator does next, by the class of a cause."""

from __future__ import annotations

from collections.abc import Mapping

from magnum.drivers.k8s_capi_helm.errors import Cause

FINE = "Nothing has to be done."
_WAIT = (
    "Wait: an operation is in progress, and ends by itself or at its deadline. If the same "
    "object is named for a long time, look into the log of its controller."
)
#: One sentence or two for each class.
ADVICE: Mapping[Cause, str] = {
    Cause.QUOTA: "Raise the quota of the project, or let its users delete something. Cluster API "
    "tries again by itself.",
    Cause.CAPACITY: "Look for hosts that can take the flavor (openstack hypervisor list, "
    "placement, aggregates and zones of the nodegroup). Cluster API tries again by itself.",
    Cause.NETWORK: "Look at the object that is named in Neutron or Octavia, and into their logs. A "
    "load balancer in ERROR has to be deleted; Cluster API creates a new one.",
    Cause.IMAGE: "Check that the image exists, is active and is visible to the project.",
    Cause.CREDENTIAL: "A user of the project runs 'openstack coe credential rotate CLUSTER'. If "
    "that user is deleted, another member of the project can do it.",
    Cause.BOOTSTRAP: "Look at the console of the server that is named (openstack console log "
    "show): cloud-init, kubeadm, the way to the API, to registries and to the metadata.",
    Cause.ADDON: "Look at the HelmRelease or Manifests that is named (kubectl describe), and into "
    "the log of the addon provider.",
    Cause.PERMISSION: "Check the policy of the service that is named, and the roles of the "
    "cluster's application credential ([capi_helm] app_cred_roles).",
    Cause.REQUEST: "The request has to be corrected by its user: the message has the field and the "
    "value. Nothing was changed.",
    Cause.TIMEOUT: "The part behind the semicolon is the cause. Cluster API continues; the cluster "
    "is COMPLETE again when that is corrected.",
    Cause.MANAGEMENT: "Run 'k8s-capi-helm check': the management cluster, or a controller there, "
    "does not work.",
    Cause.INTERNAL: "Look for the cluster's UUID in the log of magnum-conductor: it has the "
    "details.",
}


def advice(cause: str) -> str:
    """What to do about a class of causes, "" for what only takes time."""
    return ADVICE[Cause(cause)] if cause else _WAIT
