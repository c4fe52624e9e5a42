# SPDX-License-Identifier: Apache-2.0
"""What a door to a tenant's cluster promises to who looks for objects through it."""

from __future__ import annotations

import contextlib
from typing import Any

from magnum.drivers.k8s_capi_helm.kube.tenant.tenant_api import TenantApiUnavailable

ONE = "/api/v1/namespaces/a/configmaps/one"
TWO = "/apis/apps/v1/namespaces/a/deployments/two"


class DoorTests:
    """Mixed into a TestCase; ``door()`` is a new door to a cluster of which ``put`` makes objects.

    ``forbid`` lets it refuse everything from then on, ``vanish`` lets it answer nothing.
    """

    assertEqual: Any
    assertRaises: Any
    door: Any
    put: Any
    forbid: Any
    vanish: Any

    def test_yes_and_no(self) -> None:
        self.put(TWO)
        with self.door() as door:
            self.assertEqual([False, True, False], [door.has(one) for one in (ONE, TWO, ONE)])

    def test_a_refusal_is_neither(self) -> None:
        self.put(ONE)
        self.forbid()
        with self.door() as door:
            self.assertRaises(TenantApiUnavailable, door.has, ONE)

    def test_nobody_there_is_neither(self) -> None:
        self.vanish()
        with contextlib.ExitStack() as stack:
            self.assertRaises(TenantApiUnavailable, stack.enter_context, self.door())
