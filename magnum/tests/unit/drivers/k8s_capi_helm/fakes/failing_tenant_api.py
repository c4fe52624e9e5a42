# SPDX-License-Identifier: Apache-2.0
"""API servers of tenants in bad moods: TLS servers on loopback that never say yes or no."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import gzip
import pathlib
import socket
import ssl
import threading
from typing import Any

_OK = b"HTTP/1.1 200 OK\r\n"
_BLOCK = b"x" * 16_000
#: A long TLS record of a handshake begins, so that more is waited for.
_HANDSHAKE = b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb"


def _polite(send: Callable[[bytes], None], server: Moody) -> None:
    body = b'{"kind":"PartialObjectMetadata","metadata":{"name":"one","labels":{"a":"b"}}}'
    head = "".join(f"X-Header-{number}: {number}\r\n" for number in range(7))
    send(_OK + f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)


def _hesitant(send: Callable[[bytes], None], server: Moody) -> None:
    for _ in range(3):
        send(b"HTTP/1.1 100 Continue\r\n\r\n")
    _polite(send, server)


def _endlessly(piece: bytes, first: bytes = b"") -> Callable[..., None]:
    def answer(send: Callable[[bytes], None], server: Moody) -> None:
        send(first)
        while not server.ended.is_set():
            send(piece)

    return answer


def _once(*pieces: bytes) -> Callable[..., None]:
    def answer(send: Callable[[bytes], None], server: Moody) -> None:
        for piece in pieces:
            send(piece)

    return answer


def _byte_by_byte(send: Callable[[bytes], None], server: Moody) -> None:
    while not server.ended.is_set():
        for one in _OK + b"X-Header: a\r\n" * 90 + b"Content-Length: 2000000\r\n\r\n" + _BLOCK:
            send(bytes([one]))


def _never(send: Callable[[bytes], None], server: Moody) -> None:
    server.ended.wait(60)


class _HalfClosed(Exception):
    """The server has said its last word, and goes on listening."""


def _half_close(send: Callable[[bytes], None], server: Moody) -> None:
    send(_OK + b"Content-Length: 1000\r\n\r\n{")
    raise _HalfClosed


_BOMB = gzip.compress(b"0" * (64 << 20), 9)
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
#: What is answered to each request, by the mood.
ANSWERS: dict[str, Callable[..., None]] = {
    "endless 100 Continue": _endlessly(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "endless 103 with headers": _endlessly(
        b"HTTP/1.1 103 Early Hints\r\n" + b"A: b\r\n" * 90 + b"\r\n"
    ),
    "byte by byte": _byte_by_byte,
    "endless headers": _endlessly(b"X-Header: a\r\n", _OK),
    "one endless header": _endlessly(_BLOCK, _OK + b"X-Header: "),
    "endless chunks of a byte": _endlessly(b"1\r\nx\r\n" * 2000, _CHUNKED),
    "endless trailers": _endlessly(b"X-Trailer: a\r\n" * 1000, _CHUNKED + b"0\r\n"),
    "endless body": _endlessly(_BLOCK, _OK + b"\r\n"),
    "huge Content-Length": _endlessly(_BLOCK, _OK + b"Content-Length: %d\r\n\r\n" % 10**18),
    "redirects to itself": _once(
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /api/v1/again\r\nContent-Length: 0\r\n\r\n"
    ),
    "compressed bomb": _endlessly(
        _BOMB, _OK + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n"
    ),
    "no answer": _never,
    "half close": _half_close,
    "HTTP/0.9": _endlessly(b"<html>go away</html>\n"),
    "status line of a megabyte": _once(b"HTTP/1.1 200 " + b"O" * (1 << 20) + b"\r\n\r\n"),
    "status without a number": _once(b"HTTP/1.1 yes\r\n\r\n"),
}
_GOOD = {"polite": _polite, "hesitant": _hesitant}
#: Moods that begin before there is TLS.
BEFORE_TLS = ("endless handshake", "plain text", "closed at once")
MOODS = (*ANSWERS, *BEFORE_TLS)


class Moody:
    """A server in a mood; ``polite`` is one, and ``hesitant``, which first says to go on.

    :ivar sent: bytes that it could send, before they were encrypted.
    :ivar requests: how often somebody asked.
    """

    def __init__(self, mood: str, identity: pathlib.Path) -> None:
        self.sent = self.requests = 0
        self.ended = threading.Event()
        self._mood = mood
        self._trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._trust.load_cert_chain(identity)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it, and everything that it sends."""
        self.ended.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _serve(self) -> None:
        while not self.ended.is_set():
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            plain.settimeout(10)
            with contextlib.suppress(OSError, _HalfClosed), plain:
                self._meet(plain)

    def _meet(self, plain: socket.socket) -> None:
        if self._mood == "closed at once":
            return
        if self._mood in BEFORE_TLS:
            piece = b"\x03" if self._mood == "endless handshake" else b"HTTP/1.1 400 No\r\n\r\n"
            self._send(plain, _HANDSHAKE if self._mood == "endless handshake" else piece)
            while not self.ended.wait(0.001):
                self._send(plain, piece)
            return
        with self._trust.wrap_socket(plain, server_side=True) as secured:
            rest = b""
            while True:
                while b"\r\n\r\n" not in rest:
                    piece = secured.recv(1 << 16)
                    if not piece:
                        return
                    rest += piece
                rest = rest.partition(b"\r\n\r\n")[2]
                self.requests += 1
                answer = _GOOD.get(self._mood) or ANSWERS[self._mood]
                try:
                    answer(lambda data: self._send(secured, data), self)
                except _HalfClosed:
                    with contextlib.suppress(OSError):
                        plain_end: Any = secured.unwrap
                        plain_end()
                    self.ended.wait(60)

    def _send(self, sock: socket.socket, data: bytes) -> None:
        sock.sendall(data)
        self.sent += len(data)
