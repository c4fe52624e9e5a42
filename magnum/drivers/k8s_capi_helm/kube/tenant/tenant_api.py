# SPDX-License-Identifier: Apache-2.0
"""Read from a tenant's API server over one connection with a deadline.

A timeout of a socket begins anew with every byte, so a server that sends one now and then would
hold a thread for ever. A watch at the side cuts the connection.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import http.client
import os
import socket
import ssl
import threading
import types

from magnum.drivers.k8s_capi_helm.kube.tenant.tenant_channel import TenantChannel
from magnum.drivers.k8s_capi_helm.kube.tenant.tenant_kubeconfig import TenantKubeconfig
from magnum.drivers.k8s_capi_helm.model import clock

#: Seconds for a connection to come about, without a byte of an answer, and for the whole.
CONNECT, READ, WHOLE = 2.0, 4.0, 10.0
#: Bytes of an answer. An object's metadata is a fraction of that, but a server need not know how to
#: leave the rest out; etcd takes no object that is larger than 1.5 MiB.
LARGEST = 2 << 20
_HEADERS = {
    # What is in the object is nobody's business here.
    "Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
    "User-Agent": "magnum-k8s-capi-helm",
}


class TenantApiUnavailable(Exception):
    """No usable response; the message is for the operator's log."""


class TenantApi:
    """One connection, for one look, in one thread; it is open inside of a ``with``.

    :param whole: seconds after which it is cut.
    :raises Unanswered: from ``with``: there is no connection, or not to the cluster of this
        authority.
    """

    def __init__(self, access: TenantKubeconfig, *, whole: float = WHOLE) -> None:
        self._access = access
        self._connection = http.client.HTTPConnection(access.host, access.port)
        # One that the server has closed is not opened again unwatched.
        self._connection.auto_open = 0
        self._sock: socket.socket | None = None
        self._channel: TenantChannel | None = None
        self._watch = threading.Timer(whole, self._cut)
        self._watch.daemon = True
        self._late = False

    def __enter__(self) -> TenantApi:
        self._watch.start()
        try:
            with _translated():
                self._open()
        except TenantApiUnavailable:
            self.close()
            raise
        return self

    def _open(self) -> None:
        address = (self._access.host, self._access.port)
        trust = _trust(self._access)
        self._sock = socket.create_connection(address, timeout=CONNECT)
        self._channel = TenantChannel(self._sock, trust, self._access.host)
        self._connection.sock = self._channel
        self._sock.settimeout(READ)
        # Not before the watch knows the socket.
        self._channel.handshake()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it; nothing can be asked any more."""
        self._watch.cancel()
        self._connection.close()
        if self._sock is not None:
            self._sock.close()

    def has(self, path: str) -> bool:
        """Whether there is an object at an API path.

        :raises Unanswered: the server says neither.
        """
        if self._late or self._channel is None:
            raise TenantApiUnavailable("it took too long as a whole")
        with _translated():
            self._channel.start_request()
            self._connection.request("GET", path, headers=_HEADERS)
            response = self._connection.getresponse()
            if (response.length or 0) > LARGEST or len(response.read(LARGEST + 1)) > LARGEST:
                raise TenantApiUnavailable(f"GET {path}: the answer is longer than {LARGEST} bytes")
        if response.status not in (200, 404):
            raise TenantApiUnavailable(f"GET {path}: HTTP {response.status}")
        return response.status == 200

    def _cut(self) -> None:
        self._late = True
        if self._sock is not None:
            with contextlib.suppress(OSError):
                # Closing it would not wake the thread that waits for it.
                self._sock.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, http.client.HTTPException) as error:
        words = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise TenantApiUnavailable(clock.with_time(words)) from None


def _trust(access: TenantKubeconfig) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=access.authority)
    # OpenSSL takes a key from a file only; this one is in memory and nobody else's.
    handle = os.memfd_create("client")
    with os.fdopen(handle, "w") as file:
        file.write(f"{access.certificate}\n{access.key}\n")
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{handle}")
    return context
