# SPDX-License-Identifier: Apache-2.0
"""Refusals of requests whose caller waits for the end, as Magnum's API can hand them on."""

from __future__ import annotations

from magnum.common import exception
from magnum.drivers.k8s_capi_helm import errors


def refused(error: errors.DriverError) -> exception.NotSupported:
    """The sentence of *error* as an exception that reaches the caller as such, with HTTP 400.

    Only classes of ``magnum.common.exception`` itself pass from the conductor to the API
    (``ALLOWED_EXMODS`` in ``magnum/common/rpc.py``); of any other the caller sees "Remote error"
    and HTTP 500. And NotSupported is the one for which Magnum leaves an upgraded cluster alone.
    """
    return exception.NotSupported(str(error).replace("%", "%%"))
