# SPDX-License-Identifier: Apache-2.0
"""What an operator does next, by the words of a cause or by its class."""

from __future__ import annotations

from collections.abc import Mapping

from magnum.drivers.k8s_capi_helm.errors import Cause
from magnum.drivers.k8s_capi_helm.status.causes import root_cause

_PATIENCE = int(root_cause.NODE_PATIENCE.total_seconds()) // 60
FINE = "Nothing has to be done."
#: Stands in a command for the cluster's UUID.
_CLUSTER = "CLUSTER"
WAIT = (
    "Wait: an operation is in progress, and ends by itself or at its deadline. If the same "
    "object is named for a long time, look into the log of its controller: capo-controller-manager "
    "for kinds that begin with OpenStack, capi-kubeadm-control-plane-controller-manager for "
    "KubeadmControlPlane, the addon provider for HelmRelease and Manifests, "
    "capi-controller-manager for the others."
)
#: Words of the driver's own sentences, and what helps there; the class alone would mislead.
SPECIAL: Mapping[str, str] = {
    "its network is in use by": "Something in the network is not Cluster API's, and the deletion "
    "does not end before it is gone. Look at what is named (openstack port show, openstack "
    "loadbalancer show), and delete it if it is not needed, or have its project do so.",
    "hosts failed to start the server": "Look at the server that is named (openstack server show), "
    "and into the log of nova-compute on its hosts. Cluster API tries again by itself.",
    "runs kubelet": "The image has another kubelet than its property kube_version says: compare it "
    "with the image in the row 'Nova server'. Correct the property, or offer a right image under "
    "another name, and upgrade the cluster to a template with it (openstack coe cluster upgrade).",
    "Kubelet stopped posting node status": "The node had joined, and is silent now. Look at the "
    "server in the row 'Nova server' (openstack server show, openstack console log show): its "
    "host, its memory and disk, the kubelet. Auto healing replaces the machine after five minutes, "
    "where it is on; if the next one is silent as well, look at image and network, not at a host.",
    "its node has not joined yet": f"Wait: it is a fault after {_PATIENCE} minutes. Before that "
    "the console has the reason (openstack console log show, with the id in the row 'Nova "
    "server'): cloud-init, kubeadm, the way to the API, to registries and to the metadata.",
    "core addons are deployed, waiting for": "Wait: Helm installs it. If that takes more than some "
    "minutes, look at the HelmRelease that is named (kubectl describe), at its Pods in the "
    "cluster, and into the log of the addon provider.",
}
#: One sentence or two for each class.
ADVICE: Mapping[Cause, str] = {
    Cause.QUOTA: "Raise the quota of the project (openstack quota set), or let its users delete "
    "something. Cluster API tries again by itself; a refused request has to be sent again.",
    Cause.CAPACITY: "Look for hosts that can take the flavor (openstack hypervisor list, "
    "placement, aggregates and zones of the nodegroup). Cluster API tries again by itself. Instead "
    "of a flavor that no host can ever take, create another nodegroup, and delete this one.",
    Cause.NETWORK: "Look at the object that is named in Neutron or Octavia, and into their logs. A "
    "load balancer in ERROR has to be deleted (openstack loadbalancer delete --cascade, with its "
    "name); Cluster API creates a new one.",
    Cause.IMAGE: "Check that the image exists, is active and is visible to the project.",
    Cause.CREDENTIAL: f"A user of the project runs 'openstack coe credential rotate {_CLUSTER}'. "
    "If that user is deleted, another member of the project can do it.",
    Cause.BOOTSTRAP: "Look at the console of the server (openstack console log show, with the id "
    "in the row 'Nova server'): cloud-init, kubeadm, the way to the API, to registries and to the "
    "metadata. If the machine is well, look at ccm-openstack, without which no node is found.",
    Cause.ADDON: "Look at the HelmRelease or Manifests that is named (kubectl describe, in the "
    "namespace in the row 'Release'), and into the log of the addon provider.",
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


def advice(cause: str, sentence: str, cluster_uuid: str) -> str:
    """What to do about a cause.

    :param cause: its class, "" for what only takes time.
    :param cluster_uuid: of the cluster, for commands.
    """
    special = (text for words, text in SPECIAL.items() if words in sentence)
    text = next(special, ADVICE[Cause(cause)] if cause else WAIT)
    return text.replace(_CLUSTER, cluster_uuid)
