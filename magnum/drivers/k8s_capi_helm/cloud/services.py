# SPDX-License-Identifier: Apache-2.0
"""How OpenStack is asked: proxies with timeouts and retries, and what goes wrong as our errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
from typing import Any, Protocol

from keystoneauth1 import exceptions as ka_exceptions
from openstack import exceptions as sdk_exceptions

from magnum.drivers.k8s_capi_helm import errors, patience

_TIMEOUT = 30.0
_SHORTEST = 2.0
_RETRIES = 2
#: What versions each endpoint has, which keystoneauth finds out per session and keeps in a cache of
#: the session. Magnum makes a session per request; with a cache per process no request pays for it.
_VERSIONS: dict[str, Any] = {}


class Clients(Protocol):
    """What is needed of ``magnum.common.clients.OpenStackClients``: proxies, made lazily."""

    def glance(self) -> Any: ...
    def nova(self) -> Any: ...
    def neutron(self) -> Any: ...
    def octavia(self) -> Any: ...
    def cinder(self) -> Any: ...
    def keystone(self) -> Any: ...
    def url_for(self, **kwargs: str) -> str: ...


class Services:
    """The services of a cloud as one person sees them; each proxy has timeout and retries."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
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
        left = patience.left(self._usual * tries) / tries
        keystone.session.timeout = max(_SHORTEST, left)
        keystone.session._discovery_cache = _VERSIONS
        return keystone

    def url_of(self, service_type: str, interface: str) -> str:
        """Where a service is, as the catalogue says."""
        return self._clients.url_for(service_type=service_type, interface=interface)

    def _proxy(self, name: str, make: Callable[[], Any]) -> Any:
        """A proxy, made once: whoever makes another one asks the service for its versions again."""
        self.keystone()
        if name not in self._proxies:
            with asking(name.capitalize(), "its versions"):
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
def asking(service: str, what: str) -> Iterator[None]:
    """Turn what the libraries raise, while *service* is asked for *what*, into our errors."""
    try:
        yield
    except (ka_exceptions.ConnectFailure, ka_exceptions.RetriableConnectionFailure) as error:
        raise errors.CloudUnreachable(
            f"{service} does not answer; {what} could not be read. Try again in some minutes.",
            repr(error),
        ) from error
    except (sdk_exceptions.HttpException, ka_exceptions.HttpError) as error:
        status = getattr(error, "status_code", None) or getattr(error, "http_status", None) or 0
        if status >= 500 or status == 429:
            raise errors.CloudUnreachable(
                f"{service} answered HTTP {status} for {what}. Try again in some minutes.",
                repr(error),
            ) from error
        said = getattr(error, "details", None) or getattr(error, "message", None) or str(error)
        raise errors.CloudRefused(f"{service} refused {what}: {said}", repr(error)) from error
    except (sdk_exceptions.SDKException, ka_exceptions.ClientException) as error:
        raise errors.CloudRefused(f"{service} refused {what}: {error}", repr(error)) from error
