# SPDX-License-Identifier: Apache-2.0
"""What Helm would remember of the release of an addon."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

from sandbox.addons import model, rules, templates
from sandbox.addons.rules import Phase


class Status(enum.StrEnum):
    """Helm's status of the newest revision of a release."""

    DEPLOYED = "deployed"
    FAILED = "failed"
    PENDING_INSTALL = "pending-install"  # this and the next ones: Helm was interrupted
    PENDING_UPGRADE = "pending-upgrade"
    PENDING_ROLLBACK = "pending-rollback"
    UNINSTALLING = "uninstalling"


#: Repaired by a removal: there is no revision before.
REMOVED = (Status.PENDING_INSTALL, Status.UNINSTALLING)
#: Repaired by a rollback to the revision before.
ROLLED_BACK = (Status.PENDING_UPGRADE, Status.PENDING_ROLLBACK)


@dataclasses.dataclass(frozen=True)
class Content:
    """What is installed.

    :ivar chart: where it is from, or its files for Manifests.
    :ivar values: None and other empty ones are the same to Helm.
    """

    chart: rules.Document
    values: Any

    @classmethod
    def of(cls, addon: rules.Document, rendered: Any) -> Content:
        """The content of an addon whose templates are rendered.

        :raises Exception: an object of Manifests is none.
        """
        if addon["kind"] == "Manifests":
            return cls(templates.files(rendered), {})
        chart = model.of(addon).spec.chart
        return cls(chart.dump(), rendered or {})


@dataclasses.dataclass(frozen=True)
class Release:
    """The newest revision of a release.

    :ivar content: of the newest revision that is deployed; None where that is not known.
    """

    content: Content | None
    revision: int
    status: Status = Status.DEPLOYED

    @property
    def is_interrupted(self) -> bool:
        """Whether it has to be repaired first."""
        return self.status in REMOVED + ROLLED_BACK

    def repaired(self) -> Release | None:
        """What a repair leaves: the revision before as a new one, or nothing."""
        if self.status in REMOVED:
            return None
        return dataclasses.replace(self, revision=self.revision + 1, status=Status.DEPLOYED)


def pending(before: Release | None) -> Release:
    """A release that Helm is installing or upgrading."""
    if before is None:
        return Release(None, 1, Status.PENDING_INSTALL)
    return Release(before.content, before.revision + 1, Status.PENDING_UPGRADE)


def after_restart(status: rules.Document) -> Release | None:
    """What there is by the status of an addon, which survives this program.

    A run of Helm that the addon's phase tells of was interrupted.
    """
    phase, revision = status.get("phase"), int(status.get("revision") or 0)
    if phase == Phase.INSTALLING:
        return Release(None, 1, Status.PENDING_INSTALL)
    if phase == Phase.UPGRADING:
        return Release(None, revision + 1, Status.PENDING_UPGRADE)
    if phase == Phase.PREPARING and revision:
        return Release(None, revision + 2, Status.PENDING_ROLLBACK)
    if phase in (Phase.PREPARING, Phase.UNINSTALLING):
        return Release(None, revision, Status.UNINSTALLING)
    return Release(None, revision) if revision else None
