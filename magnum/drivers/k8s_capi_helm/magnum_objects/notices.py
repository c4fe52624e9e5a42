# SPDX-License-Identifier: Apache-2.0
"""Notices about labels and fields without effect that are not errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from magnum.drivers.k8s_capi_helm import conf as conf_module
from magnum.drivers.k8s_capi_helm import labels
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.reader import worker_nodegroups
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.template import cni, CNIS
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.types import (
    Cluster,
    ClusterTemplate,
    NodeGroup,
)
from magnum.drivers.k8s_capi_helm.model import Json

#: What containerd does anyway, whatever a template of Heat's time says.
_STORAGE_DRIVERS = ("overlay", "overlay2")
_PORT = 6443


def field_notices(
    cluster: Cluster, conf: Settings, live: Json | None = None, nodegroups: Iterable[NodeGroup] = ()
) -> tuple[str, ...]:
    """Sentences for the tenant, () if there is nothing to say; as :func:`named_field_notices`."""
    return tuple(notice.sentence for notice in named_field_notices(cluster, conf, live, nodegroups))


def named_field_notices(
    cluster: Cluster, conf: Settings, live: Json | None = None, nodegroups: Iterable[NodeGroup] = ()
) -> tuple[labels.Notice, ...]:
    """Notices, each with the labels or fields that it is about.

    :param live: values of the live release; None or {} where they are not known.
    :param nodegroups: the cluster's nodegroups.
    """
    network = cni(cluster.cluster_template.network_driver)
    defaults = conf_module.label_defaults(conf)
    label_notices = labels.named_notices(cluster.labels or {}, defaults, network)
    of_template = template_notices(cluster.cluster_template, live or {})
    # Nobody can give the default nodegroups labels: theirs are copies, perhaps old ones.
    labels_by_nodegroup = {
        nodegroup.name: nodegroup.labels or {}
        for nodegroup in worker_nodegroups(nodegroups)
        if not nodegroup.is_default
    }
    own_notices = (
        *_nottemplate_notices(cluster),
        *(
            labels.Notice((), sentence)
            for sentence in labels.nodegroup_notices(labels_by_nodegroup, cluster.labels or {})
        ),
    )
    return (*label_notices, *own_notices, *_disk(cluster), *of_template, *_key(cluster, live))


def _nottemplate_notices(cluster: Cluster) -> Iterator[labels.Notice]:
    """Of a cluster that was taken over: a new one is refused such a label."""
    template_labels, cluster_labels = cluster.cluster_template.labels or {}, cluster.labels or {}
    for name in sorted(labels.template_only_names() & cluster_labels.keys()):
        text = cluster_labels[name]
        if text.strip() and text != template_labels.get(name):
            yield labels.Notice(
                (name,),
                f"Label '{name}' has no effect, because only a cluster template can set it.",
            )


def template_notices(template: ClusterTemplate, live: Json) -> Iterator[labels.Notice]:
    """Notices about fields of a template that are not in force.

    :param live: values of the live release, {} without one.
    """
    driver = template.network_driver
    used = ((live.get("addons") or {}).get("cni") or {}).get("type") or cni(driver)
    if driver and driver not in CNIS:
        sentence = f"network_driver '{driver}' is not available; the cluster uses '{used}'."
        yield labels.Notice(("network_driver",), sentence)
    elif driver and driver != used:
        yield labels.Notice(
            ("network_driver",),
            f"network_driver is '{driver}', and the cluster keeps '{used}', with which it was "
            "created.",
        )
    port = (live.get("apiServer") or {}).get("port") or _PORT
    requested_port = template.apiserver_port or _PORT
    if live and requested_port != port:
        yield labels.Notice(
            ("apiserver_port",),
            f"apiserver_port is {requested_port}, and the cluster keeps {port}, with which it was "
            "created.",
        )
    storage = template.docker_storage_driver
    if storage and storage not in _STORAGE_DRIVERS:
        sentence = f"docker_storage_driver '{storage}' has no effect: containerd chooses its own."
        yield labels.Notice(("docker_storage_driver",), sentence)


def _disk(cluster: Cluster) -> Iterator[labels.Notice]:
    kind = (cluster.labels or {}).get("docker_volume_type", "").strip()
    if kind and not cluster.docker_volume_size:
        yield labels.Notice(
            ("docker_volume_type",),
            "Label 'docker_volume_type' has no effect on nodegroups without a docker_volume_size.",
        )


def _key(cluster: Cluster, live: Json | None) -> Iterator[labels.Notice]:
    """Only the live values say what machines were made with, whatever the option says today."""
    if live and cluster.keypair and not live.get("machineSSHKeyName"):
        yield labels.Notice(
            ("keypair",),
            f"keypair '{cluster.keypair}' is not used: this cloud creates machines without it.",
        )
