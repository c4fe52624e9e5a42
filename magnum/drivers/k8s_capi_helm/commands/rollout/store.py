# SPDX-License-Identifier: Apache-2.0
"""Rollouts, each in a ConfigMap of the management cluster, so that any host can continue them.

Each write has the version that was read: of two processes that continue a rollout, the later write
is refused as a conflict, and its process reads again.
"""

from __future__ import annotations

import dataclasses
import datetime
import json

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.rollout.record import (
    MemberState,
    Rollout,
    RolloutMember,
    RolloutState,
)
from magnum.drivers.k8s_capi_helm.model import conditions, Json, names
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.release import project_namespace
from magnum.drivers.k8s_capi_helm.values.sections import pod_security

_PROJECT = "rollouts"
_LABELS = {"k8s-capi-helm.magnum.openstack.org/kept": "rollout"}
_KEY = "rollout.json"
_FORMAT = 1


@dataclasses.dataclass(frozen=True, slots=True)
class StoredRollout:
    """A rollout with the version of its ConfigMap."""

    rollout: Rollout
    version: str


class RolloutStore:
    """The rollouts, all in the first management cluster: a rollout may have clusters of several."""

    def __init__(self, run: Reconciliation) -> None:
        self._clients = run.clients.all_clients()[0]
        self._kube = self._clients.kube
        prefix = run.settings.capi_helm.namespace_prefix
        self._namespace = names.namespace(prefix, _PROJECT)

    def create(self, rollout: Rollout) -> StoredRollout:
        """Store a new rollout, in a namespace that is created for the first one.

        :raises errors.InvalidRequest: there is one of this name.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        level = pod_security.RESTRICTED
        project_namespace.create_namespace(self._clients, self._namespace, _PROJECT, level)
        project_namespace.bind_role(self._clients, self._namespace)
        try:
            obj = self._kube.create(names.CONFIG_MAP, self._manifest(rollout, ""))
        except errors.Conflict:
            raise errors.InvalidRequest(
                f"There is a rollout of this name. See 'rollout status {rollout.name}'."
            ) from None
        return _stored(obj)

    def read(self, name: str) -> StoredRollout:
        """The rollout of a name.

        :raises errors.InvalidRequest: there is none.
        :raises errors.DriverError: the management cluster cannot be read.
        """
        obj = None
        if self._has_namespace():
            obj = self._kube.get(names.CONFIG_MAP, self._namespace, name)
        if obj is None:
            stored, unreadable = self.list_all()
            listed = ", ".join([*(one.rollout.name for one in stored), *unreadable]) or "none"
            raise errors.InvalidRequest(
                f"There is no such rollout. It was called '{name}'; there are: {listed}."
            )
        return _stored(obj)

    def list_all(self) -> tuple[list[StoredRollout], dict[str, errors.DriverError]]:
        """All rollouts by name, and those whose record cannot be read, with the reason.

        :raises errors.DriverError: the management cluster cannot be read.
        """
        if not self._has_namespace():
            return [], {}
        readable, unreadable = [], dict[str, errors.DriverError]()
        objects = self._kube.list(names.CONFIG_MAP, self._namespace, _LABELS)
        for obj in sorted(objects, key=conditions.name):
            try:
                readable.append(_stored(obj))
            except errors.InvalidRequest as error:
                unreadable[conditions.name(obj)] = error
        return readable, unreadable

    def _has_namespace(self) -> bool:
        """Whether there was ever a rollout: before, the driver has no rights there."""
        return self._kube.get(names.NAMESPACE, None, self._namespace) is not None

    def replace(self, previous: StoredRollout, rollout: Rollout) -> StoredRollout:
        """Replace a rollout.

        :param previous: as it was read.
        :raises errors.Conflict: it has changed since.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        manifest = self._manifest(rollout, previous.version)
        return _stored(self._kube.replace(names.CONFIG_MAP, manifest))

    def delete(self, previous: StoredRollout) -> None:
        """Delete a rollout; what it has changed stays.

        :raises errors.DriverError: the management cluster cannot be used.
        """
        self._kube.delete(
            names.CONFIG_MAP, self._namespace, previous.rollout.name, version=previous.version
        )

    def _manifest(self, rollout: Rollout, version: str) -> Json:
        metadata: Json = {
            "name": rollout.name,
            "namespace": self._namespace,
            "labels": {**_LABELS, names.LABEL_MOVE: ""},
        }
        if version:
            metadata["resourceVersion"] = version
        return {"metadata": metadata, "data": {_KEY: encode_rollout(rollout)}}


def encode_rollout(rollout: Rollout) -> str:
    """A rollout as JSON."""
    document = {"format": _FORMAT, **dataclasses.asdict(rollout)}
    return json.dumps(document, default=lambda at: at.isoformat(), indent=1)


def decode_rollout(text: str) -> Rollout:
    """The rollout of a JSON text.

    :raises errors.InvalidRequest: it is none, or of a later version of the command.
    """
    try:
        document = json.loads(text)
        number = document.pop("format")
        if number != _FORMAT:
            raise errors.InvalidRequest(
                "The rollout was written by a later version of the command. Its format is "
                f"{number}, and this one reads {_FORMAT}."
            )
        members = tuple(_member(one) for one in document.pop("members"))
        state = RolloutState(document.pop("state"))
        return Rollout(**document, state=state, members=members)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise errors.InvalidRequest(
            "The record of the rollout cannot be read. Restore its ConfigMap, or delete it.",
            f"{type(error).__name__}: {error}",
        ) from None


def _member(document: Json) -> RolloutMember:
    since = document.pop("since")
    return RolloutMember(
        **{
            **document,
            "state": MemberState(document["state"]),
            "since": datetime.datetime.fromisoformat(since) if since else None,
        }
    )


def _stored(obj: Json) -> StoredRollout:
    text = (obj.get("data") or {}).get(_KEY) or ""
    return StoredRollout(decode_rollout(text), str(conditions.metadata(obj)["resourceVersion"]))
