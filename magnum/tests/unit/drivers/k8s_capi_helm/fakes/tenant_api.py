# SPDX-License-Identifier: Apache-2.0
"""A tenant's cluster in memory, behind a door."""

from __future__ import annotations

import threading
from typing import Any

from magnum.drivers.k8s_capi_helm.kube.tenant.tenant_api import TenantApiUnavailable
from magnum.drivers.k8s_capi_helm.kube.tenant.tenant_kubeconfig import TenantKubeconfig


class FakeWorkload:
    """What is in the cluster; call it for a door, as :class:`workload.Door` is called.

    :ivar objects: API paths of what is there.
    :ivar gone: API paths of what is not, where ``full``.
    :ivar full: whatever is asked for is there, but for what is gone.
    :ivar asked: the paths of each door that was opened.
    :ivar held: until this happens it answers nothing; None to answer at once.
    :ivar entered: goes up by one with each door that is opened.
    """

    def __init__(self, *, full: bool = False) -> None:
        self.full = full
        self.objects: set[str] = set()
        self.gone: set[str] = set()
        self.refusing = False
        self.away = False
        self.asked: list[list[str]] = []
        self.access: TenantKubeconfig | None = None
        self.held: threading.Event | None = None
        self.entered = threading.Semaphore(0)

    def __call__(self, access: TenantKubeconfig, **more: Any) -> FakeDoor:
        self.access = access
        return FakeDoor(self)


class FakeDoor:
    """One connection to it."""

    def __init__(self, workload: FakeWorkload) -> None:
        self._workload = workload

    def __enter__(self) -> FakeDoor:
        self._workload.asked.append([])
        self._workload.entered.release()
        if self._workload.away:
            raise TenantApiUnavailable("TimeoutError: timed out")
        return self

    def __exit__(self, *rest: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is kept open."""

    def has(self, path: str) -> bool:
        self._workload.asked[-1].append(path)
        held = self._workload.held
        if held is not None and not held.wait(60):
            raise TenantApiUnavailable("TimeoutError: timed out")
        if self._workload.refusing:
            raise TenantApiUnavailable(f"GET {path}: HTTP 403")
        if self._workload.full:
            return path not in self._workload.gone
        return path in self._workload.objects
