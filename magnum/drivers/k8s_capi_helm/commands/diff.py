# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm diff``: what is live of a cluster beside what is desired, and what it rolls."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
import json
from typing import Any

from magnum.drivers.k8s_capi_helm.commands.desired_options import (
    add_desired_arguments,
    read_desired,
)
from magnum.drivers.k8s_capi_helm.commands.lister import ExitStatus, OperatorLister, Rows
from magnum.drivers.k8s_capi_helm.commands.object_changes import (
    ChangeKind,
    deployed_objects,
    NamespaceObjects,
    object_changes,
    ObjectChange,
)
from magnum.drivers.k8s_capi_helm.commands.rollout_duration import machine_rollouts, MachineRollout
from magnum.drivers.k8s_capi_helm.commands.secret_mask import MASK, SecretMask
from magnum.drivers.k8s_capi_helm.helm import manifest_diff
from magnum.drivers.k8s_capi_helm.model import Json, LiveRelease, names
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation

COLUMNS = ("Object", "Field", "Live", "Desired", "Machines", "Minutes")


class Diff(OperatorLister):
    """Compare the objects of a cluster with what is desired of it, and say which machines roll.

    Nothing is written. Without options it is what Magnum's records ask for now; with a template, a
    chart version or labels what an upgrade would change. For a configuration that is not in force
    yet, give its file by --config-file. Exit status 0: nothing changes, 1: something changes, 3: it
    could not be found out, or the driver would refuse it.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which cluster, and what it is compared with."""
        parser = super().get_parser(prog_name)
        add_desired_arguments(parser)
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each field that changes, and for each object that comes or goes."""
        _, desired = read_desired(run, arguments)
        for note in desired.notes:
            self.program.LOG.error("%s", note)
        changes = release_changes(run, desired.live, desired.manifests(run))
        kube, live = run.clients.kube, desired.live
        machines = kube.list(names.MACHINE, live.namespace, {names.LABEL_CLUSTER_NAME: live.name})
        rollouts = {one.title: one for one in machine_rollouts(changes, machines)}
        status = ExitStatus.WARNING if changes else ExitStatus.OK
        return COLUMNS, _rows(changes, rollouts), status


def release_changes(
    run: Reconciliation, live: LiveRelease, manifests: list[Json]
) -> list[ObjectChange]:
    """What Helm would change, were a release to have these objects.

    :raises errors.DriverError: the management cluster cannot be read.
    """
    existing = NamespaceObjects(run).find_all(manifests, live.namespace)
    return list(object_changes(manifests, deployed_objects(run, live), existing))


def _rows(
    changes: Iterable[ObjectChange], rollouts: Mapping[str, MachineRollout]
) -> Iterator[tuple[Any, ...]]:
    """The machines of an object stand in one row of it, so that a column can be added up."""
    counted = set()
    for change in changes:
        rollout = None
        if change.replaces_machines and change.title not in counted:
            rollout = rollouts.get(change.title)
            counted.add(change.title)
        numbers = (rollout.machines, rollout.minutes) if rollout else ("", "")
        texts = _texts(change) if change.kind is ChangeKind.CHANGED else ("", change.kind.value)
        yield (change.title, change.path, *texts, *numbers)


def _texts(change: ObjectChange) -> tuple[str, str]:
    """The live and the desired value, without secrets.

    They are masked within their whole objects: what is a secret may be said by a neighbour, such as
    the name of a variable.
    """
    if change.manifest["kind"] == names.SECRET.name:
        return MASK, MASK
    mask = SecretMask()
    live, desired = mask.json(change.existing_object), mask.json(change.manifest)
    masked = {one.path: one for one in manifest_diff.field_changes(desired, live)}
    if change.path in masked:
        shown = masked[change.path]
        return _text(shown.current_value), _text(shown.desired_value)
    if change.desired_value is not None:
        return MASK, MASK  # masked they are equal
    key = change.path.rpartition(".")[2]
    return _text(mask.json({key: change.current_value})[key]), ""


def _text(value: Any) -> str:
    """A value in one line."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
