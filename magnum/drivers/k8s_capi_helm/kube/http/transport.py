# SPDX-License-Identifier: Apache-2.0
"""HTTP requests with an identity, a timeout and a bounded number of attempts."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import dataclasses
import datetime
import json
import os
import threading
import time
import urllib.parse

import kubernetes.client
import tenacity
import urllib3

from magnum.drivers.k8s_capi_helm import deadline as rpc_deadline
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.http import response_body
from magnum.drivers.k8s_capi_helm.kube.http.circuit_breaker import CircuitBreaker
from magnum.drivers.k8s_capi_helm.kube.http.clock_check import ClockCheck
from magnum.drivers.k8s_capi_helm.kube.http.request import (
    named_errors,
    PASSING,
    refusal,
    Request,
    server_message,
    unreachable,
)
from magnum.drivers.k8s_capi_helm.kube.identity import identity_expiry, kubeconfig
from magnum.drivers.k8s_capi_helm.metrics import record
from magnum.drivers.k8s_capi_helm.model import clock, Json, management_cluster

_ATTEMPTS = 3
# A role that has just been bound is not known everywhere at once: with the pauses in between these
# attempts take some seconds.
_ATTEMPTS_WITH_NEW_ROLE = 7
_LONGEST_PAUSE = 5.0
# All attempts together have this many times what one of them has: a server that takes requests and
# is silent would hold a thread, and who waits for it, for each attempt anew.
_ATTEMPTS_TOGETHER = 1.15
# A certificate that is not valid for longer than that in all is one of an exec plugin or an agent.
_RENEWED = datetime.timedelta(days=14)
# Below that many seconds there is no use in asking.
_TOO_LATE = 0.05


class _Untrusted(Exception):
    """The TLS handshake failed: the certificate is not trusted, for example."""


# The request did not leave this host.
_NOT_SENT = (
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ConnectTimeoutError,
    _Untrusted,
)
_SILENCE = (*_NOT_SENT, urllib3.exceptions.HTTPError, OSError)


class _Unsent(Exception):
    """The server was not reached, or said that it did nothing: any request may be sent again."""


class _Unknown(Exception):
    """Nobody knows whether the request had its effect: only repeatable ones may be sent again."""


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    code: int
    body: bytes

    def json(self, request: Request) -> Json:
        """The answer's object; raises the error that a refusal stands for."""
        if self.code >= 300:
            raise refusal(request, self.code, self.body)
        try:
            parsed: Json = json.loads(self.body)
        except ValueError:
            raise unreachable(f"{request.method} {request.path}: the answer is not JSON") from None
        return parsed


