# SPDX-License-Identifier: Apache-2.0
"""What the Magnum that is installed has, and earlier releases lack."""

from __future__ import annotations

try:
    from magnum.conductor.handlers import credential_conductor
except ImportError:
    # Magnum 20 rotates no credentials; the tests of that are left out there (tox -e magnum-20).
    credential_conductor = None

__all__ = ["credential_conductor"]
