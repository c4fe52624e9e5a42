# SPDX-License-Identifier: Apache-2.0
"""The typed labels of a cluster that runs."""

from __future__ import annotations

from magnum.drivers.k8s_capi_helm import conf as conf_module
from magnum.drivers.k8s_capi_helm import labels
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.types import Cluster


def parsed_labels(cluster: Cluster, conf: Settings) -> labels.Labels:
    """The labels of a cluster with the site's defaults of now; its template is not read.

    What is wrong with a text counts as not given, as everywhere in a cluster that runs.
    """
    texts = cluster.labels or {}
    return labels.parse(texts, conf_module.label_defaults(conf), running_labels=texts)
