# SPDX-License-Identifier: Apache-2.0
"""Deletion of everything that has certain labels, and of nothing that comes after it."""

from __future__ import annotations

import builtins
from collections.abc import Container, Mapping
from typing import Protocol

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm.model import Json, names

LOG = logging.getLogger(__name__)


class Collection(Protocol):
    """What is needed of a client; ``kube_client.KubeClient`` has it."""

    def list(
        self, kind: names.Kind, namespace: str | None, labels: Mapping[str, str] | None
    ) -> builtins.list[Json]:
        """See :meth:`kube_client.KubeClient.list`."""

    def delete(
        self, kind: names.Kind, namespace: str | None, name: str, *, uid: str | None = None
    ) -> bool:
        """See :meth:`kube_client.KubeClient.delete`."""


def delete_each(
    client: Collection,
    kind: names.Kind,
    namespace: str,
    selector: Mapping[str, str],
    keep: Container[str],
    level: int,
) -> None:
    """Delete the listed objects one by one; an object created meanwhile under a name stays.

    The API's own deletecollection would take what is created meanwhile, too.

    :param keep: names of objects that stay.
    :param level: of the log, in which each is named before it is deleted.
    """
    for item in client.list(kind, namespace, selector):
        name, uid = item["metadata"]["name"], item["metadata"]["uid"]
        if name not in keep:
            LOG.log(level, "%s %s in %s is deleted", kind.name, name, namespace)
            client.delete(kind, namespace, name, uid=uid)
