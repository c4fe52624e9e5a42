# SPDX-License-Identifier: Apache-2.0
"""OpenStack clients with timeouts and retries, and their errors as errors of the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
import contextlib
import re
import traceback
from typing import Any, Protocol

from keystoneauth1 import exceptions as ka_exceptions
from openstack import exceptions as sdk_exceptions
from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.metrics import record
from magnum.drivers.k8s_capi_helm.model import clock
from magnum.drivers.k8s_capi_helm.status.texts.public_text import public

LOG = logging.getLogger(__name__)

_TIMEOUT = 30.0
_SHORTEST = 2.0
_RETRIES = 2
_DETAIL_LIMIT = 2000
#: What openstacksdk, or the driver, raises when an answer, or parts of it, are of another form.
_MALFORMED = (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError)
_RAISED = (
    *_MALFORMED,
    ka_exceptions.ClientException,
    ka_exceptions.RetriableConnectionFailure,
    sdk_exceptions.SDKException,
)
#: What versions each endpoint has, which keystoneauth finds out per session and keeps in a cache of
#: the session. Magnum makes a session per request; with a cache per process no request pays for it.
VERSION_CACHE: dict[str, Any] = {}


class ServiceClients(Protocol):
    """What is needed of ``magnum.common.clients.OpenStackClients`` and beyond; proxies are lazy."""

    def glance(self) -> Any: ...
    def nova(self) -> Any: ...
    def neutron(self) -> Any: ...
    def octavia(self) -> Any: ...
    def cinder(self) -> Any: ...
    def keystone(self) -> Any: ...
    def region(self) -> str | None: ...
    def identity_url(self, interface: str) -> str: ...


class Services:
    """The services of a cloud as one person sees them; each proxy has timeout and retries.

    :ivar is_admin: whether the services show this person what is in all projects.
    """

    def __init__(
        self,
        clients: ServiceClients,
        *,
        is_admin: bool = False,
        version_cache: dict[str, Any] = VERSION_CACHE,
    ) -> None:
        self._clients = clients
        self._version_cache = version_cache
        self.is_admin = is_admin
        self._proxies: dict[str, Any] = {}
        self._usual: float | None = None

    def glance(self) -> Any:
        """Images."""
        return self._proxy("glance", self._clients.glance)

    def nova(self) -> Any:
        """Servers, flavors, server groups."""
        return self._proxy("nova", self._clients.nova)

    def neutron(self) -> Any:
        """Networks, floating IPs."""
        return self._proxy("neutron", self._clients.neutron)

    def octavia(self) -> Any:
        """Load balancers."""
        return self._proxy("octavia", self._clients.octavia)

    def cinder(self) -> Any:
        """Volumes."""
        return self._proxy("cinder", self._clients.cinder)

    def keystone(self) -> Any:
        """Magnum's Keystone client of this person."""
        keystone, tries = self._clients.keystone(), _RETRIES + 1
        self._usual = self._usual or keystone.session.timeout or _TIMEOUT
        # Whoever waits for the answer is to have it in time, also from a service that is silent.
        left = deadline.seconds_left(self._usual * tries) / tries
        keystone.session.timeout = max(_SHORTEST, left)
        keystone.session._discovery_cache = self._version_cache
        return keystone

    def region(self) -> str | None:
        """The region that clusters are in."""
        return self._clients.region()

    def identity_url(self, interface: str) -> str:
        """Where Keystone is for clusters, as the catalogue says."""
        return self._clients.identity_url(interface)

    def _proxy(self, name: str, make: Callable[[], Any]) -> Any:
        """A proxy, made once: whoever makes another one asks the service for its versions again."""
        self.keystone()
        if name not in self._proxies:
            with _translated_errors(name.capitalize(), "its versions"):
                proxy = _made(make)
            proxy.connect_retries = _RETRIES
            proxy.status_code_retries = _RETRIES
            self._proxies[name] = proxy
        return self._proxies[name]


def _made(make: Callable[[], Any]) -> Any:
    """A proxy. Magnum's clients make every failure one of authorization: the cause is wanted."""
    try:
        return make()
    except Exception as error:
        cause = error.__cause__ or error.__context__ or error
        if isinstance(cause, sdk_exceptions.ServiceDiscoveryException):
            # Whatever kept the service from telling its versions, the library only says so.
            raise ka_exceptions.ConnectFailure(str(cause)) from error
        if isinstance(cause, (sdk_exceptions.SDKException, ka_exceptions.ClientException)):
            raise cause from error
        raise


@contextlib.contextmanager
def translate_errors(service: str, subject: str) -> Iterator[None]:
    """Turn what the libraries raise, while *service* is asked for *subject*, into our errors."""
    with _translated_errors(service, subject):
        yield
    record.api_request(service.lower(), 200)


@contextlib.contextmanager
def _translated_errors(service: str, subject: str) -> Iterator[None]:
    """The same, where no request need be made."""
    try:
        yield
    except _RAISED as error:
        if isinstance(error, _MALFORMED):
            record.api_request(service.lower(), record.MALFORMED)
        else:
            record.api_request(service.lower(), _status(error) or record.NO_RESPONSE)
        raise _translated(error, service, subject) from error


