# SPDX-License-Identifier: Apache-2.0
"""A way to the API server on which single requests are held up, or refused, as a test says."""

from __future__ import annotations

from collections.abc import Callable
import pathlib
import threading

from sandbox.management.gateway import Gateway, Refused, Request

_TIMEOUT = 120.0


class Gate:
    """A gateway that lets through what a test lets through.

    :param kubeconfig: of the API server, with a token.
    """

    def __init__(self, kubeconfig: str) -> None:
        self._holds: Callable[[Request], bool] = lambda request: False
        self._refuses: Callable[[Request], bool] = lambda request: False
        self._opened = threading.Event()
        self._held: Request | None = None
        #: Set as soon as a request is held up, and when one that was has been carried out.
        self.waiting, self.passed = threading.Event(), threading.Event()
        self._gateway = Gateway(kubeconfig, self._before, self._after)

    def kubeconfig(self, directory: pathlib.Path) -> str:
        """A kubeconfig that leads through the gate, in a new file."""
        path = directory / "gate.kubeconfig"
        path.write_text(self._gateway.kubeconfig())
        return str(path)

    def hold(self, which: Callable[[Request], bool]) -> None:
        """Let the first of these requests wait, as it is, before it gets to the server."""
        self._holds = which

    def refuse(self, which: Callable[[Request], bool]) -> None:
        """Close the connection of each of these requests without an answer."""
        self._refuses = which

    def open(self) -> None:
        """Let through what waits, and everything after it."""
        self._holds = self._refuses = lambda request: False
        self._opened.set()

    def close(self) -> None:
        self.open()
        self._gateway.close()

    def _before(self, request: Request) -> None:
        if self._refuses(request):
            raise Refused
        if self._holds(request):
            self._holds, self._held = (lambda request: False), request
            self.waiting.set()
            self._opened.wait(_TIMEOUT)

    def _after(self, request: Request) -> None:
        if request is self._held:
            self.passed.set()
