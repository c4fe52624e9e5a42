# SPDX-License-Identifier: Apache-2.0
"""Options of the management cluster: connection, timeouts, watches."""

from __future__ import annotations

from oslo_config import cfg

from magnum.drivers.k8s_capi_helm.values import pod_security

OPTIONS = [
    cfg.StrOpt(
        "kubeconfig_file",
        default="",
        help="Path of the kubeconfig of the management cluster. If it is not set, the driver uses "
        "the environment variable KUBECONFIG, then ~/.kube/config, and then the service account "
        "of the pod. The file is read again when it changes.",
    ),
    cfg.StrOpt(
        "namespace_prefix",
        default="magnum",
        help="Prefix of the name of each project's namespace on the management cluster. It must "
        "differ between Magnum services that share a management cluster, and must not change "
        "while clusters exist.",
    ),
    cfg.StrOpt(
        "pod_security_level",
        default=pod_security.RESTRICTED,
        choices=pod_security.LEVELS,
        help="Pod Security Standard that Kubernetes enforces in the projects' namespaces on the "
        "management cluster. The cluster autoscaler complies with 'restricted'; select another "
        "level only for a custom cluster chart that runs other workloads there. A namespace that "
        "has a level keeps it; an existing namespace without one gets it as soon as all of its "
        "workloads comply.",
    ),
    cfg.StrOpt(
        "autoscaler_image",
        default="",
        help="Image of the cluster autoscaler without a tag, for example in a mirror: "
        "registry.example.org/mirror/autoscaling/cluster-autoscaler. It runs on the management "
        "cluster, so no label can set it. Leave it empty for the cluster chart's default, "
        "registry.k8s.io/autoscaling/cluster-autoscaler. A change is applied to a cluster with "
        "its next operation.",
    ),
    cfg.ListOpt(
        "autoscaler_image_tags",
        default=[],
        deprecated_opts=[cfg.DeprecatedOpt("autoscaler_tag", group="capi_helm_cluster_labels")],
        help="Tags of autoscaler_image, each as MINOR=TAG for clusters of one Kubernetes minor "
        "release, such as 1.34=v1.34.3, or TAG alone for all others. '@sha256:...' may follow the "
        "tag. If no entry matches, the chart's default is used. A change is applied to a cluster "
        "with its next operation.",
    ),
    cfg.BoolOpt(
        "correct_autoscalers",
        default=False,
        help="Whether the health poll applies autoscaler_image and autoscaler_image_tags to "
        "clusters in a steady state, without waiting for their next operation. No machine is "
        "replaced. As long as a cluster's autoscaler differs from these options, its health has a "
        "notice.",
    ),
    cfg.FloatOpt(
        "management_connect_timeout",
        default=5.0,
        min=0.1,
        help="Timeout, in seconds, of a connection to the management cluster.",
    ),
    cfg.FloatOpt(
        "management_read_timeout",
        default=30.0,
        min=0.1,
        help="Timeout, in seconds, of a response from the management cluster.",
    ),
    cfg.IntOpt(
        "management_breaker_failures",
        default=5,
        min=0,
        help="Consecutive attempts without a response from the management cluster after which "
        "further requests fail at once, so that no thread waits for it, until a probe succeeds. 0 "
        "disables this circuit breaker.",
    ),
    cfg.FloatOpt(
        "management_breaker_pause",
        default=15.0,
        min=0.1,
        help="Maximum number of seconds between two probes of the circuit breaker. Must be below "
        "half of lease_duration.",
    ),
    cfg.FloatOpt(
        "watch_staleness",
        default=45.0,
        min=0,
        max=240,
        help="Seconds after which the objects that the periodic tasks have from watching the "
        "management cluster are too old to be used, in case a connection is lost unnoticed; they "
        "are then read for each cluster. One watch lasts a third of this time, which must be less "
        "than the idle timeout of a load balancer between conductor and management cluster. 0 "
        "disables watches: the objects are always read for each cluster.",
    ),
    cfg.ListOpt(
        "controller_leases",
        default=[
            "capi-system/controller-leader-election-capi",
            "capi-kubeadm-bootstrap-system/kubeadm-bootstrap-manager-leader-election-capi",
            "capi-kubeadm-control-plane-system/kubeadm-control-plane-manager-leader-election-capi",
            "capo-system/controller-leader-election-capo",
        ],
        help="Leases (NAMESPACE/NAME) that the controllers of the management cluster renew while "
        "they run, by default those of the leader election of Cluster API and its OpenStack "
        "provider as clusterctl installs them. If one is not renewed, health is UNKNOWN and names "
        "the controller. A Lease that does not exist, or that the driver may not read, is not "
        "considered.",
    ),
    cfg.FloatOpt(
        "controller_silence",
        default=180.0,
        min=0,
        help="Seconds without a renewal after which a controller counts as stale. 0 reads no "
        "Leases.",
    ),
    cfg.FloatOpt(
        "addon_check_interval",
        default=300.0,
        min=0,
        help="Seconds between two checks by the health poll whether the objects of a settled "
        "cluster's core addons still exist. For this magnum-conductor connects to the cluster's "
        "API with the kubeconfig that Cluster API stores on the management cluster; if the "
        "connection fails, health says so and the check runs less often. 0 disables the check.",
    ),
    cfg.StrOpt(
        "api_resources",
        default="{}",
        deprecated_for_removal=True,
        deprecated_reason="The driver asks the management cluster which versions it serves. The "
        "option is accepted and has no effect.",
        help="API versions and plural names of Cluster API resources, as JSON text.",
    ),
    cfg.ListOpt(
        "k8s_control_plane_resource_conditions",
        default=["MachinesReady", "Ready", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy"],
        deprecated_for_removal=True,
        deprecated_reason="The driver knows the conditions of each API version and what they mean. "
        "The option is accepted and has no effect.",
        help="Conditions of the control plane that must be true.",
    ),
]
