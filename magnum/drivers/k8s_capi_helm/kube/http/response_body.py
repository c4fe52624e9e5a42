# SPDX-License-Identifier: Apache-2.0
"""Read the body of a response as it comes, and never for longer than it may take."""

from __future__ import annotations

from collections.abc import Iterator
import time
from typing import Any

import urllib3

_CHUNK = 1 << 16


class BodyTimeout(Exception):
    """The answer came, and did not come to an end."""


def read(response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    """The whole body; a server that sends it drop by drop does not hold a thread for ever.

    :param deadline: on the monotonic clock.
    :raises BodyTimeout: it has not ended by then.
    :raises urllib3.exceptions.HTTPError: the connection broke, or the server was silent too long.
    """
    pieces = []
    # What has come so far each time, and not only when a whole chunk is there.
    while piece := _read_some(response):
        pieces.append(piece)
        if time.monotonic() > deadline:
            response.close()
            raise BodyTimeout("the answer took too long as a whole")
    return b"".join(pieces)


def lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The lines of the body of a watch as they come, without empty ones.

    :raises urllib3.exceptions.HTTPError: the connection broke, or the last line did not end.
    """
    rest = b""
    for piece in response.stream(_CHUNK):
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line for line in whole if line.strip())
    if rest.strip():
        raise urllib3.exceptions.HTTPError("the answer ended in the middle of an object")


def _read_some(response: Any) -> bytes:
    """What has come of a body, b"" at its end.

    urllib3 has ``read1`` since release 2; 1.26, which does not change any more, has its parts.
    """
    if hasattr(response, "read1"):
        piece: bytes = response.read1(_CHUNK)
        return piece
    with response._error_catcher():
        piece = response._fp.read1(_CHUNK)
        if not piece and response._fp.length:
            raise urllib3.exceptions.ProtocolError(f"{response._fp.length} bytes are missing")
    # At the end this gives the connection back to the pool.
    return piece or response.read()
