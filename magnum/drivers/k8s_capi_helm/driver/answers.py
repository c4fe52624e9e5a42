# SPDX-License-Identifier: Apache-2.0
"""Refusals of requests whose caller waits for the end, as Magnum's API can hand them on."""

from __future__ import annotations

from oslo_log import log as logging

from magnum.common import exception
from magnum.drivers.k8s_capi_helm import errors

LOG = logging.getLogger(__name__)


def known(error: Exception, uuid: str) -> errors.DriverError:
    """*error* if it is the driver's own, else what a tenant may read of one that nobody foresaw.

    The words of such a one may be anything; they and where it came from go to the log alone.

    :param uuid: of the cluster that it is about.
    """
    if isinstance(error, errors.DriverError):
        LOG.warning("Cluster %s: %s %s", uuid, error, error.detail)
        return error
    LOG.error("Cluster %s: a request met what it should not have.", uuid, exc_info=error)
    return errors.DriverError(
        f"{errors.Cause.INTERNAL}: the request met an error that nobody foresaw. Ask the cloud's "
        f"operator to look into the log of the Magnum conductor, for cluster {uuid}.",
        type(error).__name__,
    )


def refused(error: errors.DriverError) -> exception.NotSupported:
    """The sentence of *error* as an exception that reaches the caller as such, with HTTP 400.

    Only classes of ``magnum.common.exception`` itself pass from the conductor to the API
    (``ALLOWED_EXMODS`` in ``magnum/common/rpc.py``); of any other the caller sees "Remote error"
    and HTTP 500. And NotSupported is the one for which Magnum leaves an upgraded cluster alone.
    """
    return exception.NotSupported(str(error).replace("%", "%%"))
