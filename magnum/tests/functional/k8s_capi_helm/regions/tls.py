# SPDX-License-Identifier: Apache-2.0
"""Services behind TLS, whose certificate is of an authority that nobody knows but the operator."""

from __future__ import annotations

import contextlib
from pathlib import Path
import socket
import ssl
import threading

from sandbox.management import pki


class Front:
    """One port with TLS for one port without.

    :param pem: file with a certificate and its key.
    """

    def __init__(self, pem: Path, port: int) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pem)
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        # Whoever waits in accept() is not woken by close() alone.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _listen(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            with (
                self._context.wrap_socket(client, server_side=True) as outer,
                socket.create_connection(("127.0.0.1", self._port)) as inner,
            ):
                back = threading.Thread(target=_copy, args=(inner, outer), daemon=True)
                back.start()
                _copy(outer, inner)
                back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def authority(folder: Path) -> tuple[Path, Path]:
    """Files of a new authority, and of a certificate of it for this machine with its key."""
    issuer = pki.make_pair("the cloud's own authority")
    pair = pki.make_pair("the cloud", issuer)
    known, served = folder / "authority.pem", folder / "served.pem"
    known.write_bytes(issuer.pem)
    served.write_bytes(pair.pem + pair.key_pem)
    return known, served