class Transport:
    """The connection to a management cluster; safe to share between threads.

    Parameters are those of :class:`KubeClient`. Nothing happens before the first request.
    """

    def __init__(
        self,
        kubeconfig: str | management_cluster.ManagementCluster | None,
        *,
        connect_timeout: float,
        read_timeout: float,
        pause: float,
        breaker: CircuitBreaker,
    ) -> None:
        self._management = management_cluster.as_management_cluster(kubeconfig)
        self._timeout = (connect_timeout, read_timeout)
        self._pause = pause
        self._breaker = breaker
        self.clock_check = ClockCheck(management=self._management.metrics_label)
        self._lock = threading.Lock()
        self._api: kubernetes.client.ApiClient | None = None
        self._identity: tuple[int, str] | None = None

    @property
    def kubeconfig_path(self) -> str | None:
        """As for :class:`KubeClient`."""
        return kubeconfig.find_kubeconfig(self._management.kubeconfig or None)

    @property
    def context(self) -> str:
        """As for :class:`KubeClient`."""
        return self._management.context

    def send(self, request: Request) -> Answer:
        """The server's answer, after as many attempts as the request allows.

        :raises errors.ManagementUnreachable: there was none, or only signs of passing trouble.
        :raises errors.ManagementRefused: the kubeconfig cannot be used, or is not accepted.
        """
        with named_errors(self._management.metrics_label):
            try:
                reply = self._repeat(request)
                if reply.code == 401:
                    # A token may have ended before its time: once more with a fresh identity.
                    with self._alone():
                        self._api = None
                    reply = self._repeat(request)
            except (_Unsent, _Unknown) as error:
                raise unreachable(f"{request.method} {request.path}: {error}") from None
            if reply.code == 401:
                refused = refusal(request, reply.code, reply.body)
                where = kubeconfig.source(self.kubeconfig_path)
                raise errors.ManagementRefused(str(refused), f"{where}: {refused.detail}")
            return reply

    def identity(self) -> str:
        """A text that is another one when the kubeconfig says something else.

        :raises errors.ManagementRefused: the kubeconfig cannot be used.
        """
        return kubeconfig.fingerprint(self.kubeconfig_path, self.context)

    def stream(self, request: Request, seconds: float) -> Iterator[Json]:
        """The objects of an answer that goes on, one on a line, as they come.

        :param seconds: after which the server was asked to end it.
        :raises errors.ManagementUnreachable: it did not begin, or did not end by itself.
        :raises errors.DriverError: otherwise, what the refusal stands for.
        """
        with named_errors(self._management.metrics_label):
            try:
                connect, read = self._timeout
                response = self._open(request, (connect, max(read, seconds + connect)))
            except _SILENCE as error:
                self._breaker.record_failure(_line(error))
                raise unreachable(f"{request.method} {request.path}: {_line(error)}") from None
            self._breaker.close()
            try:
                if response.status >= 300:
                    content = response_body.read(response, time.monotonic() + sum(self._timeout))
                    raise refusal(request, response.status, content)
                for line in response_body.lines(response):
                    yield json.loads(line)
            except (response_body.BodyTimeout, *_SILENCE) as error:
                raise unreachable(f"{request.method} {request.path}: {_line(error)}") from None
            except ValueError:
                raise unreachable(
                    f"{request.method} {request.path}: the answer is not JSON"
                ) from None
            finally:
                response.close()

    def _repeat(self, request: Request) -> Answer:
        # A plugin of the kubeconfig has a limit of its own, and may use it up.
        self._client()
        max_seconds = _ATTEMPTS_TOGETHER * sum(self._timeout)
        remaining = rpc_deadline.seconds_left(max_seconds)
        end = time.monotonic() + remaining
        if rpc_deadline.is_expired():
            raise unreachable(f"{request.method} {request.path}: not asked, the time is over")
        transient = (_Unsent, _Unknown) if request.repeatable else _Unsent
        retrying = tenacity.Retrying(
            stop=lambda state: _is_enough(state) or state.upcoming_sleep + _TOO_LATE > _rest(end),
            wait=tenacity.wait_random_exponential(multiplier=self._pause, max=_LONGEST_PAUSE),
            retry=tenacity.retry_any(
                tenacity.retry_if_exception_type(transient),
                tenacity.retry_if_result(lambda reply: request.new_role and reply.code == 403),
            ),
            retry_error_callback=_last,
        )
        reply: Answer = retrying(self._attempt, request, end, is_short=remaining < max_seconds)
        return reply

    def _attempt(self, request: Request, end: float, *, is_short: bool) -> Answer:
        """One exchange over the network.

        :param end: when it has to be over.
        :param is_short: because of the caller's deadline, and not because of the server.
        :raises errors.ManagementUnreachable: others have had no answer, and nothing was sent; or
            there was one that used all the time up, as a long list does over a slow line.
        """
        remaining = max(_rest(end), _TOO_LATE)
        connect, read = (min(limit, remaining) for limit in self._timeout)
        deadline = time.monotonic() + min(connect + read, remaining)
        is_cut = is_short and remaining < sum(self._timeout)
        try:
            response = self._open(request, (connect, read))
            content = response_body.read(response, deadline)
        except _NOT_SENT as error:
            self._breaker.record_failure(_line(error), is_short=is_cut)
            raise _Unsent(_line(error)) from None
        except response_body.BodyTimeout as error:
            self._breaker.close()
            raise unreachable(f"{request.method} {request.path}: {error}") from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            self._breaker.record_failure(_line(error), is_short=is_cut)
            raise _Unknown(_line(error)) from None
        self._breaker.close()
        if response.status == 429:
            raise _Unsent("HTTP 429, too many requests")
        if response.status in PASSING:
            raise _Unknown(f"HTTP {response.status}: {server_message(request, content)}")
        return Answer(response.status, content)

    def _open(self, request: Request, timeout: tuple[float, float]) -> urllib3.BaseHTTPResponse:
        """Send a request; the beginning of its answer."""
        api = self._client()
        if refusal := self._breaker.refusal():
            record.api_request(record.MANAGEMENT, record.NOT_SENT)
            raise unreachable(f"{request.method} {request.path}: {refusal}")
        connect, read = timeout
        query = urllib.parse.urlencode(request.query, safe="/", quote_via=urllib.parse.quote)
        headers = {
            "Accept": request.accept,
            "Content-Type": request.content_type,
            **kubeconfig.token_header(api.configuration, self.kubeconfig_path),
        }
        result: int | str = record.NO_RESPONSE
        try:
            # The client's own call_api has other parameters in almost each of its versions.
            response: urllib3.BaseHTTPResponse = api.rest_client.pool_manager.request(
                request.method,
                f"{api.configuration.host}{request.path}{'?' if query else ''}{query}",
                headers={**api.default_headers, **headers},
                body=None if request.body is None else json.dumps(request.body),
                timeout=urllib3.Timeout(connect=connect, read=read),
                redirect=False,
                preload_content=False,
            )
            result = response.status
        except urllib3.exceptions.SSLError as error:
            raise _Untrusted(clock.with_time(_line(error))) from None
        finally:
            record.api_request(record.MANAGEMENT, result)
        self.clock_check.compare(response.headers.get("Date"))
        return response

    def _client(self) -> kubernetes.client.ApiClient:
        """The client for the identity in force; a new one when that has changed, or in a fork."""
        path, context = self.kubeconfig_path, self.context
        identity = (os.getpid(), kubeconfig.fingerprint(path, context))
        with self._alone():
            if self._api is None or identity != self._identity:
                self._breaker.close()
                self._api, self._identity = kubeconfig.load(path, context=context), identity
                _show_expiry(self._api.configuration, self._management.metrics_label)
            return self._api

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock of the identity, for which a plugin may let others wait.

        :raises errors.ManagementUnreachable: it took too long.
        """
        if not self._lock.acquire(timeout=rpc_deadline.seconds_left(sum(self._timeout))):
            raise unreachable(
                "not sent, because the exec plugin of the kubeconfig does not respond"
            )
        try:
            yield
        finally:
            self._lock.release()


def _show_expiry(configuration: kubernetes.client.Configuration, management: str) -> None:
    """Show when the client certificate expires, unless a program renews it all the time."""
    validity = None
    with contextlib.suppress(OSError, ValueError):
        validity = identity_expiry.certificate_validity(configuration)
    is_kept = validity and validity.start and validity.end - validity.start > _RENEWED
    record.identity_expiry(management, validity.end.timestamp() if validity and is_kept else 0.0)


def _rest(end: float) -> float:
    return end - time.monotonic()


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _is_enough(state: tenacity.RetryCallState) -> bool:
    """Whether there were enough attempts: an answer that is tried again is that of a new role."""
    failed = state.outcome is not None and state.outcome.failed
    return state.attempt_number >= (_ATTEMPTS if failed else _ATTEMPTS_WITH_NEW_ROLE)


def _last(state: tenacity.RetryCallState) -> Answer:
    """The answer to the last attempt, or what it raised."""
    assert state.outcome is not None  # there is always a first attempt
    reply: Answer = state.outcome.result()
    return reply
