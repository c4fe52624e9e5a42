# SPDX-License-Identifier: Apache-2.0
"""One row of ``check``: what was checked, how it is, and what to do."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus, operator_text


@dataclasses.dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check.

    :ivar status: OK, WARNING or CRITICAL.
    :ivar text: what is there; of a fault also the cure, in one line.
    """

    status: ExitStatus
    text: str


def good_result(text: str) -> CheckResult:
    return CheckResult(ExitStatus.OK, text)


def warning_result(text: str) -> CheckResult:
    return CheckResult(ExitStatus.WARNING, text)


def fault_result(text: str) -> CheckResult:
    return CheckResult(ExitStatus.CRITICAL, text)


def error_result(error: errors.DriverError, cure: str) -> CheckResult:
    """The fault that an error of the driver stands for."""
    return fault_result(f"{operator_text(error)}. {cure}")
