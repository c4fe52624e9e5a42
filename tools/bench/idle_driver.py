# SPDX-License-Identifier: Apache-2.0
"""A driver of Magnum that does nothing: what a pass costs with it is Magnum's own part."""

from __future__ import annotations

from typing import Any

from magnum.common import exception
from magnum.drivers.common import driver


class Monitor:
    """Says nothing about the health, so that Magnum writes nothing."""

    def __init__(self) -> None:
        self.data = dict[str, Any]()

    def poll_health_status(self) -> None:
        """Ask nobody."""


class Driver(driver.Driver):  # type: ignore[misc]
    """Takes the clusters of the benchmark, and leaves them as they are."""

    @property
    def provides(self) -> list[dict[str, str]]:
        return [{"server_type": "vm", "os": "ubuntu", "coe": "kubernetes"}]

    def update_cluster_status(self, context: Any, cluster: Any) -> None:
        """Leave the rows alone."""

    def get_monitor(self, context: Any, cluster: Any) -> Monitor:
        """One that knows nothing; where there is none, Magnum reads the template for its log."""
        return Monitor()

    def _refuse(self, *args: Any, **named: Any) -> None:
        raise exception.NotSupported("the benchmark has periodic tasks only")

    create_cluster = update_cluster = upgrade_cluster = delete_cluster = _refuse
    resize_cluster = create_nodegroup = update_nodegroup = delete_nodegroup = _refuse
    create_federation = update_federation = delete_federation = _refuse
