# SPDX-License-Identifier: Apache-2.0
"""A request for a nodegroup: what is checked of it, and made for a new one."""

from __future__ import annotations

import contextlib
from typing import Any

from magnum.drivers.k8s_capi_helm import (
    assembly,
    belongings,
    errors,
    intake,
    names,
    newcomers,
    scaling,
)
from magnum.drivers.k8s_capi_helm.driver import passes, room
from magnum.drivers.k8s_capi_helm.model import LiveRelease


def check(ports: assembly.Ports, context: Any, cluster: Any, row: Any, conf: Any) -> int | None:
    """Refuse a nodegroup that cannot be, or else make its server group.

    :param row: of the nodegroup; it is among the cluster's already.
    :returns: machines to hand over to it, because the autoscaler will size it; None for no number.
    :raises errors.DriverError: it cannot be made, and nothing of the cluster has changed.
    """
    intake.validate_new_nodegroup(row, cluster, conf)
    intake.validate_place(row, cluster.nodegroups)
    live = live_release(ports, cluster, conf)
    intake.validate_chart(row, cluster, conf, family(live))
    if live:
        known = names.takes_containerd_disk(live.chart_family, live.chart_version)
        intake.validate_disk(row, cluster, known=known)
    request = passes.request(cluster, conf)
    mine = [group for group in request.node_groups if group.name == row.name]
    cloud = assembly.cloud(context)
    for group in mine:
        facts = room.for_group(cloud, request, group, live.values if live else {}, conf)
        if facts and live:
            newcomers.entries(live, request, mine, facts.flavors, facts.images, conf)
    try:
        belongings.make_server_groups(cloud, request, mine)
    except errors.CloudUnreachable as error:
        # Only the person who asks can make one in the project, and no later pass is that person.
        raise errors.CloudUnreachable(
            f"Nodegroup '{row.name}' was not made, because its server group could not be: {error} "
            "Then delete the nodegroup and create it again, or give it the label "
            "server_group_policies=none.",
            error.detail,
        ) from error
    return next(iter(scaling.first(mine, request.labels).values()), None)


def live_release(ports: assembly.Ports, cluster: Any, conf: Any) -> LiveRelease | None:
    """The live release; None where there is none, and while nobody can read it."""
    with contextlib.suppress(errors.ManagementUnreachable):
        return ports.helm.live(intake.namespace(cluster, conf), cluster.stack_id)
    return None


def family(release: LiveRelease | None) -> str:
    """Family of the live chart's keys; of this project's own while nobody can read it."""
    if release is None:
        return names.CHART_FAMILY
    return names.family_of_keys(release.chart_family, release.chart_version)
