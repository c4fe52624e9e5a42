# SPDX-License-Identifier: Apache-2.0
"""Find the clusters of this driver in Magnum's database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oslo_utils import uuidutils

from magnum import objects
from magnum.common import context as magnum_context
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.reconcile import ownership


def own_clusters(project: str | None = None) -> Iterator[Any]:
    """The clusters of this driver, by name; with one query, whatever their number.

    :param project: only those of this project.
    """
    context = magnum_context.make_admin_context(all_tenants=True)
    filters = {"project_id": project} if project else None
    for cluster in objects.Cluster.list(context, sort_key="name", filters=filters):
        if not ownership.foreign_reason(cluster):
            yield cluster


def find_cluster(text: str) -> Any:
    """The cluster with a UUID, a release or a name.

    :raises errors.InvalidRequest: there is none, or several have the name.
    """
    context = magnum_context.make_admin_context(all_tenants=True)
    fields = ("uuid",) if uuidutils.is_uuid_like(text) else ("stack_id", "name")
    for field in fields:
        found = objects.Cluster.list(context, filters={field: text})
        if len(found) > 1:
            uuids = ", ".join(sorted(f"{one.uuid} (project {one.project_id})" for one in found))
            raise errors.InvalidRequest(
                f"Several clusters have this name. Choose one that is named '{text}': {uuids}."
            )
        if found:
            return found[0]
    raise errors.InvalidRequest(
        f"There is no such cluster. '{text}' is no UUID, no name and no release of one."
    )
