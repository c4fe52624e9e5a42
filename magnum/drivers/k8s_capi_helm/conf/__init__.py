# SPDX-License-Identifier: Apache-2.0
"""The driver's oslo.config options; label defaults are generated from labels.py.

Names and meanings of the options of magnum-capi-helm 1.4 hold
(https://docs.openstack.org/magnum-capi-helm/latest/), so that a cloud keeps its configuration file.
"""

from __future__ import annotations

from typing import Any

from oslo_config import cfg

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.conf import management_clusters, options, timeouts
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

#: Labels whose defaults magnum-capi-helm had in [capi_helm] before 1.4, under these names.
_MOVED = frozenset(label.name for label in labels.REGISTRY if label.name.startswith("csi_cinder_"))
#: Labels whose defaults Magnum itself has as well, and its options.
_CINDER = "cinder"
_OF_CINDER = {
    "boot_volume_size": "default_boot_volume_size",
    "boot_volume_type": "default_boot_volume_type",
}


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Groups and options, for oslo.config's sample generator and Sphinx extension."""
    return [
        (
            GROUP,
            [
                *options.MANAGEMENT_CLUSTER,
                *management_clusters.OPTIONS,
                *options.CHARTS,
                *timeouts.OPTIONS,
                *options.CLOUD,
                *options.METRICS,
            ],
        ),
        (LABELS_GROUP, [_label_option(label) for label in labels.REGISTRY]),
        (management_clusters.management_group("name"), management_clusters.MANAGEMENT_OPTIONS),
    ]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the driver's options with *conf*; idempotent.

    :raises errors.DriverError: another package has registered one of them differently.
    """
    for group, group_options in list_opts():
        try:
            conf.register_group(group)
            conf.register_opts(group_options, group=group)
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
    for name, option in _OF_CINDER.items() if "cinder" in conf else ():
        chosen[name] = chosen[name] or conf[_CINDER][option]
    return {name: str(value) for name, value in chosen.items() if value not in (None, "")}


def default_option(conf: Settings, name: str) -> str:
    """The option with which the operator has set a label's default, with its file.

    :param name: of the label.
    :returns: "" where it is not set, so that the default is the driver's.
    """
    chosen = conf[LABELS_GROUP.name][name]
    if name in _OF_CINDER and not chosen and "cinder" in conf and conf[_CINDER][_OF_CINDER[name]]:
        return _option_location(conf, _OF_CINDER[name], _CINDER)
    return "" if chosen in (None, "") else _option_location(conf, name, LABELS_GROUP.name)


def _option_location(conf: Settings, name: str, group: str) -> str:
    found = conf.get_location(name, group)
    if found is None or found.location is cfg.Locations.opt_default:
        return ""
    is_file = found.location is cfg.Locations.user
    return f"[{group}] {name}" + (f" in {found.detail}" if is_file else "")


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
