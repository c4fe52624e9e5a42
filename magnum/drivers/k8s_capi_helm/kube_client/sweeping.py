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
) -> list[str]:
    """Delete what is there now, one by one; an object made anew under a name stays.

    :param keep: names of objects that stay.
    :returns: the names of the others.
    :raises errors.Conflict: one was made anew meanwhile.
    :raises errors.DriverError: otherwise as for ``KubeClient.list`` and ``KubeClient.delete``.
    """
    there = [one["metadata"] for one in kube.list(kind, namespace, selector)]
    found = [one for one in there if one["name"] not in keep]
    for one in found:
        LOG.info("%s %s in %s is deleted", kind.name, one["name"], namespace)
        kube.delete(kind, namespace, one["name"], uid=one["uid"])
    return [one["name"] for one in found]
