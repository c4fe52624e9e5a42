# SPDX-License-Identifier: Apache-2.0
"""Workers are forked by a conductor whose periodic tasks run already, at its start and later.

A lock that another thread holds at that moment is held in the worker for ever: nobody is there who
would give it back.
"""

from __future__ import annotations

from collections.abc import Callable
import os
import signal
import threading
from typing import Any

import testtools

import magnum.conf
from magnum.drivers.k8s_capi_helm import conf
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.process import clients
from magnum.tests.unit.drivers.k8s_capi_helm.suites import http_server

CONF = magnum.conf.CONF
conf.register_opts(CONF)


class TestForked(testtools.TestCase):
    """What a worker needs that was forked while another thread was about the same."""

    def comes_through(self, call: Callable[[], Any]) -> bool:
        """Whether a process that is forked now gets to the end of something."""
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            try:
                call()
            except BaseException:
                os._exit(1)
            os._exit(0)
        return os.waitpid(child, 0)[1] == 0

    def test_the_ports(self) -> None:
        with clients._locks.setdefault(os.getpid(), threading.Lock()):
            self.assertTrue(self.comes_through(lambda: clients.of_process(CONF)))

    def test_to_write_a_verdict(self) -> None:
        def lock() -> threading.Semaphore:
            return clients.of_process(CONF).verdict_locks.get("the cluster's uuid")

        with lock():
            self.assertTrue(self.comes_through(lambda: lock().acquire()))
            # This process waits, as it has to.
            self.assertFalse(lock().acquire(blocking=False))


class TestConnections(http_server.WireCase):
    """A connection that two processes share would give one of them the other's answers."""

    def test_a_worker_has_its_own(self) -> None:
        def read() -> None:
            self.assertIsNone(kube.get(names.LEASE, "n", "one"))

        kube = KubeClient(str(self.config), connect_timeout=5, read_timeout=5)
        read()
        for workers in (1, 2):
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                try:
                    read()
                except BaseException:
                    os._exit(1)
                os._exit(0)
            self.assertEqual(0, os.waitpid(child, 0)[1])
            read()
            self.assertEqual(1 + workers, self.server.connections)
