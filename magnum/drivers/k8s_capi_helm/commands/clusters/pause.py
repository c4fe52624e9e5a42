# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm pause`` and ``resume``: stop Cluster API's work on a cluster, and continue it."""

from __future__ import annotations

import abc
import argparse
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    add_clusters_argument,
    find_own_cluster,
    find_record,
)
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus, OperatorLister, Rows
from magnum.drivers.k8s_capi_helm.model import conditions, Json, names, secrets
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

COLUMNS = ("Cluster", "UUID", "Paused", "Since", "Reason")
#: Annotations of a Cluster that an operator has paused: since when, and why.
PAUSED_SINCE = "k8s-capi-helm.magnum.openstack.org/paused-since"
PAUSE_REASON = "k8s-capi-helm.magnum.openstack.org/pause-reason"
_LONGEST_REASON = 500


class _Switch(OperatorLister, metaclass=abc.ABCMeta):
    """What pause and resume have in common: clusters, and a row for each afterwards."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which clusters."""
        parser = super().get_parser(prog_name)
        add_clusters_argument(parser)
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """The state of each cluster afterwards; all of them are found before one is changed."""
        found = []
        for cluster in map(find_own_cluster, arguments.clusters):
            own_run = run.of_cluster(cluster.stack_id)
            owner, _ = find_record(own_run, cluster)
            found.append((own_run, cluster, owner, _cluster_object(own_run, owner)))
        rows = [self._row(own_run, arguments, *others) for own_run, *others in found]
        return COLUMNS, rows, ExitStatus.OK

    def _row(
        self,
        run: Reconciliation,
        arguments: argparse.Namespace,
        cluster: Any,
        owner: secrets.Owner,
        obj: Json,
    ) -> tuple[str, ...]:
        patch = self.patch(run, arguments, obj)
        if patch:
            obj = run.clients.kube.patch(names.CLUSTER, owner.namespace, owner.release, patch)
        annotations = conditions.object_annotations(obj)
        return (
            cluster.name,
            cluster.uuid,
            "yes" if conditions.paused(obj) else "no",
            conditions.words(annotations.get(PAUSED_SINCE)),
            conditions.words(annotations.get(PAUSE_REASON)),
        )

    @abc.abstractmethod
    def patch(self, run: Reconciliation, arguments: argparse.Namespace, obj: Json) -> Json:
        """What changes of the Cluster, {} if nothing."""


class Pause(_Switch):
    """Pause Cluster API's work on clusters: no machine is created, replaced or deleted.

    Requests are still accepted, and carried out when the cluster is resumed; until then Magnum's
    status says that the Cluster is paused. Exit status 0: they are paused, 3: one was not found or
    the management cluster cannot be used.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which clusters, and why."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--reason", default="", metavar="TEXT", help="Why, for the next operator."
        )
        return parser

    def patch(self, run: Reconciliation, arguments: argparse.Namespace, obj: Json) -> Json:
        """The pause, with its reason and time; one that is there keeps its time."""
        if len(arguments.reason) > _LONGEST_REASON:
            raise errors.InvalidRequest(
                "--reason is too long. It has "
                f"{len(arguments.reason)} characters, at most {_LONGEST_REASON} are kept."
            )
        annotations: Json = {}
        if not conditions.paused(obj):
            annotations[PAUSED_SINCE] = run.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        if arguments.reason:
            annotations[PAUSE_REASON] = arguments.reason
        return {"metadata": {"annotations": annotations}, "spec": {"paused": True}}


class Resume(_Switch):
    """Continue Cluster API's work on clusters that are paused, by this command or by other means.

    Exit status 0: they are not paused, 3: one was not found or the management cluster cannot be
    used.
    """

    def patch(self, run: Reconciliation, arguments: argparse.Namespace, obj: Json) -> Json:
        """The end of the pause, if there is one."""
        annotations = dict.fromkeys((PAUSED_SINCE, PAUSE_REASON))
        is_noted = conditions.object_annotations(obj).keys() & annotations.keys()
        if not (conditions.paused(obj) or is_noted):
            return {}
        return {"metadata": {"annotations": annotations}, "spec": {"paused": False}}


def _cluster_object(run: Reconciliation, owner: secrets.Owner) -> Json:
    obj = run.clients.kube.get(names.CLUSTER, owner.namespace, owner.release)
    if obj is None:
        raise errors.InvalidRequest(
            "There is no Cluster to pause on the management cluster. It would be "
            f"'{owner.release}' in namespace '{owner.namespace}'."
        )
    return obj
