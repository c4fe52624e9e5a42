# SPDX-License-Identifier: Apache-2.0
"""Options about the way to the management cluster: which one, how long to wait, how to watch it."""

from __future__ import annotations

from oslo_config import cfg

from magnum.drivers.k8s_capi_helm.values import pod_security

OPTIONS = [
    cfg.StrOpt(
        "kubeconfig_file",
        default="",
        help="Path of the kubeconfig of the management cluster. Without it the environment "
        "variable KUBECONFIG, then ~/.kube/config and at last the service account of the pod are "
        "used. The file is read again when it changes.",
    ),
    cfg.StrOpt(
        "namespace_prefix",
        default="magnum",
        help="Beginning of the name of each project's namespace on the management cluster. It has "
        "to differ between Magnum services that share a management cluster, and must not be "
        "changed while there are clusters.",
    ),
    cfg.StrOpt(
        "pod_security_level",
        default=pod_security.RESTRICTED,
        choices=pod_security.LEVELS,
        help="The Pod Security Standard that Kubernetes enforces in the namespaces of projects on "
        "the management cluster. The cluster autoscaler keeps to 'restricted'; choose another one "
        "only for a cluster chart of your own that runs more there. A namespace that has a level "
        "keeps it, and one that was there before gets it as soon as everything in it keeps to it.",
    ),
    cfg.StrOpt(
        "autoscaler_image",
        default="",
        help="Name of the cluster autoscaler's image without a tag, for example in a mirror: "
        "registry.example.org/mirror/autoscaling/cluster-autoscaler. It runs on the management "
        "cluster, so no label can name it. Leave it empty for the cluster chart's own, "
        "registry.k8s.io/autoscaling/cluster-autoscaler. A change reaches a cluster with its next "
        "operation.",
    ),
    cfg.ListOpt(
        "autoscaler_image_tags",
        default=[],
        deprecated_opts=[cfg.DeprecatedOpt("autoscaler_tag", group="capi_helm_cluster_labels")],
        help="Tags of that image, each as MINOR=TAG for clusters of one minor release of "
        "Kubernetes, like 1.34=v1.34.3, or TAG alone for all others. '@sha256:...' may follow the "
        "tag. Without one the chart's own holds. A change reaches a cluster with its next "
        "operation.",
    ),
    cfg.BoolOpt(
        "correct_autoscalers",
        default=False,
        help="Whether the health poll brings the autoscaler of clusters that are not changed to "
        "what these options say, without waiting for their next operation. No machine is "
        "replaced. Until then a cluster's health says that its autoscaler is another one.",
    ),
    cfg.FloatOpt(
        "management_connect_timeout",
        default=5.0,
        min=0.1,
        help="Seconds to wait for a connection to the management cluster.",
    ),
    cfg.FloatOpt(
        "management_read_timeout",
        default=30.0,
        min=0.1,
        help="Seconds to wait for an answer of the management cluster.",
    ),
    cfg.IntOpt(
        "management_breaker_failures",
        default=5,
        min=0,
        help="Attempts in a row without an answer of the management cluster after which requests "
        "to it fail at once, so that no thread waits for it, until one that tries again has an "
        "answer. 0 for never.",
    ),
    cfg.FloatOpt(
        "management_breaker_pause",
        default=15.0,
        min=0.1,
        help="Seconds at most between two such tries. Has to be below half of lease_duration.",
    ),
    cfg.FloatOpt(
        "watch_staleness",
        default=45.0,
        min=0,
        max=240,
        help="Seconds after which what the periodic tasks know from watching the management "
        "cluster is too old to be used, should its connections have died unseen; it is then read "
        "again for each cluster. A third of it is how long one watch lasts, which has to be less "
        "than what a load balancer in between lets an idle connection live. 0 to watch nothing and "
        "to read for each cluster always.",
    ),
    cfg.ListOpt(
        "controller_leases",
        default=[
            "capi-system/controller-leader-election-capi",
            "capi-kubeadm-bootstrap-system/kubeadm-bootstrap-manager-leader-election-capi",
            "capi-kubeadm-control-plane-system/kubeadm-control-plane-manager-leader-election-capi",
            "capo-system/controller-leader-election-capo",
        ],
        help="Leases (NAMESPACE/NAME) that the controllers of the management cluster renew as long "
        "as they live, by default those of Cluster API's and its OpenStack provider's leader "
        "election as clusterctl installs them. When one is not renewed, health is UNKNOWN and says "
        "whose. One that is not there, or that the driver may not read, says nothing.",
    ),
    cfg.FloatOpt(
        "controller_silence",
        default=180.0,
        min=0,
        help="Seconds without a renewal after which a controller counts as silent. 0 to ask for no "
        "Lease.",
    ),
    cfg.FloatOpt(
        "addon_check_interval",
        default=300.0,
        min=0,
        help="Seconds between two looks of the health poll into a cluster at rest, whether what "
        "its core addons consist of is still there. For this magnum-conductor connects to the "
        "cluster's API with the kubeconfig that Cluster API has on the management cluster; where "
        "it does not get there it says so and tries more seldom. 0 to look into no cluster.",
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
        help="Conditions of the control plane that have to be true.",
    ),
]
