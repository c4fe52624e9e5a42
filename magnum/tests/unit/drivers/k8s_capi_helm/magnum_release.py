# SPDX-License-Identifier: Apache-2.0
"""What the Magnum that is installed has, and earlier releases lack."""

from __future__ import annotations

import importlib.metadata

#: Whether its programs run on eventlet; since Magnum 23 they have threads.
EVENTLET = int(importlib.metadata.version("magnum").split(".")[0]) < 23

try:
    from magnum.conductor.handlers import credential_conductor
except ImportError:
    # Magnum 20 rotates no credentials; the tests of that are left out there (tox -e magnum-20).
    credential_conductor = None

__all__ = ["EVENTLET", "credential_conductor"]
