# SPDX-License-Identifier: Apache-2.0
"""Declarations of the driver's options in magnum.conf; those of time limits are in timeouts.py."""

from __future__ import annotations

from oslo_config import cfg

from magnum.drivers.k8s_capi_helm.values.sections import pod_security

MANAGEMENT_CLUSTER = [
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
        "release, such as 1.36=v1.36.1, or TAG alone for all others. '@sha256:...' may follow the "
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
        help="Seconds without a renewal after which a controller counts as stopped. 0 reads no "
        "Leases.",
    ),
    cfg.FloatOpt(
        "addon_check_interval",
        default=300.0,
        min=0,
        help="Seconds between two checks by the health poll whether the objects of the core "
        "addons of a cluster without an operation in progress still exist. For this "
        "magnum-conductor connects to the cluster's API with the kubeconfig that Cluster API "
        "stores on the management cluster; if the connection fails, health says so and the check "
        "runs less often. 0 disables the check.",
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

CHARTS = [
    cfg.StrOpt(
        "helm_chart_repo",
        default="",
        secret=True,
        help="URL of the chart repository of the cluster chart. Leave it empty for the chart that "
        "is bundled with the driver, and where helm_chart_name is a path or begins with oci://. A "
        "user name and a password may precede the host, percent-encoded.",
    ),
    cfg.StrOpt(
        "helm_chart_name",
        default="",
        help="Name of the cluster chart in the repository, a reference that begins with oci://, "
        "or the path of a chart's directory or .tgz file. Leave it empty for the chart that is "
        "bundled with the driver.",
    ),
    cfg.StrOpt(
        "default_helm_chart_version",
        default="",
        help="Version of the cluster chart for new clusters whose template has no label "
        "capi_helm_chart_version. Leave it empty for the chart that is bundled with the driver. "
        "Existing clusters keep their version.",
    ),
    cfg.ListOpt(
        "allowed_charts",
        default=[],
        secret=True,
        help="Charts that cluster templates may select with the labels capi_helm_chart_name and "
        "capi_helm_chart_repo, instead of helm_chart_name. Each entry is NAME, for a chart in the "
        "same repository, or 'REPOSITORY NAME', where the repository is a URL, a directory, or "
        "'bundled' for the charts that are bundled with the driver. If the list is empty, "
        "templates can select the version only.",
    ),
    cfg.ListOpt(
        "allowed_chart_versions",
        default=[],
        help="Chart versions that cluster templates may select with the label "
        "capi_helm_chart_version, for new clusters and for upgrades: full versions, or patterns "
        "in which * matches any text, such as 1.3.*. By default every member of a project may "
        "create templates, and an old version has vulnerabilities that a newer one has fixed. If "
        "the list is empty, every version of the chart's source can be selected. "
        "default_helm_chart_version is always allowed.",
    ),
    cfg.BoolOpt(
        "allow_chart_family_change",
        default=False,
        help="Whether an upgrade may move a cluster from one chart family to another, for example "
        "from the charts of azimuth-cloud to those that are bundled with the driver. This "
        "replaces all machines of the cluster.",
    ),
    cfg.StrOpt(
        "chart_directory",
        default="$state_path/k8s_capi_helm/charts",
        help="Directory in which the driver caches charts, so that changing a cluster needs no "
        "network. If it cannot be written, charts are cached in a temporary directory until the "
        "process ends, with a warning in the log.",
    ),
    cfg.StrOpt(
        "overlay_directory",
        default="",
        help="Directory of overlays: YAML files with the operator's own values of the cluster "
        "chart. site.yaml applies to every new cluster, NAME.yaml to those whose template has the "
        "label capi_helm_overlay=NAME. They take precedence over the driver's and the site's "
        "defaults; labels and Magnum's fields take precedence over them. The directory must be "
        "the same on every host of magnum-conductor. Leave it empty for no overlays.",
    ),
    cfg.StrOpt(
        "policy_file",
        default="",
        help="YAML file with rules about what tenants may request: labels and their values, "
        "versions of Kubernetes, numbers of nodes, public APIs, for all projects or some. A "
        "refused request names the rule. The file is read with each request, and must be the same "
        "on every host of magnum-conductor; while it cannot be read, requests that it is about are "
        "refused. Leave it empty for no rules.",
    ),
    cfg.IntOpt(
        "max_helm_runs",
        default=4,
        min=1,
        help="Helm processes that run at the same time in each process of magnum-conductor: its "
        "parent, which runs the periodic tasks, and each of its [conductor] workers. A Helm "
        "process takes one or two seconds of CPU time and about 100 MiB of memory. Further runs "
        "wait, and projects take turns; a run that cannot wait any longer is left to the periodic "
        "task. The last free one, of two or more, is only for a project that has none.",
    ),
]

METRICS = [
    cfg.StrOpt(
        "metrics_directory",
        default="",
        help="Directory into which each process of magnum-conductor writes its metrics, as a file "
        "k8s_capi_helm-NUMBER.prom for the textfile collector of Prometheus' node_exporter, every "
        "15 seconds. The user of magnum-conductor must be able to write it. Files of processes "
        "that have ended are removed. Leave it empty for no files.",
    ),
    cfg.IntOpt(
        "metrics_port",
        default=0,
        min=0,
        max=65535,
        help="First port on 127.0.0.1 on which Prometheus can read metrics. Each process of "
        "magnum-conductor uses the first free port from this one on: its parent, which runs the "
        "periodic tasks, and each of its [conductor] workers that has carried out a request. 0 "
        "opens no port.",
    ),
]

CLOUD = [
    cfg.IntOpt(
        "minimum_flavor_ram",
        default=2048,
        min=0,
        help="Minimum memory, in MiB, of a flavor for nodes. Flavors with less are refused.",
    ),
    cfg.IntOpt(
        "minimum_flavor_vcpus",
        default=2,
        min=0,
        help="Minimum number of vCPUs of a flavor for nodes. Flavors with fewer are refused.",
    ),
    cfg.BoolOpt(
        "preflight_quota",
        default=True,
        help="Whether the demand of a new cluster or of additional nodes is compared with the "
        "project's free quota in Nova, Cinder, Neutron and Octavia before anything is created. "
        "Set it to false if a service reports quotas that are not enforced. A quota that cannot "
        "be read never blocks a request.",
    ),
    cfg.BoolOpt(
        "ignore_keypairs",
        default=False,
        help="Whether the machines of new clusters are created without the keypair of the cluster "
        "or its template. A Nova keypair belongs to one user: if that user leaves, or the cluster "
        "is handed over to another user, Cluster API cannot create machines with it any more. "
        "Existing clusters keep their setting.",
    ),
    cfg.StrOpt(
        "csi_cinder_default_volume_type",
        help="Cinder volume type of the default storage class. If it is not set, the first type "
        "that Cinder lists is used.",
    ),
    cfg.ListOpt(
        "csi_cinder_allowed_topologies",
        default=[],
        help="Node labels, each as label=value, of the nodes on which volumes of the storage "
        "classes can be attached. Several values of one label are alternatives.",
    ),
    cfg.StrOpt(
        "app_cred_interface_type",
        default="public",
        choices=["public", "internal", "admin"],
        help="Interface of the cloud's endpoints that clusters and Cluster API use.",
    ),
    cfg.ListOpt(
        "app_cred_roles",
        default=[],
        help="Roles of the application credential that Cluster API uses for a cluster. The "
        "credential gets those of these roles that the requesting user has; a user who has none "
        "of them is refused. Leave it empty for all roles of the user. The role admin is never "
        "included.",
    ),
    cfg.BoolOpt(
        "separate_addon_credential",
        default=False,
        help="Whether the programs inside a new cluster (cloud controller manager, volume "
        "drivers) get an application credential of their own, so that the cluster's "
        "administrators have no access to the credential that creates its machines. Requires the "
        "chart that is bundled with the driver. Existing clusters keep their setting.",
    ),
    cfg.ListOpt(
        "addon_cred_roles",
        default=[],
        help="Roles of the separate addon credential, as in app_cred_roles; leave it empty for "
        "the same roles. The credential must be allowed to create load balancers, security group "
        "rules and volumes.",
    ),
]
