# SPDX-License-Identifier: Apache-2.0
"""An HTTP server on loopback that answers as it is told: the other end of a client's wire."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import dataclasses
import http.server
import json
import pathlib
import socket
import ssl
import tempfile
import threading
import time
from typing import Any

import testtools
import yaml

from magnum.drivers.k8s_capi_helm.kube_client import KubeClient

CORE_GROUPS = {"resources": [{"name": "leases"}, {"name": "clusters"}]}


@dataclasses.dataclass(frozen=True)
class Seen:
    """A request that arrived."""

    method: str
    path: str
    body: Any
    token: str
    content_type: str
    accept: str = ""
    #: Name in the certificate that the client has shown, "" for none.
    client: str = ""


#: The answer to a request: status code and body. None closes the connection without an answer.
Answer = tuple[int, Any] | None


class Server:
    """Answers with ``answer``, which a test sets, and remembers what arrived.

    :param tls: a file with certificate and key, for a server that is spoken to with TLS.
    :param clients: a file with the authority of clients, for one that asks for their certificates.
    :param host: the address that it listens at.
    :ivar connections: how many were made.
    :ivar ahead: seconds that its clock is ahead of this host's.
    :ivar drops: seconds between two bytes of an answer; 0 for all of it at once.
    """

    def __init__(
        self,
        answer: Callable[[Seen], Answer],
        tls: pathlib.Path | None = None,
        *,
        clients: pathlib.Path | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.answer = answer
        self.ahead = 0
        self.seen: list[Seen] = []
        self.connections = 0
        self.drops = 0.0
        #: Bytes of each body that it announces and does not send.
        self.missing = 0
        #: Where each answer says that it is instead, "" for nowhere.
        self.location = ""
        self.released = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body are sent one after the other, and nobody is to wait between them.
            disable_nagle_algorithm = True

            def setup(self) -> None:
                outer.connections += 1
                super().setup()

            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                raw = self.rfile.read(length)
                seen = Seen(
                    self.command,
                    self.path,
                    json.loads(raw) if raw else None,
                    self.headers.get("Authorization") or "",
                    self.headers.get("Content-Type") or "",
                    self.headers.get("Accept") or "",
                    _name(self.connection),
                )
                outer.seen.append(seen)
                answer = outer.answer(seen)
                if answer is None:
                    self.close_connection = True
                    return
                code, body = answer
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(content) + outer.missing))
                if outer.location:
                    self.send_header("Location", outer.location)
                self.end_headers()
                self.close_connection = self.close_connection or bool(outer.missing)
                pieces = [content[i : i + 1] for i in range(len(content))]
                with contextlib.suppress(ConnectionError, ssl.SSLError):  # nobody waits any more
                    for piece in pieces if outer.drops else [content]:
                        self.wfile.write(piece)
                        outer.released.wait(outer.drops)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

            def date_time_string(self, timestamp: float | None = None) -> str:
                return super().date_time_string((timestamp or time.time()) + outer.ahead)

            def log_message(self, format: str, *arguments: object) -> None:
                """Stay silent."""

        class Listener(http.server.ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            daemon_threads = True

        self._server = Listener((host, 0), Handler)
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls)
            if clients is not None:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(clients)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        name = f"[{host}]" if ":" in host else host
        self.url = f"{scheme}://{name}:{self._server.server_address[1]}"
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


def _name(connection: Any) -> str:
    """The common name in a client's certificate."""
    shown = connection.getpeercert() if isinstance(connection, ssl.SSLSocket) else None
    fields = dict(field for part in (shown or {}).get("subject", ()) for field in part)
    return str(fields.get("commonName", ""))


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


GONE = {"kind": "Status", "reason": "NotFound", "details": {"name": "one", "kind": "leases"}}
NO_KIND = {"kind": "Status", "reason": "NotFound", "details": {}}


def status(reason: str, message: str = "", **details: Any) -> dict[str, Any]:
    """A refusal as Kubernetes words it."""
    return {"kind": "Status", "reason": reason, "message": message, "details": details}


def one_after_another(*answers: Answer) -> Callable[[Seen], Answer]:
    """A server's answers, the last one for ever, besides what kinds there are."""
    rest = list(answers)

    def give(seen: Seen) -> Answer:
        if seen.path.count("/") == 3 and seen.path.startswith("/apis/"):
            return 200, CORE_GROUPS
        return rest.pop(0) if len(rest) > 1 else rest[0]

    return give


class WireCase(testtools.TestCase):
    """A client whose server answers as the test tells it."""

    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.server = self.serve()
        self.config = write_kubeconfig(self.directory / "config", self.server.url)
        self.kube = KubeClient(str(self.config), connect_timeout=0.3, read_timeout=0.3, pause=0.001)

    def serve(self) -> Server:
        """A server on which nothing is there but the kinds."""
        server = Server(one_after_another((404, GONE)))
        self.addCleanup(server.close)
        return server

    def answer(self, *answers: Answer) -> None:
        """Give these answers one after another, the last one for ever; discovery always works."""
        self.server.answer = one_after_another(*answers)

    def sent(self) -> list[str]:
        """The methods of the requests that were about objects."""
        return [seen.method for seen in self.server.seen if "/namespaces/" in seen.path]

    def lease(self, **metadata: Any) -> dict[str, Any]:
        return {"metadata": {"name": "one", "namespace": "n", **metadata}}
