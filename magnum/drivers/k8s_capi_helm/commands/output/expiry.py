# SPDX-License-Identifier: Apache-2.0
"""How urgent it is that something ends: a certificate, a credential, an identity."""

from __future__ import annotations

import datetime

from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus

#: What ends within these times is a fault, or a warning.
CRITICAL_BEFORE = datetime.timedelta(days=7)
WARNING_BEFORE = datetime.timedelta(days=30)


def days_left(end: datetime.datetime, now: datetime.datetime) -> int:
    """Whole days until a time; below zero when it is over."""
    return (end - now).days


def expiry_status(end: datetime.datetime, now: datetime.datetime) -> ExitStatus:
    """How urgent it is that something ends."""
    if end - now < CRITICAL_BEFORE:
        return ExitStatus.CRITICAL
    return ExitStatus.WARNING if end - now < WARNING_BEFORE else ExitStatus.OK