def _status(error: Exception) -> int:
    """The HTTP status of an answer that a library has made an error of, 0 without one."""
    if not isinstance(error, (sdk_exceptions.HttpException, ka_exceptions.HttpError)):
        return 0
    return getattr(error, "status_code", None) or getattr(error, "http_status", None) or 0


def _translated(error: Exception, service: str, subject: str) -> errors.DriverError:
    if isinstance(error, _MALFORMED):
        # openstacksdk reads an answer as JSON and takes what was asked for by its name.
        if _is_raised_here(error):
            LOG.error(
                "%s returned an answer for %s that the driver cannot parse.",
                service,
                subject,
                exc_info=error,
            )
        return not_an_answer(service, subject, repr(error)[:_DETAIL_LIMIT])
    if isinstance(error, (ka_exceptions.ConnectFailure, ka_exceptions.RetriableConnectionFailure)):
        return errors.CloudUnreachable(
            f"{service} does not answer. The request for {subject} failed; try again in some "
            "minutes.",
            repr(error),
        )
    if isinstance(error, ka_exceptions.EndpointNotFound):
        return errors.EndpointNotFound(f"This cloud has no {service}.", repr(error))
    if isinstance(error, ka_exceptions.SSLError):
        return errors.CloudUnreachable(
            f"{service} has a certificate that Magnum does not accept. The request about {subject} "
            "failed; ask the cloud's operator to check the certificate.",
            clock.with_time(repr(error)),
        )
    status, answer = _status(error), str(error)
    if isinstance(error, (sdk_exceptions.HttpException, ka_exceptions.HttpError)):
        answer = getattr(error, "details", None) or getattr(error, "message", None) or answer
    if status >= 500 or status == 429:
        return errors.CloudUnreachable(
            f"{service} answered HTTP {status}. The request for {subject} failed; try again in "
            "some minutes.",
            repr(error),
        )
    return errors.CloudRefused(
        f"{service} refused a request ({_noun(subject)}). The answer for {subject}: "
        f"{_ended(public(str(answer)))}",
        f"{error!r} {answer}",
    )


def _ended(words: str) -> str:
    """What a service said, as a sentence that another one can follow."""
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _noun(subject: str) -> str:
    """What a request is about, without its name, which may have dots."""
    return subject.partition(" '")[0].removeprefix("the ")


def not_an_answer(service: str, subject: str, detail: str) -> errors.CloudUnreachable:
    """The error for an answer that cannot be the service's: a proxy's, a cut one, another's."""
    return errors.CloudUnreachable(
        f"{service} returned an unexpected answer. The request for {subject} failed; try again in "
        "some minutes. If this persists, ask the operator to check the proxies between Magnum and "
        "this service.",
        detail,
    )


def not_deleted(service: str, subject: str) -> errors.CloudUnreachable:
    """The error for a resource that a service still has after its deletion."""
    return errors.CloudUnreachable(
        f"{service} has not finished a deletion. It still has {subject}; the deletion continues "
        "when that is deleted."
    )


def list_all(service: str, subject: str, list_objects: Callable[[], Iterable[Any]]) -> list[Any]:
    """All that a service has of something, as openstacksdk reads it page by page.

    :param subject: in the plural, for people.
    :raises errors.CloudUnreachable: it does not answer, or the answer is not a list of that.
    :raises errors.EndpointNotFound: the cloud has no such service.
    :raises errors.CloudRefused: it says no.
    """
    with translate_errors(service, subject):
        return list(list_objects())


def list_of_project(
    service: str, subject: str, project_id: str, list_objects: Callable[[], Iterable[Any]]
) -> list[Any]:
    """What a service has of something in one project, asked for by that project.

    :raises errors.CloudUnreachable: also if one is another project's, so that this is no answer.
    :raises errors.DriverError: as of :func:`list_all`.
    """
    objects = list_all(service, subject, list_objects)
    for obj in objects:
        if obj.project_id != project_id:
            detail = f"{obj.id} is of project {obj.project_id}, not {project_id}"
            raise not_an_answer(service, subject, detail)
    return objects


def is_object_missing(error: Exception, object_id: str) -> bool:
    """Whether a 404 says that this very thing is not there, and not that its address is unknown.

    OpenStack's services name the id of what they do not find, in JSON; a proxy, a wrong address or
    an endpoint that has moved do not, or only as a part of the path.
    """
    response = getattr(error, "response", None)
    try:
        text = str(response.json()) if response is not None else ""
    except ValueError:
        return False
    return re.search(rf"(?<![\w/.-]){re.escape(object_id)}(?![\w/-])", text) is not None


def _is_raised_here(error: Exception) -> bool:
    """Whether the driver's own code raised this, and no library that it calls."""
    last = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-1]
    return str(last.f_globals.get("__name__")).startswith("magnum.drivers.k8s_capi_helm")
