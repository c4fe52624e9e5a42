# SPDX-License-Identifier: Apache-2.0
"""oslo.config options; label defaults generated from labels.py.

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
    help="How the driver k8s_capi_helm_v1 reaches its management cluster and what it installs.",
)
LABELS_GROUP = cfg.OptGroup(
    "capi_helm_cluster_labels",
    title="Defaults of cluster labels",
    help="What a label of a cluster is where neither its template nor its user says anything. A "
    "change here never touches a cluster that exists.",
)

_CHART = [
    cfg.StrOpt(
        "helm_chart_repo",
        default="",
        secret=True,
        help="URL of the repository that the cluster chart is taken from. Leave it empty for the "
        "chart that comes with the driver, and if helm_chart_name is a path or begins with oci://. "
        "A user and a password may stand before the host, encoded as in every URL.",
    ),
    cfg.StrOpt(
        "helm_chart_name",
        default="",
        help="Name of the cluster chart in the repository, a reference that begins with oci://, or "
        "the path of a chart's directory or .tgz file. Leave it empty for the chart that comes "
        "with the driver.",
    ),
    cfg.StrOpt(
        "default_helm_chart_version",
        default="",
        help="Version of the cluster chart for new clusters whose template has no label "
        "capi_helm_chart_version. Leave it empty for the chart that comes with the driver. "
        "Clusters keep the version that they were made with.",
    ),
    cfg.ListOpt(
        "allowed_charts",
        default=[],
        secret=True,
        help="Charts that cluster templates may name with the labels capi_helm_chart_name and "
        "capi_helm_chart_repo, instead of the one above. Each is NAME, for a chart in the same "
        "repository, or 'REPOSITORY NAME', where the repository is a URL, a directory, or "
        "'bundled' for the charts that come with the driver. Without any, templates can only "
        "choose the version.",
    ),
    cfg.ListOpt(
        "allowed_chart_versions",
        default=[],
        help="Versions of charts that cluster templates may name with the label "
        "capi_helm_chart_version, for new clusters and for upgrades: full ones, or with * for any "
        "text, such as 1.3.*. Every member of a project may make templates, and an old version "
        "has the holes that a newer one has not. Without any, all versions that a chart's source "
        "has can be named. default_helm_chart_version is always allowed.",
    ),
    cfg.BoolOpt(
        "allow_chart_family_change",
        default=False,
        help="Whether an upgrade may take a cluster from one family of charts to another one, "
        "for example from those of azimuth-cloud to those that come with the driver. That "
        "replaces all of its machines.",
    ),
    cfg.StrOpt(
        "chart_directory",
        default="$state_path/k8s_capi_helm/charts",
        help="Directory in which charts are kept, so that changing a cluster needs no network. It "
        "has to be writable where charts come from a repository.",
    ),
    cfg.StrOpt(
        "overlay_directory",
        default="",
        help="Directory of overlays: values of the cluster chart of your own, as YAML. site.yaml "
        "is for every new cluster, NAME.yaml for those whose template has the label "
        "capi_helm_overlay=NAME. They win over the driver's and the site's defaults; labels and "
        "Magnum's fields win over them. Has to be the same on every host of magnum-conductor. "
        "Leave it empty for none.",
    ),
    cfg.IntOpt(
        "helm_timeout",
        default=120,
        min=10,
        help="Seconds after which a run of helm is ended. Has to be more than 15 below "
        "lease_duration.",
    ),
    cfg.IntOpt(
        "max_helm_runs",
        default=4,
        min=1,
        help="Runs of helm at once in each process of magnum-conductor: its parent, which runs the "
        "periodic tasks, and each of its [conductor] workers. A run takes a second or two of CPU "
        "and some 100 MiB of memory. Others wait, and projects take turns; what cannot wait any "
        "longer is left to the periodic task, which carries it out.",
    ),
]

_OPERATIONS = [
    cfg.IntOpt(
        "server_start_timeout",
        default=600,
        min=0,
        help="Seconds after which auto healing replaces a machine whose server never came up, for "
        "example because a quota was met. Has to be longer than the slowest server takes here. "
        "Workers have twice the time, because theirs begins while the control plane comes up. 0 "
        "for the chart's own values. Clusters keep the value that they were made with.",
    ),
    cfg.IntOpt(
        "bare_metal_start_timeout",
        default=3600,
        min=0,
        help="The same for clusters whose template has the server type bm: deploying bare metal "
        "takes longer.",
    ),
    cfg.FloatOpt(
        "lock_wait",
        default=10.0,
        min=0,
        help="Seconds that a request waits for another one on the same cluster. After that it is "
        "left to the periodic task, which carries it out.",
    ),
    cfg.FloatOpt(
        "lease_duration",
        default=150.0,
        min=15,
        help="Seconds after which the work of a conductor that does not answer any more is taken "
        "over by another one.",
    ),
    cfg.IntOpt(
        "update_timeout",
        default=60,
        min=0,
        help="Minutes after which a change of a cluster that is not through is UPDATE_FAILED; 0 "
        "for no limit. For a new cluster its own create timeout holds.",
    ),
    cfg.IntOpt(
        "delete_timeout",
        default=60,
        min=0,
        help="Minutes after which a deletion that is not through is DELETE_FAILED; 0 for no limit.",
    ),
]

_CLOUD = [
    cfg.IntOpt(
        "minimum_flavor_ram",
        default=2048,
        min=0,
        help="Least memory in MiB of a flavor for nodes. Flavors with less are refused.",
    ),
    cfg.IntOpt(
        "minimum_flavor_vcpus",
        default=2,
        min=0,
        help="Least number of vCPUs of a flavor for nodes. Flavors with fewer are refused.",
    ),
    cfg.BoolOpt(
        "preflight_quota",
        default=True,
        help="Whether what a cluster or more nodes need is compared with what the project's "
        "quotas of Nova, Cinder, Neutron and Octavia leave, before anything is made. Switch it off "
        "where a service tells quotas that do not hold. A quota that cannot be read is never in "
        "the way.",
    ),
    cfg.BoolOpt(
        "ignore_keypairs",
        default=False,
        help="Make the machines of new clusters without the keypair that the cluster or its "
        "template names. A Nova keypair is its owner's: where clusters are handed over, or their "
        "owners leave, Cluster API can make no more machines with it. Clusters keep what they were "
        "made with.",
    ),
    cfg.StrOpt(
        "csi_cinder_default_volume_type",
        help="Cinder volume type of the default storage class. Without it the first one that "
        "Cinder lists is taken.",
    ),
    cfg.ListOpt(
        "csi_cinder_allowed_topologies",
        default=[],
        help="Node labels, each as label=value, of the nodes on which volumes of the storage "
        "classes can be used. Several values of one label are alternatives.",
    ),
    cfg.StrOpt(
        "app_cred_interface_type",
        default="public",
        choices=["public", "internal", "admin"],
        help="Which of the cloud's endpoints clusters and Cluster API use.",
    ),
    cfg.ListOpt(
        "app_cred_roles",
        default=[],
        help="Roles of the application credential that a cluster is built with. Of these it has "
        "the ones that its user has, who is refused without any. Leave it empty for all roles of "
        "the user. The role admin is never among them.",
    ),
    cfg.BoolOpt(
        "separate_addon_credential",
        default=False,
        help="Whether what runs inside a new cluster (cloud controller, volume drivers) has an "
        "application credential of its own, so that administrators of the cluster do not hold the "
        "one that builds its machines. Only this project's chart can do that. Clusters that exist "
        "stay as they are.",
    ),
    cfg.ListOpt(
        "addon_cred_roles",
        default=[],
        help="Roles of that credential, as in app_cred_roles; leave it empty for the same ones. "
        "It needs what makes load balancers, rules of security groups and volumes.",
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
    """Make *conf* know the driver's options; more than once does no harm.

    :raises errors.DriverError: another package has registered one of them with another definition.
    """
    for group, options in list_opts():
        try:
            conf.register_group(group)
            conf.register_opts(options, group=group)
        except cfg.DuplicateOptError as error:
            raise errors.DriverError(
                "The Cluster API driver is installed twice. Ask the cloud's operator.",
                f"{error}: remove the package magnum-capi-helm, whose options this driver has",
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
    words = list(label.form.choices)
    if words and default is None:
        words.append("")  # as magnum-capi-helm writes "no default"
    if label.form.option is labels.OptionType.BOOLEAN:
        return cfg.BoolOpt(label.name, default=default, **common)
    if label.form.option is labels.OptionType.INTEGER:
        return cfg.IntOpt(label.name, default=default, min=0, **common)
    return cfg.StrOpt(
        label.name,
        default=default,
        choices=words or None,
        ignore_case=bool(label.form.choices),
        **common,
    )
