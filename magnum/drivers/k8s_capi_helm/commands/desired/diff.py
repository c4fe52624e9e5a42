# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm diff``: what is live of a cluster beside what is desired, and what it rolls."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
import json
from typing import Any

from magnum.drivers.k8s_capi_helm.commands.desired.object_changes import (
    ChangeKind,
    ObjectChange,
    release_changes,
)
from magnum.drivers.k8s_capi_helm.commands.desired.options import (
    add_desired_arguments,
    read_desired,
)
from magnum.drivers.k8s_capi_helm.commands.desired.rollout_duration import (
    MachineRollout,
    release_rollouts,
)
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus, OperatorLister, Rows
from magnum.drivers.k8s_capi_helm.commands.output.secret_mask import MASK, SecretMask
from magnum.drivers.k8s_capi_helm.helm import manifest_diff
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

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
        """A row for each field that changes, and for each object that is created or deleted."""
        run, desired = read_desired(self.program, run, arguments)
        changes = release_changes(run, desired.live, desired.manifests(run))
        rollouts = {one.title: one for one in release_rollouts(run, desired.live, changes)}
        status = ExitStatus.WARNING if changes else ExitStatus.OK
        return COLUMNS, _rows(changes, rollouts), status


def _rows(
    changes: Iterable[ObjectChange], rollouts: dict[str, MachineRollout]
) -> Iterator[tuple[Any, ...]]:
    """The machines of an object stand in one row of it, so that a column can be added up.

    :param rollouts: by title of the object; those that stand in a row are taken out.
    """
    masked: dict[str, Mapping[str, manifest_diff.FieldChange]] = {}
    for change in changes:
        rollout = rollouts.pop(change.title, None) if change.replaces_machines else None
        numbers = (rollout.machines, rollout.minutes) if rollout else ("", "")
        if change.kind is ChangeKind.CHANGED:
            if change.title not in masked:
                masked[change.title] = _masked_changes(change)
            texts = _texts(change, masked[change.title])
        else:
            texts = ("", change.kind.value)
        yield (change.title, change.path, *texts, *numbers)


def _masked_changes(change: ObjectChange) -> Mapping[str, manifest_diff.FieldChange]:
    """All changes of an object by path, without secrets; none of those that are equal then.

    The objects are masked as wholes: a neighbour may say that something is a secret, such as the
    name of a variable.
    """
    mask = SecretMask()
    live, desired = mask.json(change.existing_object), mask.json(change.changed_object)
    return {one.path: one for one in manifest_diff.state_changes(desired, live)}


def _texts(
    change: ObjectChange, masked: Mapping[str, manifest_diff.FieldChange]
) -> tuple[str, str]:
    """The live and the desired value, without secrets.

    :param masked: as :func:`_masked_changes` returns them.
    """
    if change.manifest["kind"] == names.SECRET.name or change.path not in masked:
        return MASK, MASK  # masked they are equal
    shown = masked[change.path]
    return _text(shown.current_value), _text(shown.desired_value)


def _text(value: Any) -> str:
    """A value in one line."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
