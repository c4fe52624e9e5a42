# SPDX-License-Identifier: Apache-2.0
"""Deletion of everything that has certain labels, and of nothing that comes after it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import names
from magnum.drivers.k8s_capi_helm.kube_client.client import KubeClient

LOG = logging.getLogger(__name__)


def sweep(
    kube: KubeClient,
    kind: names.Kind,
    namespace: str,
    selector: Mapping[str, str],
    keep: Collection[str] = (),
    level: int = logging.INFO,
) -> None:
    """Delete what is there now, one by one; an object made anew under a name stays.

    :param keep: names of objects that stay.
    :param level: of the log, in which each is named before it is deleted.
    :raises errors.Conflict: one was made anew meanwhile.
    :raises errors.DriverError: otherwise as for ``KubeClient.list`` and ``KubeClient.delete``.
    """
    for one in kube.list(kind, namespace, selector):
        name, uid = one["metadata"]["name"], one["metadata"]["uid"]
        if name not in keep:
            LOG.log(level, "%s %s in %s is deleted", kind.name, name, namespace)
            kube.delete(kind, namespace, name, uid=uid)
