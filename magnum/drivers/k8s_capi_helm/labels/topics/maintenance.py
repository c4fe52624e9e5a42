# SPDX-License-Identifier: Apache-2.0
"""Labels about upgrades that the cloud's operator makes."""

from __future__ import annotations

import dataclasses
import datetime

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.labels.value_types import types
from magnum.drivers.k8s_capi_helm.labels.value_types.label import rollout_label
from magnum.drivers.k8s_capi_helm.labels.value_types.maintenance_window import parse_window

_SHORTEST = datetime.timedelta(hours=1)


def _read_window(text: str) -> str:
    """A window, as :func:`parse_window` writes it."""
    try:
        window = parse_window(text)
    except errors.InvalidRequest:
        raise ValueError(text) from None
    if window.duration < _SHORTEST:
        raise types.InvalidText("it is open for less than an hour")
    return window.text


WINDOW = types.LabelType(
    _read_window,
    "weekdays, hours and a time zone, like Sat-Sun 22:00-04:00 Europe/Berlin, at least an hour",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaintenanceLabels:
    """Labels that no chart reads: they are for the operator's rollouts."""

    maintenance_window: str | None = rollout_label(
        WINDOW,
        None,
        "Sat-Sun 22:00-04:00 Europe/Berlin",
        "When the cloud's operator may begin an upgrade of the cluster. Without weekdays the "
        "window opens every day, and without a time zone (of the IANA database) the hours are in "
        "UTC. Without the label an upgrade may begin at any time that the operator plans. Upgrades "
        "that the project requests are not restricted.",
    )
    auto_upgrade_enabled: bool = rollout_label(
        types.SWITCH,
        True,
        "false",
        "Whether the cloud's operator may upgrade the cluster to newer patch releases of its minor "
        "version automatically, if the cloud does so.",
    )
