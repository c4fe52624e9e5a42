# SPDX-License-Identifier: Apache-2.0
"""Refusals of synchronous requests, as exceptions that Magnum's API can serialize."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import functools
import time
from typing import ParamSpec, TypeVar

from oslo_db import exception as db_exception
from oslo_log import log as logging
from oslo_messaging import opts

from magnum.common import exception
import magnum.conf
from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.handlers.entry import log_context
from magnum.drivers.k8s_capi_helm.metrics import record

CONF = magnum.conf.CONF
LOG = logging.getLogger(__name__)

#: The part of Magnum's ``rpc_response_timeout`` in which a verb ends what needs the management
#: cluster: the rest is for OpenStack, Magnum's database and queue, and for giving the lock back.
_SHARE = 0.6
# oslo.messaging registers it in processes that call others, which a conductor need not do.
CONF.register_opts(
    [one for _, listed in opts.list_opts() for one in listed if one.name == "rpc_response_timeout"]
)
_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


def deadline_of_request() -> float:
    """When, of ``time.monotonic()``, a verb that begins now has to be through."""
    return time.monotonic() + _SHARE * float(CONF.rpc_response_timeout)


def count_requests(verb: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """Have requests of a verb counted and logged, and those that it refuses by an exception."""

    @log_context.with_log_context
    @functools.wraps(verb)
    def measured(*args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        record.new_request(verb.__name__)
        try:
            return verb(*args, **kwargs)
        except Exception as error:
            cause = error.__cause__ if error.__cause__ is not None else error
            is_expected = isinstance(cause, errors.DriverError)
            record.request_refused(verb.__name__, is_expected=is_expected)
            raise

    return measured


def with_deadline(verb: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """Have a verb answer before Magnum's API gives up, whatever the management cluster does.

    What is not through by then is where a killed conductor would have left it: the passes go on.
    """

    @count_requests
    @functools.wraps(verb)
    def bounded(*args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        with deadline.end_at(deadline_of_request()):
            return verb(*args, **kwargs)

    return bounded


def as_driver_error(error: Exception, uuid: str) -> errors.DriverError:
    """*error* if it is the driver's own, else a generic one for tenants.

    The words of such a one may be anything; they and where it came from go to the log alone.

    :param uuid: of the cluster that it is about.
    """
    if isinstance(error, errors.DriverError):
        LOG.warning("Cluster %s: %s %s", uuid, error, error.detail)
        return error
    LOG.error("Cluster %s: a request failed with an unexpected error.", uuid, exc_info=error)
    if isinstance(error, (db_exception.DBConnectionError, db_exception.DBDeadlock)):
        return errors.DriverError(
            f"{errors.Cause.INTERNAL}: Magnum's database does not answer, so this request could "
            "not be saved. Delete the cluster if it was being created, and send the request again "
            "in some minutes.",
            type(error).__name__,
        )
    return errors.DriverError(
        f"{errors.Cause.INTERNAL}: the request failed with an unexpected error. Ask the cloud's "
        f"operator to look into the log of the Magnum conductor, for cluster {uuid}.",
        type(error).__name__,
    )


@contextlib.contextmanager
def refusals(uuid: str) -> Iterator[None]:
    """Refuse with the reason whatever goes wrong, so that Magnum leaves the cluster alone.

    Of anything else Magnum makes UPDATE_FAILED, with the words of the exception.

    :param uuid: of the cluster that the request is about.
    :raises exception.NotSupported: with the reason.
    """
    try:
        yield
    except Exception as error:
        raise not_supported(as_driver_error(error, uuid)) from error


def not_supported(error: errors.DriverError) -> exception.NotSupported:
    """The sentence of *error* as an exception that reaches the caller as such, with HTTP 400.

    Only classes of ``magnum.common.exception`` itself pass from the conductor to the API
    (``ALLOWED_EXMODS`` in ``magnum/common/rpc.py``); of any other the caller sees "Remote error"
    and HTTP 500. And NotSupported is the one for which Magnum leaves an upgraded cluster alone.
    """
    return exception.NotSupported(str(error).replace("%", "%%"))
