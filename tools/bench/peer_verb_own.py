# SPDX-License-Identifier: Apache-2.0
"""The OpenStack of this driver in the benchmark of verbs: a played one, roomy enough for it."""

from __future__ import annotations

import importlib
from typing import Any

from magnum.drivers.k8s_capi_helm.model import ApplicationCredential

#: Beside the tests of an adoption.
SUCCESSOR: Any = importlib.import_module("successor")
#: Server groups of a project: one for each nodegroup of all rounds.
_QUOTA = 10_000


class Cloud(SUCCESSOR.Cloud):  # type: ignore[misc]
    """Takes every credential, so that no pass writes that one is refused."""

    def __init__(self) -> None:
        super().__init__()
        self.openstack.quota = _QUOTA

    def accepts(self, credential: ApplicationCredential) -> bool:
        """Whether Keystone accepts a credential."""
        return True


def play() -> None:
    """Put it in the place of the real one."""
    SUCCESSOR.Cloud = Cloud
    SUCCESSOR.play()
