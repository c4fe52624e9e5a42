# SPDX-License-Identifier: Apache-2.0
"""A port on the loopback interface on which Prometheus reads the metrics of one process.

One thread answers one request after another, each of which has some seconds: so it needs no
``select``, which would hold up all threads where eventlet has replaced them after this library was
loaded.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import errno
import os
import socket
import socketserver
from typing import Any
from wsgiref import simple_server

from prometheus_client import CollectorRegistry, make_wsgi_app

ADDRESS = "127.0.0.1"
#: Ports that are tried, from the first one on.
MAX_PORTS = 256
#: Seconds for one request.
_TIMEOUT = 5.0


class _Handler(simple_server.WSGIRequestHandler):
    timeout = _TIMEOUT

    def log_message(self, *arguments: Any) -> None:
        """Nothing is logged of a request."""


class _Server(simple_server.WSGIServer):
    # Newer Pythons let several processes listen on one port, of which one would be read.
    allow_reuse_port = False

    def server_bind(self) -> None:
        """As usual, without asking a name server who this host is."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.server_address[1]
        self.setup_environ()

    def handle_error(self, *arguments: Any) -> None:
        """A client that disconnects is no fault of this process."""


#: Sockets of this process; a forked one does not listen with them.
_listening: list[socket.socket] = []


def _close_inherited() -> None:
    while _listening:
        os.close(_listening.pop().detach())


os.register_at_fork(after_in_child=_close_inherited)


class MetricsPort:
    """The first free port from a given one on.

    :param registry: of the metrics, by the number of the port after the first one.
    :raises OSError: none of them is free.
    """

    def __init__(self, first_port: int, registry: Callable[[int], CollectorRegistry]) -> None:
        number, self._server = _listen(first_port)
        self.port = first_port + number
        self._server.set_app(make_wsgi_app(registry(number)))
        _listening.append(self._server.socket)

    def close(self) -> None:
        """End :meth:`serve` with the next request, and let another process have the port."""
        with contextlib.suppress(ValueError):
            _listening.remove(self._server.socket)
        self._server.server_close()

    def serve(self) -> None:
        """Answer requests, as long as the process lives or until the port is closed."""
        while True:
            try:
                request, address = self._server.get_request()
            except ConnectionAbortedError:
                continue
            except OSError:
                if self._server.socket.fileno() < 0:
                    return
                raise
            try:
                self._server.process_request(request, address)
            except Exception:
                self._server.handle_error(request, address)
                self._server.shutdown_request(request)


def _listen(first_port: int) -> tuple[int, _Server]:
    last_port = min(first_port + MAX_PORTS, 1 << 16) - 1
    for port in range(first_port, last_port + 1):
        try:
            return port - first_port, _Server((ADDRESS, port), _Handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, f"none of {ADDRESS}:{first_port} to {last_port} is free")
