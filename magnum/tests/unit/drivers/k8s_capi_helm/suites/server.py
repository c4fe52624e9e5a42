# SPDX-License-Identifier: Apache-2.0
"""An HTTP server on loopback that answers as it is told: the other end of a client's wire."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import http.server
import json
import pathlib
import threading
from typing import Any

import yaml

CORE_GROUPS = {"resources": [{"name": "leases"}, {"name": "clusters"}]}


@dataclasses.dataclass(frozen=True)
class Seen:
    """A request that arrived."""

    method: str
    path: str
    body: Any
    token: str
    content_type: str


#: The answer to a request: status code and body. None closes the connection without an answer.
Answer = tuple[int, Any] | None


class Server:
    """Answers with ``answer``, which a test sets, and remembers what arrived."""

    def __init__(self, answer: Callable[[Seen], Answer]) -> None:
        self.answer = answer
        self.seen: list[Seen] = []
        self.released = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                raw = self.rfile.read(length)
                seen = Seen(
                    self.command,
                    self.path,
                    json.loads(raw) if raw else None,
                    self.headers.get("Authorization") or "",
                    self.headers.get("Content-Type") or "",
                )
                outer.seen.append(seen)
                answer = outer.answer(seen)
                if answer is None:
                    self.close_connection = True
                    return
                code, body = answer
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

            def log_message(self, format: str, *arguments: object) -> None:
                """Stay silent."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def never(self, seen: Seen) -> Answer:
        """Do not answer until the server is closed."""
        self.released.wait(60)
        return None

    def close(self) -> None:
        """End the server and everything that waits in it."""
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


def write_kubeconfig(
    path: pathlib.Path, url: str, user: dict[str, Any] | None = None
) -> pathlib.Path:
    """A kubeconfig for a server; *user* as one of its ``users``."""
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "m", "cluster": {"server": url}}],
                "users": [{"name": "m", "user": user or {"token": "first"}}],
                "contexts": [{"name": "m", "context": {"cluster": "m", "user": "m"}}],
                "current-context": "m",
            }
        )
    )
    return path
