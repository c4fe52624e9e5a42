# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm rollout pause``, ``resume`` and ``delete``."""

from __future__ import annotations

import argparse
import dataclasses

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.rollout.plan import resume_rollout
from magnum.drivers.k8s_capi_helm.commands.rollout.record import Rollout, RolloutState
from magnum.drivers.k8s_capi_helm.commands.rollout.run import RolloutCommand
from magnum.drivers.k8s_capi_helm.commands.rollout.store import RolloutStore
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation


class RolloutPause(RolloutCommand):
    """Request no further upgrades; those that were requested continue.

    Exit status 1: it is paused, 3: it cannot be.
    """

    def carry_out(
        self, run: Reconciliation, store: RolloutStore, arguments: argparse.Namespace
    ) -> Rollout:
        """Pause it, if it is running."""
        stored = store.read(arguments.name)
        if stored.rollout.state is not RolloutState.RUNNING:
            raise _wrong_state(stored.rollout, RolloutState.RUNNING)
        changed = dataclasses.replace(stored.rollout, state=RolloutState.PAUSED)
        return store.replace(stored, changed).rollout


class RolloutResume(RolloutCommand):
    """Continue a rollout that is paused, or that has stopped at a cluster.

    Exit status 1: it is running again, 3: it cannot be.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which rollout, and whether the cluster that has failed is upgraded again."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--retry",
            action="store_true",
            help="Request the clusters that have failed again, instead of leaving them out.",
        )
        return parser

    def carry_out(
        self, run: Reconciliation, store: RolloutStore, arguments: argparse.Namespace
    ) -> Rollout:
        """Resume it, if it is paused or stopped."""
        stored = store.read(arguments.name)
        if stored.rollout.state not in (RolloutState.PAUSED, RolloutState.STOPPED):
            raise _wrong_state(stored.rollout, RolloutState.PAUSED, RolloutState.STOPPED)
        changed = resume_rollout(stored.rollout, retry=arguments.retry)
        return store.replace(stored, changed).rollout


class RolloutDelete(RolloutCommand):
    """Delete the record of a rollout; clusters stay unchanged.

    Exit status 0, 1 or 2: that of the rollout that is deleted, 3: it cannot be.
    """

    def carry_out(
        self, run: Reconciliation, store: RolloutStore, arguments: argparse.Namespace
    ) -> Rollout:
        """Delete it, unless it is running."""
        stored = store.read(arguments.name)
        if stored.rollout.state is RolloutState.RUNNING:
            others = [state for state in RolloutState if state is not RolloutState.RUNNING]
            raise _wrong_state(stored.rollout, *others)
        store.delete(stored)
        self.clear_notices(run, stored.rollout, dataclasses.replace(stored.rollout, members=()))
        return stored.rollout


def _wrong_state(rollout: Rollout, *states: RolloutState) -> errors.InvalidRequest:
    expected = " or ".join(state.value for state in states)
    return errors.InvalidRequest(
        f"The rollout is not in a state for this. Rollout '{rollout.name}' is "
        f"{rollout.state.value}; it has to be {expected}."
    )
