# SPDX-License-Identifier: Apache-2.0
"""A snapshot: all objects of one release on the management cluster, by label.

A look never raises: what could not be read is in it as such, and nobody can take it for gone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
import dataclasses
import datetime
from typing import Any, Protocol

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import conditions, Json, Missing, names, Observed

LOG = logging.getLogger(__name__)

Listed = tuple[Json, ...] | Missing


class Reader(Protocol):
    """What a look needs of the management cluster.

    ``kube_client.KubeClient`` has it, which asks each time, and so has :class:`CachedReader`.
    """

    def get(self, kind: names.Kind, namespace: str, name: str, /) -> Json | None: ...

    def list(
        self, kind: names.Kind, namespace: str, selector: Mapping[str, str] | None, /
    ) -> list[Json]: ...


def take_snapshot(kube: Reader, namespace: str, release: str, now: datetime.datetime) -> Observed:
    """Everything of *release* that :func:`status.evaluate` and the deletion ask for.

    :param now: aware, UTC; becomes ``Observed.at``.
    :returns: with ``Missing.UNREADABLE`` for every kind that could not be read, and
        ``unreachable`` set when the management cluster did not answer.
    """
    return _Look(kube, namespace, release).at(now)


def read_again(
    kube: Reader,
    namespace: str,
    release: str,
    observed: Observed,
    kinds: Collection[names.Kind],
) -> Observed:
    """A snapshot with the current objects of some kinds.

    :param kinds: of the Cluster and of what it owns.
    """
    return _Look(kube, namespace, release).again(observed, kinds)


class _Look:
    """The reading of one look: after the first time that nobody answers it does not ask again."""

    def __init__(self, kube: Reader, namespace: str, release: str) -> None:
        self._kube = kube
        self._namespace = namespace
        self._release = release
        self._unreachable = ""

    def at(self, now: datetime.datetime) -> Observed:
        own_labels = {names.LABEL_CLUSTER_NAME: self._release}
        cluster = self._one(names.CLUSTER, self._release)
        deployments = self._many(names.MACHINE_DEPLOYMENT, own_labels)
        return Observed(
            at=now,
            cluster=cluster,
            infrastructure=self._owned(names.OPENSTACK_CLUSTER, cluster, "infrastructureRef"),
            control_plane=self._owned(names.CONTROL_PLANE, cluster, "controlPlaneRef"),
            machine_deployments=deployments,
            machine_sets=self._many(names.MACHINE_SET, own_labels),
            machines=self._many(names.MACHINE, own_labels),
            servers=self._many(names.OPENSTACK_SERVER, own_labels),
            addons=self._addons(),
            events=self._events(),
            unreachable=self._unreachable,
        )

    def again(self, observed: Observed, kinds: Collection[names.Kind]) -> Observed:
        """The same with the objects of *kinds* read now."""
        changed: dict[str, Any] = {}
        cluster = observed.cluster
        if names.CLUSTER in kinds:
            changed["cluster"] = cluster = self._one(names.CLUSTER, self._release)
        if names.OPENSTACK_CLUSTER in kinds:
            changed["infrastructure"] = self._owned(
                names.OPENSTACK_CLUSTER, cluster, "infrastructureRef"
            )
        if names.CONTROL_PLANE in kinds:
            changed["control_plane"] = self._owned(names.CONTROL_PLANE, cluster, "controlPlaneRef")
        if names.MACHINE_DEPLOYMENT in kinds:
            own_labels = {names.LABEL_CLUSTER_NAME: self._release}
            changed["machine_deployments"] = self._many(names.MACHINE_DEPLOYMENT, own_labels)
        unreachable = observed.unreachable or self._unreachable
        return dataclasses.replace(observed, **changed, unreachable=unreachable)

    def _many(self, kind: names.Kind, selector: Mapping[str, str] | None) -> Listed:
        if self._unreachable:
            return Missing.UNREADABLE
        try:
            return tuple(self._kube.list(kind, self._namespace, selector))
        except errors.DriverError as error:
            self._note(kind, error)
            return Missing.UNREADABLE

    def _one(self, kind: names.Kind, name: str) -> Json | Missing:
        if self._unreachable:
            return Missing.UNREADABLE
        try:
            obj = self._kube.get(kind, self._namespace, name)
        except errors.DriverError as error:
            self._note(kind, error)
            return Missing.UNREADABLE
        return Missing.NOT_FOUND if obj is None else obj

    def _note(self, kind: names.Kind, error: errors.DriverError) -> None:
        if isinstance(error, errors.ManagementUnreachable):
            self._unreachable = error.detail or error.sentence
        LOG.warning(
            "Release %s: %s cannot be read: %s",
            self._release,
            kind.plural,
            error.detail or error.sentence,
        )

    def _owned(self, kind: names.Kind, cluster: Json | Missing, ref: str) -> Json | Missing:
        """The cluster's control plane or infrastructure: by label, by reference, by name.

        Cluster API sets the label when it first sees the object. One that it never saw, which must
        not be overlooked when the cluster is deleted, still has the name that every chart gives it.
        """
        objects = self._many(kind, {names.LABEL_CLUSTER_NAME: self._release})
        if isinstance(objects, Missing):
            return Missing.UNREADABLE
        if objects:
            return objects[0]
        name_of_reference = (
            None
            if isinstance(cluster, Missing)
            else conditions.at_path(cluster, "spec", ref, "name")
        )
        default_name = (
            names.kubeadm_control_plane(self._release)
            if kind is names.CONTROL_PLANE
            else self._release
        )
        return self._one(kind, str(name_of_reference or default_name))

    def _addons(self) -> Listed:
        own_labels = {names.LABEL_CHART_CLUSTER: self._release}
        releases = self._many(names.HELM_RELEASE, own_labels)
        manifests = self._many(names.MANIFESTS, own_labels)
        if isinstance(releases, Missing) or isinstance(manifests, Missing):
            return Missing.UNREADABLE
        return releases + manifests

    def _events(self) -> Listed:
        """What failed: Events carry no label, but their objects' names begin with the release's."""
        events = self._many(names.EVENT, None)
        if isinstance(events, Missing):
            return events
        return tuple(
            event
            for event in events
            if conditions.tells_of_failure(event)
            and str(conditions.at_path(event, "involvedObject", "name") or "").startswith(
                self._release
            )
        )
