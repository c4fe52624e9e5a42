# SPDX-License-Identifier: Apache-2.0
"""Magnum's monitor interface: the health poll with the same snapshot and rules as the status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oslo_log import log as logging

from magnum.conductor import monitors
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.errors import column_limits
from magnum.drivers.k8s_capi_helm.handlers.entry import log_context
from magnum.drivers.k8s_capi_helm.model import Verdict
from magnum.objects import fields

LOG = logging.getLogger(__name__)


class Monitor(monitors.MonitorBase):  # type: ignore[misc]
    """What Magnum's periodic health task asks, once a minute for each cluster.

    Magnum saves what it finds in :attr:`data` after :meth:`poll_health_status`.

    :param evaluate: looks at the cluster and says what is so; None when there is nothing to look
        at.
    """

    def __init__(self, context: Any, cluster: Any, evaluate: Callable[[], Verdict | None]) -> None:
        super().__init__(context, cluster)
        self.data: dict[str, Any] = {}
        self._judge = evaluate

    @property
    def metrics_spec(self) -> dict[str, Any]:
        """No metrics: Magnum collects none from drivers any more."""
        return {}

    def pull_data(self) -> None:
        """Nothing to pull; the abstract method has to be there."""

    def poll_health_status(self) -> None:
        """Judge once and leave health and its reasons, texts only, for Magnum to save.

        Nothing is raised: Magnum would log it and go on showing what was true once.
        """
        with log_context.log_about(self.cluster, log_context.HEALTH_TASK, self.context):
            self._poll()

    def _poll(self) -> None:
        try:
            verdict = self._judge()
        except Exception as error:
            LOG.exception(
                "Cluster %s: the health poll failed with an unexpected error.", self.cluster.uuid
            )
            self.data["health_status"] = fields.ClusterHealthStatus.UNKNOWN
            self.data["health_status_reason"] = {_part(error): _sentence(error)}
            return
        if verdict is not None:
            texts = column_limits.fit("health_status_reason", verdict.health_reason)
            shown = self.cluster.health_status, dict(self.cluster.health_status_reason or {})
            # Magnum saves the cluster wherever there is data, equal or not.
            if shown != (verdict.health, texts):
                self.data["health_status"] = verdict.health
                self.data["health_status_reason"] = texts


def _part(error: Exception) -> str:
    """Under which key of the reasons an error stands."""
    of_management = isinstance(error, (errors.ManagementUnreachable, errors.ManagementRefused))
    return str(errors.Cause.MANAGEMENT if of_management else errors.Cause.INTERNAL)


def _sentence(error: Exception) -> str:
    """An error of the driver says it itself; what else happens is for the operator's log."""
    if isinstance(error, errors.DriverError):
        return str(error)
    return (
        "The health of the cluster cannot be evaluated. The log of the cloud's operator has "
        "the reason."
    )
