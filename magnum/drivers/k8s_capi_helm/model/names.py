# SPDX-License-Identifier: Apache-2.0
"""Names and label keys: valid, bounded and collision-free.

Names that other parties know (the reference charts, magnum-capi-helm, Cluster API) are spelled here
and nowhere else. Objects of a release are *found by label*; the names that are computed here are
those that the driver itself gives.
"""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses
import re
import secrets
import string

from magnum.drivers.k8s_capi_helm.labels.value_types import versions

_RELEASE_HEAD = 30
_RELEASE_TAIL = 12
_TAIL_ALPHABET = string.ascii_lowercase + string.digits
# magnum-capi-helm cuts a name after 30 characters, so that its head may end with a hyphen.
_RELEASE_SHAPE = re.compile(r"(?:[a-z0-9][-a-z0-9]{0,30}-)?[a-z0-9]{12}\Z")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_DNS_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\Z")

_DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\Z")


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object on the management cluster.

    :ivar group: API group, "" for the core group.
    :ivar name: the kind as in a manifest.
    :ivar plural: the resource as in a path.
    :ivar versions: versions the driver understands, best first; the first one served is used.
    :ivar namespaced: False for kinds of the whole cluster.
    """

    group: str
    name: str
    plural: str
    versions: tuple[str, ...]
    namespaced: bool = True


#: Name of the entry point, by which templates and images choose this driver.
DRIVER = "k8s_capi_helm_v1"
CAPI_VERSIONS = ("v1beta2", "v1beta1")
CORE_GROUP = "cluster.x-k8s.io"
CONTROL_PLANE_GROUP = "controlplane.cluster.x-k8s.io"
INFRASTRUCTURE_GROUP = "infrastructure.cluster.x-k8s.io"
#: Announced to be renamed one day; the one place where the driver spells it.
ADDONS_GROUP = "addons.stackhpc.com"
#: Prefix of the chart's own labels.
CHART_PREFIX = "capi.stackhpc.com"

CLUSTER = Kind(CORE_GROUP, "Cluster", "clusters", CAPI_VERSIONS)
MACHINE_DEPLOYMENT = Kind(CORE_GROUP, "MachineDeployment", "machinedeployments", CAPI_VERSIONS)
MACHINE_SET = Kind(CORE_GROUP, "MachineSet", "machinesets", CAPI_VERSIONS)
MACHINE = Kind(CORE_GROUP, "Machine", "machines", CAPI_VERSIONS)
CONTROL_PLANE = Kind(
    CONTROL_PLANE_GROUP, "KubeadmControlPlane", "kubeadmcontrolplanes", CAPI_VERSIONS
)
#: v1beta1 first: the v1beta2 view of CAPO 0.15 renames fields that this driver reads.
_CAPO = ("v1beta1", "v1beta2")
OPENSTACK_CLUSTER = Kind(INFRASTRUCTURE_GROUP, "OpenStackCluster", "openstackclusters", _CAPO)
OPENSTACK_MACHINE = Kind(INFRASTRUCTURE_GROUP, "OpenStackMachine", "openstackmachines", _CAPO)
#: What a chart makes for each nodegroup besides its MachineDeployment.
MACHINE_HEALTH_CHECK = Kind(CORE_GROUP, "MachineHealthCheck", "machinehealthchecks", CAPI_VERSIONS)
MACHINE_TEMPLATE = Kind(
    INFRASTRUCTURE_GROUP, "OpenStackMachineTemplate", "openstackmachinetemplates", _CAPO
)
BOOTSTRAP_TEMPLATE = Kind(
    "bootstrap.cluster.x-k8s.io", "KubeadmConfigTemplate", "kubeadmconfigtemplates", CAPI_VERSIONS
)
OPENSTACK_SERVER = Kind(INFRASTRUCTURE_GROUP, "OpenStackServer", "openstackservers", ("v1alpha1",))
HELM_RELEASE = Kind(ADDONS_GROUP, "HelmRelease", "helmreleases", ("v1alpha1",))
MANIFESTS = Kind(ADDONS_GROUP, "Manifests", "manifests", ("v1alpha1",))
DEPLOYMENT = Kind("apps", "Deployment", "deployments", ("v1",))
NAMESPACE = Kind("", "Namespace", "namespaces", ("v1",), namespaced=False)
SECRET = Kind("", "Secret", "secrets", ("v1",))
CONFIG_MAP = Kind("", "ConfigMap", "configmaps", ("v1",))
EVENT = Kind("", "Event", "events", ("v1",))
LEASE = Kind("coordination.k8s.io", "Lease", "leases", ("v1",))
SELF_REVIEW = Kind(
    "authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", ("v1",), namespaced=False
)
ACCESS_REVIEW = Kind(
    "authorization.k8s.io",
    "SelfSubjectAccessReview",
    "selfsubjectaccessreviews",
    ("v1",),
    namespaced=False,
)
#: What clusterctl has installed, with versions.
PROVIDER = Kind("clusterctl.cluster.x-k8s.io", "Provider", "providers", ("v1alpha3",))
ROLE_BINDING = Kind("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", ("v1",))

#: Set by Cluster API on everything of a cluster.
LABEL_CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
#: Set by Cluster API on the MachineSets and Machines of a MachineDeployment.
LABEL_DEPLOYMENT_NAME = "cluster.x-k8s.io/deployment-name"
#: Set by Cluster API on control plane Machines.
LABEL_CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
LABEL_CHART_CLUSTER = f"{CHART_PREFIX}/cluster"
LABEL_CHART_COMPONENT = f"{CHART_PREFIX}/component"
LABEL_NODE_GROUP = f"{CHART_PREFIX}/node-group"
#: Component of the chart's Deployment that runs the cluster autoscaler.
AUTOSCALER = "autoscaler"
LABEL_PROJECT = "magnum.openstack.org/project-id"
LABEL_USER = "magnum.openstack.org/user-id"
LABEL_UUID = "magnum.openstack.org/cluster-uuid"
#: Annotation of a namespace that the driver has created: only such a one does it delete.
CREATED_NAMESPACE = "k8s-capi-helm.magnum.openstack.org/created"
#: Annotation of it with the newest release in it; each create changes it.
NEWEST_RELEASE = "k8s-capi-helm.magnum.openstack.org/newest-release"
#: Annotation with the whole id of a user, where the label has no room for it.
USER_ID = "k8s-capi-helm.magnum.openstack.org/user-id"
#: Annotation of Chart.yaml by which this project's charts are told from others of the same name.
CHART_FAMILY_ANNOTATION = "k8s-capi-helm.openstack.org/family"
#: Its value in this project's charts.
CHART_FAMILY = "k8s-capi-helm"
#: Since when this project's charts can tell the autoscaler what a Node of a group has.
_CAPACITY_SINCE = (1, 1)
#: Since when they can give containerd a disk of its own.
_CONTAINERD_DISK_SINCE = (1, 2)
#: Prefix of the annotations of a Cluster that keep the labels which it was made with.
EFFECTIVE_LABEL = "labels.k8s-capi-helm.openstack.org"
#: The chart of a cluster, in this project's family as in the reference charts.
CLUSTER_CHART = "openstack-cluster"
#: Finalizer of cluster-api-janitor-openstack, which clears up what Services and volumes have left.
JANITOR_FINALIZER = "janitor.capi.stackhpc.com"
#: With it ``clusterctl move`` takes an object along that no Cluster owns.
LABEL_MOVE = "clusterctl.cluster.x-k8s.io/move"
#: On copies of charts, by which they are found.
CHART_COPY_LABELS = {"k8s-capi-helm.magnum.openstack.org/kept": "chart"}
#: On a copy of a chart, its name and version for people.
CHART_COPY_ABOUT = "k8s-capi-helm.magnum.openstack.org/chart"
#: Server-side apply field manager of this driver.
FIELD_MANAGER = "magnum"

#: The name under which the chart looks for the cloud in the credential's clouds.yaml.
CLOUD_NAME = "openstack"
#: Purposes of the certificate authorities and keys that Cluster API looks for as
#: ``<cluster>-<purpose>``.
CA_PURPOSES = ("ca", "etcd", "proxy", "sa")


def release(cluster_name: str) -> str:
    """A new release name (Magnum's ``stack_id``) for a cluster of that name.

    The readable head is for people; the twelve random characters make it unique, also after a
    cluster of the same name was deleted.

    :param cluster_name: any text; characters outside ``[a-z0-9]`` become hyphens.
    :returns: at most 43 characters, a valid Helm release name and DNS label.
    """
    head = re.sub(r"[^a-z0-9]+", "-", cluster_name.lower()).strip("-")
    if head[:1].isdigit():  # Cluster API wants an RFC 1035 label
        head = f"k{head}"
    head = head[:_RELEASE_HEAD].strip("-")
    tail = "".join(secrets.choice(_TAIL_ALPHABET) for _ in range(_RELEASE_TAIL))
    return f"{head}-{tail}" if head else f"k{tail[1:]}"


def is_release(text: str | None) -> bool:
    """Whether *text* has the shape of a release name of this driver or of magnum-capi-helm.

    Heat stacks (a UUID) and clusters of magnum-cluster-api (``kube-xxxxx``) do not have it.
    """
    name = text or ""
    return len(name) <= 43 and bool(_RELEASE_SHAPE.match(name)) and not _UUID.match(name)


def namespace(prefix: str, project_id: str) -> str:
    """The namespace of a project: ``<prefix>-<project id without punctuation>``."""
    return f"{prefix}-{re.sub(r'[^a-z0-9]', '', project_id.lower())}"


def credential_secret(release_name: str) -> str:
    """Name of the Secret with the clouds.yaml of a cluster."""
    return f"{release_name}-cloud-credentials"


def credential(release_name: str) -> str:
    """Name of a cluster's first application credential; those of later ones begin with it."""
    return f"magnum-{release_name}"


def ca_secret(release_name: str, purpose: str) -> str:
    """Name of the Secret in which Cluster API looks for a CA; *purpose* is one of CA_PURPOSES."""
    return f"{release_name}-{purpose}"


def server_group(release_name: str, nodegroup: str) -> str:
    """Name of the Nova server group of a nodegroup (or of the control plane's group).

    No release has a dot in its name, so that one release's are never taken for another's.
    """
    return f"{release_name}.{nodegroup}"


def of_server_group(release_name: str, text: str) -> str | None:
    """The nodegroup whose server group of a release is called *text*, None if none is."""
    prefix, _, nodegroup = text.partition(".")
    return nodegroup or None if prefix == release_name else None


def api_floating_ip(release_name: str) -> str:
    """Description of the floating IP that is made for the API of a release."""
    return f"Kubernetes API of {release_name}, made and deleted by Magnum"


def api_balancer(namespace_name: str, release_name: str) -> str:
    """Name of the load balancer that Cluster API's OpenStack provider makes for the API.

    Source: its pkg/cloud/services/loadbalancer, ``getLoadBalancerName``.
    """
    return f"k8s-clusterapi-cluster-{namespace_name}-{release_name}-kubeapi"


def is_service_balancer(release_name: str, text: str | None) -> bool:
    """Whether a load balancer's name is one that the cloud controller of a cluster gives."""
    return (text or "").startswith(f"kube_service_{release_name}_")


def is_service_address(release_name: str, text: str | None) -> bool:
    """Whether a floating IP's description is one that the cloud controller of a cluster gives."""
    words = text or ""
    begins = words.startswith("Floating IP for Kubernetes external service ")
    return begins and words.endswith(f" from cluster {release_name}")


def is_service_group(release_name: str, text: str | None) -> bool:
    """Whether a security group's description is one that a cluster's cloud controller gives."""
    description = text or ""
    has_suffix = description.endswith(f" Service LoadBalancer in cluster {release_name}")
    return has_suffix and description.startswith("Security Group for ")


def lease(release_name: str) -> str:
    """Name of the Lease that is a release's lock, operation record and proof of identity."""
    return f"{release_name}-magnum"


def kubeconfig_secret(release_name: str) -> str:
    """Name of the Secret in which Cluster API keeps a cluster's kubeconfig."""
    return f"{release_name}-kubeconfig"


def chart_copy(digest: str) -> str:
    """Name of the ConfigMap that keeps the chart with a digest."""
    return f"magnum-chart-{digest}"


def kubeadm_control_plane(release_name: str) -> str:
    """Name the charts give the KubeadmControlPlane."""
    return f"{release_name}-control-plane"


def tells_capacity(chart_family: str, chart_version: str) -> bool:
    """Whether a chart has the key ``capacity`` of a nodegroup, which is none of the contract."""
    return is_own_chart_since(_CAPACITY_SINCE, chart_family, chart_version)


def takes_containerd_disk(chart_family: str, chart_version: str) -> bool:
    """Whether a chart has the key ``containerdBlockDevice``, which is none of the contract."""
    return is_own_chart_since(_CONTAINERD_DISK_SINCE, chart_family, chart_version)


def is_own_chart_since(since: tuple[int, int], chart_family: str, chart_version: str) -> bool:
    """Whether a chart is this project's, of that minor release or later."""
    version = versions.parse(chart_version)
    return chart_family == CHART_FAMILY and version is not None and version.release[:2] >= since


def family_of_keys(chart_family: str, chart_version: str) -> str:
    """The family whose keys a chart takes beside those of the contract.

    :returns: "" for a foreign chart, and for one of this project that has the contract's alone.
    """
    return chart_family if tells_capacity(chart_family, chart_version) else ""


def is_node_group(text: str) -> bool:
    """Whether *text* can be a nodegroup's name: an RFC 1123 label of 1 to 63 characters.

    Two hyphens in a row are none: magnum-capi-helm made one of them, so a row with two can only be
    one of its groups.
    """
    return _DNS_LABEL.match(text) is not None and "--" not in text


def entries(nodegroups: Iterable[str]) -> dict[str, str]:
    """Under which name each nodegroup stands in the chart's values, by its name in Magnum.

    It is its own, for which new ones need a fit name. magnum-capi-helm took any name and put
    hyphens for what does not fit, so the groups of its clusters are found again like this.

    :param nodegroups: all of a cluster, oldest first: a younger one never takes an older one's
        place.
    :returns: names that all differ; one that has no place there gets a name that nothing can have.
    """
    entry_names: dict[str, str] = {}
    for name in nodegroups:
        candidate = name if is_node_group(name) else _hyphenated(name)
        entry_names[name] = (
            f"{name}#" if not candidate or candidate in entry_names.values() else candidate
        )
    return entry_names


def _hyphenated(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
