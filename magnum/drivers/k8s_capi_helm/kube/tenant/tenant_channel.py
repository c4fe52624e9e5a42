# SPDX-License-Identifier: Apache-2.0
"""TLS to a tenant's API server, with a limit on received data.

``http.client`` bounds a line and the number of headers, and nothing else: interim answers, chunks
and trailers may go on for ever, and each costs this conductor more than its sender. So everything
that comes in is counted where it comes in, before it is decrypted.
"""

from __future__ import annotations

from collections.abc import Callable
import io
import socket
import ssl
from typing import Any, TypeVar

#: For one look at up to fifty objects. A server that sends metadata alone sends some kilobytes of
#: each, in one piece and some twenty lines; one that cannot leaves room for one object as large as
#: etcd takes (1.5 MiB), in the pieces in which a network hands it over.
BYTES, PIECES, LINES = 4 << 20, 4_000, 2_000
#: Beginnings of an answer to one question: the answer itself, and before it some "100 Continue",
#: which no question here has asked for.
HEADS = 4
_PIECE = 1 << 16
_Result = TypeVar("_Result")


class ResponseTooLarge(OSError):
    """The server sends more than anybody reads."""


class TenantChannel:
    """A connection as ``http.client`` uses one; for one thread.

    :param sock: a connected socket with a timeout; it is closed with this.
    """

    def __init__(self, sock: socket.socket, trust: ssl.SSLContext, host: str) -> None:
        self._sock = sock
        self._received, self._sending = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = trust.wrap_bio(self._received, self._sending, server_hostname=host)
        self._bytes, self._pieces, self._lines, self._heads = BYTES, PIECES, LINES, HEADS

    def handshake(self) -> None:
        """Find out that it is the cluster of the authority.

        :raises OSError: it is not, or sends too much.
        """
        self._until_done(self._tls.do_handshake)

    def start_request(self) -> None:
        """A question follows: an answer to it may begin."""
        self._heads = HEADS

    def sendall(self, data: Any) -> None:
        """Send all of it."""
        self._until_done(lambda: self._tls.write(data))

    def makefile(self, mode: str) -> io.BufferedReader:
        """What comes in, as a file."""
        return _Lines(self)

    def close(self) -> None:
        """End it."""
        self._sock.close()

    def read_into(self, buffer: memoryview) -> int:
        """The next decrypted bytes, 0 at the end.

        :raises OSError: the server sends too much, too late or no TLS.
        """
        self._take("_pieces", 1, "pieces")
        try:
            content = self._until_done(lambda: self._tls.read(len(buffer)))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return 0
        buffer[: len(content)] = content
        return len(content)

    def count_line(self, line: bytes) -> None:
        """Note a line of the beginning, the end or the chunks of an answer.

        :raises Excess: it is one too many.
        """
        self._take("_lines", 1, "lines")
        if line.startswith(b"HTTP/"):
            self._take("_heads", 1, "interim answers")

    def _until_done(self, step: Callable[[], _Result]) -> _Result:
        while True:
            try:
                done = step()
            except ssl.SSLWantReadError:
                self._flush()
                self._receive()
            else:
                self._flush()
                return done

    def _flush(self) -> None:
        if self._sending.pending:
            self._sock.sendall(self._sending.read())

    def _receive(self) -> None:
        piece = self._sock.recv(_PIECE)
        self._take("_pieces", 1, "pieces")
        self._take("_bytes", len(piece), "bytes")
        if piece:
            self._received.write(piece)
        else:
            self._received.write_eof()

    def _take(self, budget: str, count: int, title: str) -> None:
        remaining = getattr(self, budget) - count
        setattr(self, budget, remaining)
        if remaining < 0:
            raise ResponseTooLarge(f"it sends too many {title}")


class _Incoming(io.RawIOBase):
    def __init__(self, channel: TenantChannel) -> None:
        super().__init__()
        self._channel = channel

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._channel.read_into(memoryview(buffer))


class _Lines(io.BufferedReader):
    """Lines are counted: each is parsed by Python, and costs a hundred times what its bytes do."""

    def __init__(self, channel: TenantChannel) -> None:
        super().__init__(_Incoming(channel))
        self._channel = channel

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        self._channel.count_line(line)
        return line
