# SPDX-License-Identifier: Apache-2.0
"""A conductor that was frozen for longer than its lock lasts, just as it made a credential."""

from __future__ import annotations

from typing import Any

from magnum.common import exception
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.magnum_release import credential_conductor

_LEASE = 60


class TestFrozen(DriverCase):
    def setUp(self) -> None:
        super().setUp()
        self.count_seconds("frozen", _LEASE)
        self.create_credential = self.cloud.create_credential

    def freeze(self, *args: Any) -> Any:
        made = self.create_credential(*args)
        self.seconds += _LEASE
        return made

    def secret(self) -> Any:
        return self.kube.get(names.SECRET, NAMESPACE, names.credential_secret(RELEASE))

    def test_a_create_leaves_no_credential(self) -> None:
        self.cloud.create_credential = self.freeze
        cluster = self.create()
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertEqual(({}, None), (self.cloud.credentials, self.secret()))
        self.delete()
        for _ in range(4):
            self.seconds += _LEASE
            self.status_task()
        self.assertEqual([], self.left())

    def test_a_create_that_was_frozen_before_it_makes_nothing(self) -> None:
        quick = self.cloud.openstack.before

        def before(what: str) -> None:
            self.cloud.openstack.before = quick
            self.seconds += _LEASE

        self.cloud.openstack.before = before
        self.assertEqual("CREATE_FAILED", self.create().status)
        self.assertEqual([], [one for one in self.left() if one.startswith("Secret/")])

    def test_a_rotation_leaves_the_credential_as_it_is(self) -> None:
        self.made()
        (first,) = self.cloud.credentials
        secret = self.secret()
        self.cloud.create_credential = self.freeze
        error = self.assertRaises(
            exception.NotSupported,
            credential_conductor.Handler().credential_rotate,
            self.context,
            self.cluster(),
        )
        self.assertIn("was not replaced. Try again in a minute.", str(error))
        self.assertEqual(([first], secret), (list(self.cloud.credentials), self.secret()))

    def test_and_what_another_rotation_has_retired_is_not_forgotten(self) -> None:
        self.made()
        (first,) = self.cloud.credentials
        rotate = credential_conductor.Handler().credential_rotate

        def frozen(*args: Any) -> Any:
            self.cloud.create_credential = self.create_credential
            made = self.freeze(*args)
            self.release_lock()
            rotate(self.context, self.cluster())
            return made

        self.cloud.create_credential = frozen
        self.assertRaises(exception.NotSupported, rotate, self.context, self.cluster())
        (used,) = set(self.cloud.credentials) - {first}
        self.health_task()
        self.after(31)
        self.health_task()
        self.assertEqual([used], list(self.cloud.credentials))

    def release_lock(self) -> None:
        """What another holder finds when the lease has run out."""
        lease = self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
        assert lease is not None
        lease["spec"]["holderIdentity"] = ""
        self.kube.put(names.LEASE, lease)
