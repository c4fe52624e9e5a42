# SPDX-License-Identifier: Apache-2.0
"""Read ``[capi_helm] management_clusters`` and the group of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import os
from typing import Any

from oslo_config import cfg

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.model.management_cluster import (
    DEFAULT_MANAGEMENT,
    is_management_name,
    ManagementCluster,
)

#: How the name of the group of a management cluster begins.
MANAGEMENT_GROUP = "capi_helm_management_"
OPTIONS = [
    cfg.ListOpt(
        "management_clusters",
        default=[],
        help="Names of management clusters between which new clusters are distributed. Each has a "
        "group [capi_helm_management_NAME] with its kubeconfig and its conditions. The name "
        "'default' stands for the management cluster of [capi_helm] kubeconfig_file: it keeps the "
        "clusters that it has, and gets new ones only if it is listed. A name must not change "
        "while clusters exist there. Leave it empty for one management cluster.",
    ),
]
#: Options of each of these groups.
MANAGEMENT_OPTIONS = [
    cfg.StrOpt(
        "kubeconfig_file",
        default="",
        help="Path of the kubeconfig of this management cluster. Required, except for the "
        "management cluster 'default', which has that of [capi_helm] kubeconfig_file. The file is "
        "read again when it changes.",
    ),
    cfg.StrOpt(
        "context",
        default="",
        help="Context of that kubeconfig. Leave it empty for the kubeconfig's current context.",
    ),
    cfg.IntOpt(
        "weight",
        default=1,
        min=0,
        max=1000,
        help="How many of the new clusters this management cluster gets, compared with the others "
        "that take them and have as many conditions: with 2 twice as many as with 1. With 0 it "
        "gets one only if no other takes it.",
    ),
    cfg.ListOpt(
        "projects",
        default=[],
        help="Condition: ids of the projects whose new clusters this management cluster takes. "
        "Leave it empty for all projects.",
    ),
    cfg.ListOpt(
        "availability_zones",
        default=[],
        help="Condition: availability zones of new clusters that this management cluster takes. A "
        "cluster whose labels name no zone does not meet it, nor one with another zone besides. "
        "Leave it empty for all clusters.",
    ),
    cfg.ListOpt(
        "labels",
        default=[],
        help="Condition: labels, each as NAME=VALUE, that a new cluster must all have, by itself, "
        "by its template or by [capi_helm_cluster_labels]. Leave it empty for all clusters.",
    ),
    cfg.BoolOpt(
        "draining",
        default=False,
        help="Whether this management cluster takes no new clusters. Those that it has are "
        "managed as before.",
    ),
]


def management_group(name: str) -> cfg.OptGroup:
    """The group of a management cluster."""
    return cfg.OptGroup(
        f"{MANAGEMENT_GROUP}{name}",
        title=f"Management cluster {name}",
        help="The end of the group is one of the names in [capi_helm] management_clusters. A new "
        "cluster is created on a management cluster of which it meets all conditions; of several, "
        "on one with the most kinds of conditions, by weight.",
    )


def register_management_groups(conf: Settings) -> None:
    """Register the groups of the management clusters that are configured; idempotent."""
    for name in conf.capi_helm.management_clusters:
        if is_management_name(name):
            group = management_group(name)
            conf.register_group(group)
            conf.register_opts(MANAGEMENT_OPTIONS, group=group)


def read_management_clusters(conf: Settings) -> tuple[ManagementCluster, ...]:
    """The management clusters that are configured by name, () without any.

    :raises errors.InvalidConfiguration: with the group and the option that is wrong.
    """
    chosen = conf.capi_helm.management_clusters
    for name in chosen:
        if not is_management_name(name):
            raise _invalid(
                f"[capi_helm] management_clusters has '{name}': a name has lower-case letters, "
                "digits and hyphens, and at most 30 of them"
            )
        if list(chosen).count(name) > 1:
            raise _invalid(f"[capi_helm] management_clusters has '{name}' twice")
    register_management_groups(conf)
    found = tuple(_read(conf, name) for name in chosen)
    _check_places(found, conf.capi_helm.kubeconfig_file)
    return found


def is_default_used(conf: Settings) -> bool:
    """Whether clusters may be on the management cluster of ``[capi_helm]`` itself."""
    options = conf.capi_helm
    listed = options.management_clusters
    return not listed or DEFAULT_MANAGEMENT in listed or bool(options.kubeconfig_file)


def _read(conf: Settings, name: str) -> ManagementCluster:
    values = {option.dest: _value(conf, name, option) for option in MANAGEMENT_OPTIONS}
    is_default, path = name == DEFAULT_MANAGEMENT, values["kubeconfig_file"]
    if is_default and (path or values["context"]):
        raise _invalid_option(
            name,
            "kubeconfig_file",
            "is for others: set [capi_helm] kubeconfig_file, whose current context is used",
        )
    if not is_default and not path:
        raise _invalid_option(name, "kubeconfig_file", "is not set")
    return ManagementCluster(
        name,
        kubeconfig=conf.capi_helm.kubeconfig_file if is_default else path,
        context=values["context"],
        weight=values["weight"],
        projects=tuple(values["projects"]),
        zones=tuple(values["availability_zones"]),
        labels=tuple(_labels(name, values["labels"])),
        is_draining=values["draining"],
    )


def _value(conf: Settings, name: str, option: Any) -> Any:
    try:
        return conf[f"{MANAGEMENT_GROUP}{name}"][option.dest]
    except (cfg.Error, ValueError) as error:
        raise _invalid_option(name, option.name, f"cannot be used: {error}") from None


def _labels(name: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        label, separator, value = text.partition("=")
        if not separator or label not in labels.BY_NAME:
            raise _invalid_option(
                name, "labels", f"has '{text}': each is NAME=VALUE of a label of the driver"
            )
        try:
            labels.parse({label: value}, {})
        except errors.InvalidRequest as error:
            raise _invalid_option(name, "labels", f"has '{text}': {error}") from None
        yield label, value


def _check_places(found: Iterable[ManagementCluster], default: str) -> None:
    """Refuse one management cluster under two names: a cluster would be found under one only."""
    places = {(os.path.abspath(default), ""): DEFAULT_MANAGEMENT} if default else {}
    for one in found:
        if one.name == DEFAULT_MANAGEMENT:
            continue
        place = os.path.abspath(one.kubeconfig), one.context
        if other := places.get(place):
            raise _invalid_option(
                one.name, "kubeconfig_file", f"and context are those of '{other}', too"
            )
        places[place] = one.name


def _invalid_option(name: str, option: str, words: str) -> errors.InvalidConfiguration:
    return _invalid(f"[{MANAGEMENT_GROUP}{name}] {option} {words}")


def _invalid(detail: str) -> errors.InvalidConfiguration:
    return errors.InvalidConfiguration(
        "This Magnum service cannot manage clusters because of its configuration. Ask its operator "
        "to look into the log.",
        f"{detail}.",
    )
