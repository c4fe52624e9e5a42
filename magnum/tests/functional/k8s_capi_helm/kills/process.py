# SPDX-License-Identifier: Apache-2.0
"""The first lines of a conductor's process.

Magnum's programs replace threads and sockets with those of eventlet before they import anything
else, until Magnum 22; so does this module, and imports nothing before that.
"""

from __future__ import annotations

import importlib
from typing import Any

_NEXT = "magnum.tests.unit.drivers.k8s_capi_helm.next_version"


def serve(directory: str, configuration: str, version: str, requests: Any) -> None:
    """Do what :func:`conductor.serve` does, in a process like Magnum's.

    :param version: a name of ``next_version``; "" for this version of the driver.
    """
    importlib.import_module("magnum.cmd")  # patches Python's library, in the releases that do
    if version:
        importlib.import_module(_NEXT).replace(version)
    conductor = importlib.import_module(f"{__package__}.conductor")
    conductor.serve(directory, configuration, requests)
