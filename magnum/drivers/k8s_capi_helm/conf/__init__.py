# SPDX-License-Identifier: Apache-2.0
"""The driver's oslo.config options; label defaults are generated from labels.py.

Names and meanings of the options of magnum-capi-helm 1.4 hold
(https://docs.openstack.org/magnum-capi-helm/latest/), so that a cloud keeps its configuration file.
"""

from __future__ import annotations

from typing import Any

from oslo_config import cfg

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.conf import management
from magnum.drivers.k8s_capi_helm.conf.settings import Settings

GROUP = cfg.OptGroup(
    "capi_helm",
    title="Cluster API driver with Helm",
    help="How the driver k8s_capi_helm_v1 connects to its management cluster and what it installs.",
)
LABELS_GROUP = cfg.OptGroup(
    "capi_helm_cluster_labels",
    title="Defaults of cluster labels",
    help="Value of a cluster label that neither the template nor the user sets. A change never "
    "affects an existing cluster.",
)

_CHART = [
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
        "network. It must be writable if charts come from a repository.",
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
    cfg.IntOpt(
        "helm_timeout",
        default=120,
        min=10,
        help="Seconds after which a Helm process is terminated. Must be more than 15 below "
        "lease_duration.",
    ),
    cfg.IntOpt(
        "max_helm_runs",
        default=4,
        min=1,
        help="Helm processes that run at the same time in each process of magnum-conductor: its "
        "parent, which runs the periodic tasks, and each of its [conductor] workers. A Helm "
        "process takes one or two seconds of CPU time and about 100 MiB of memory. Further runs "
        "wait, and projects take turns; a run that cannot wait any longer is left to the periodic "
        "task.",
    ),
]

_OPERATIONS = [
    cfg.IntOpt(
        "server_start_timeout",
        default=600,
        min=0,
        help="Seconds after which auto healing replaces a machine whose server never became "
        "active, for example because a quota was exceeded. Must be longer than the slowest server "
        "start in this cloud. Workers have twice the time, because theirs starts while the "
        "control plane is being created. 0 selects the chart's default. Existing clusters keep "
        "their value.",
    ),
    cfg.IntOpt(
        "bare_metal_start_timeout",
        default=3600,
        min=0,
        help="Seconds after which auto healing replaces a machine whose server never became "
        "active, for clusters whose template has the server type bm: bare metal deployment takes "
        "longer. 0 selects the chart's default. Existing clusters keep their value.",
    ),
    cfg.FloatOpt(
        "lock_wait",
        default=10.0,
        min=0,
        help="Seconds that a request waits for another operation on the same cluster. After that "
        "the request is left to the periodic task.",
    ),
    cfg.FloatOpt(
        "lease_duration",
        default=150.0,
        min=15,
        help="Seconds without a renewal of a release's Lease after which another conductor takes "
        "over the lock of a conductor that no longer responds. The lock of a process that has "
        "ended on the same host, in the same PID namespace, is taken over at once.",
    ),
    cfg.IntOpt(
        "update_timeout",
        default=60,
        min=0,
        help="Minutes after which an unfinished change of a cluster becomes UPDATE_FAILED; 0 for "
        "no limit. The creation of a cluster has its own create_timeout.",
    ),
    cfg.IntOpt(
        "delete_timeout",
        default=60,
        min=0,
        help="Minutes after which an unfinished deletion becomes DELETE_FAILED; 0 for no limit.",
    ),
]

_CLOUD = [
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

#: Labels whose defaults magnum-capi-helm had in [capi_helm] before 1.4, under these names.
_MOVED = frozenset(label.name for label in labels.REGISTRY if label.name.startswith("csi_cinder_"))


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Groups and options, for oslo.config's sample generator and Sphinx extension."""
    return [
        (GROUP, [*management.OPTIONS, *_CHART, *_OPERATIONS, *_CLOUD]),
        (LABELS_GROUP, [_label_option(label) for label in labels.REGISTRY]),
    ]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the driver's options with *conf*; idempotent.

    :raises errors.DriverError: another package has registered one of them differently.
    """
    for group, options in list_opts():
        try:
            conf.register_group(group)
            conf.register_opts(options, group=group)
        except cfg.DuplicateOptError as error:
            raise errors.DriverError(
                "The Cluster API driver is installed twice. Ask the cloud's operator.",
                f"{error}: remove the package magnum-capi-helm, which registers the same options",
            ) from error


def label_defaults(conf: Settings) -> dict[str, str]:
    """The site's defaults as texts for :func:`labels.parse`.

    Boot volumes fall back to Magnum's own [cinder] default_boot_volume_size and _type, as they do
    with magnum-capi-helm.
    """
    chosen = {label.name: conf[LABELS_GROUP.name][label.name] for label in labels.REGISTRY}
    if "cinder" in conf:
        chosen["boot_volume_size"] = (
            chosen["boot_volume_size"] or conf.cinder.default_boot_volume_size
        )
        chosen["boot_volume_type"] = (
            chosen["boot_volume_type"] or conf.cinder.default_boot_volume_type
        )
    return {name: str(value) for name, value in chosen.items() if value not in (None, "")}


def _label_option(label: labels.Label) -> cfg.Opt:
    old = [cfg.DeprecatedOpt(name, group=LABELS_GROUP.name) for name in label.aliases]
    old += [cfg.DeprecatedOpt(name, group=GROUP.name) for name in label.aliases]
    if label.name in _MOVED:
        old.append(cfg.DeprecatedOpt(label.name, group=GROUP.name))
    common: dict[str, Any] = {"help": label.help, "deprecated_opts": old}
    default = None if label.default == () else label.default
    words = list(label.label_type.choices)
    if words and default is None:
        words.append("")  # as magnum-capi-helm writes "no default"
    if label.label_type.option is labels.OptionType.BOOLEAN:
        return cfg.BoolOpt(label.name, default=default, **common)
    if label.label_type.option is labels.OptionType.INTEGER:
        return cfg.IntOpt(label.name, default=default, min=0, **common)
    return cfg.StrOpt(
        label.name,
        default=default,
        choices=words or None,
        ignore_case=bool(label.label_type.choices),
        **common,
    )
