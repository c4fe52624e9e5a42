# SPDX-License-Identifier: Apache-2.0
"""One conductor of Magnum with whatever driver its Python has: requests in as lines, answers out.

Runs in an environment where nothing of this project is installed, too; so it imports Magnum only.
"""

from __future__ import annotations

from collections.abc import Callable
import json
import os
import sys
import traceback
from typing import Any

from oslo_db.sqlalchemy import enginefacade
from oslo_log import log
from oslo_service import loopingcall

from magnum import objects
from magnum.common import context as magnum_context
from magnum.common import rpc
from magnum.conductor.handlers import cluster_conductor, nodegroup_conductor
import magnum.conf
from magnum.db.sqlalchemy import models
from magnum.drivers.common import driver
from magnum.service import periodic

CONF = magnum.conf.CONF
PROJECT, USER = "p1", "u1"
CLUSTER_FIELDS = ("uuid", "name", "status", "status_reason", "stack_id", "api_address", "labels")
GROUP_FIELDS = ("name", "status", "status_reason", "node_count", "min_node_count", "max_node_count")


class Conductor:
    """The requests that Magnum's API casts, its periodic jobs, and looks at its rows.

    Each method is one request, its arguments are what the line says.
    """

    def __init__(self) -> None:
        self._user = user_of(PROJECT)
        self._admin = magnum_context.make_admin_context(all_tenants=True)
        self._clusters = cluster_conductor.Handler()
        self._groups = nodegroup_conductor.Handler()

    # What Magnum keeps ----------------------------------------------------------------------------
    def make_database(self) -> None:
        models.Base.metadata.create_all(enginefacade.writer.get_engine())

    def template(self, **fields: Any) -> None:
        objects.ClusterTemplate(self._user, project_id=PROJECT, user_id=USER, **fields).create()

    def rows(self) -> list[dict[str, Any]]:
        """Clusters, each with its nodegroups."""
        return [
            {
                **{field: getattr(cluster, field) for field in CLUSTER_FIELDS},
                "health": cluster.health_status,
                "health_reason": cluster.health_status_reason or {},
                "groups": {
                    group.name: {field: getattr(group, field) for field in GROUP_FIELDS}
                    for group in cluster.nodegroups
                },
            }
            for cluster in objects.Cluster.list(self._admin)
        ]

    def settle(self, **fields: Any) -> None:
        """Write rows as they are when Cluster API is through: nobody plays it here."""
        for cluster in objects.Cluster.list(self._admin):
            for row in (*cluster.nodegroups, cluster):
                if row.status.endswith("_IN_PROGRESS"):
                    row.status = row.status.replace("_IN_PROGRESS", "_COMPLETE")
                    row.save()
            for field, value in fields.items():
                setattr(cluster, field, value)
            cluster.save()

    def begin(self, status: str) -> None:
        """Write rows as they are while somebody works on the cluster."""
        for cluster in objects.Cluster.list(self._admin):
            for row in (*cluster.nodegroups, cluster):
                row.status = status
                row.save()

    # Requests -------------------------------------------------------------------------------------
    def create(self, masters: int, workers: int, project: str = PROJECT, **fields: Any) -> None:
        user = user_of(project)
        cluster = objects.Cluster(user, project_id=project, user_id=USER, **fields)
        self._clusters.cluster_create(user, cluster, masters, workers, 60)

    def resize(self, count: int, group: str = "default-worker", uuid: str = "") -> None:
        """Of the only cluster, or the one with this UUID."""
        cluster = objects.Cluster.get_by_uuid(self._admin, uuid) if uuid else self._cluster()
        user = user_of(cluster.project_id)
        row = objects.NodeGroup.get_by_name(user, cluster.uuid, group)
        self._clusters.cluster_resize(user, cluster, count, None, row)

    def upgrade(self, template: str, group: str = "default-worker") -> None:
        cluster = self._cluster()
        row = objects.NodeGroup.get_by_name(self._user, cluster.uuid, group)
        new = objects.ClusterTemplate.get_by_uuid(self._user, template)
        self._clusters.cluster_upgrade(self._user, cluster, new, 1, row)

    def add_group(self, **fields: Any) -> None:
        cluster = self._cluster()
        group = objects.NodeGroup(
            self._user, cluster_id=cluster.uuid, project_id=PROJECT, role="worker", **fields
        )
        self._groups.nodegroup_create(self._user, cluster, group)

    def drop_group(self, name: str) -> None:
        cluster = self._cluster()
        group = objects.NodeGroup.get_by_name(self._user, cluster.uuid, name)
        self._groups.nodegroup_delete(self._user, cluster, group)

    def rotate(self) -> None:
        """A new credential, as the user asks for it."""
        cluster = self._cluster()
        found = driver.Driver.get_driver_for_cluster(self._user, cluster)
        found.rotate_credential(self._user, cluster)

    def delete(self) -> None:
        self._clusters.cluster_delete(self._user, self._cluster().uuid)

    # Periodic jobs --------------------------------------------------------------------------------
    def look(self) -> None:
        """The status job for what is in progress, then the health job for everything."""
        for cluster in objects.Cluster.list(self._admin):
            if cluster.status.endswith("_IN_PROGRESS"):
                _once(periodic.ClusterUpdateJob(self._admin, cluster).update_status)
        for cluster in objects.Cluster.list(self._admin):
            _once(periodic.ClusterHealthUpdateJob(self._admin, cluster).update_health_status)

    def options(self) -> dict[str, dict[str, Any]]:
        """What the configuration file comes to, option by option."""
        groups = ("capi_helm", "capi_helm_cluster_labels")
        return {group: {key: CONF[group][key] for key in CONF[group]} for group in groups}

    def _cluster(self) -> Any:
        (cluster,) = objects.Cluster.list(self._user)
        return cluster


def user_of(project: str) -> Any:
    """A member of a project, who asks for something."""
    return magnum_context.make_context(
        auth_token="token",
        auth_url="http://keystone.example.org/v3",
        project_id=project,
        user_id=USER,
        roles=["member"],
        is_admin=False,
    )


def give(made: Callable[[], driver.Driver]) -> None:
    """Have one driver in the place of the one that Magnum finds, which has to be of its class."""
    for name in ("get_driver", "get_driver_for_cluster"):
        setattr(driver.Driver, name, staticmethod(_exchanging(getattr(driver.Driver, name), made)))


def _exchanging(find: Callable[..., Any], made: Callable[[], Any]) -> Callable[..., Any]:
    def exchanged(*args: Any, **named: Any) -> Any:
        found, other = find(*args, **named), made()
        if type(found) is not type(other):
            raise TypeError(f"Magnum finds {type(found)}")
        return other

    return exchanged


def serve(
    configuration: str, play: Callable[[], None], made: Callable[[], Conductor] = Conductor
) -> None:
    """Answer requests until there are no more.

    :param configuration: path of magnum.conf.
    :param play: puts the played OpenStack in the place of the real one.
    :param made: makes the conductor, which answers.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else is printed is no answer
    log.register_options(CONF)
    # The driver's options have to be known before the file is read.
    [point.load() for point, _ in driver.Driver.load_entry_points()]
    CONF([], project="magnum", default_config_files=[configuration])
    log.setup(CONF, "magnum")
    rpc.init(CONF)
    play()
    conductor = made()
    for line in sys.stdin:
        verb, arguments = json.loads(line)
        try:
            answer = {"answer": getattr(conductor, verb)(**arguments)}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()


def _once(job: Callable[[], None]) -> None:
    try:
        job()
    except loopingcall.LoopingCallDone:
        return
    raise RuntimeError("Magnum's job was not through after one run")
