# SPDX-License-Identifier: Apache-2.0
"""Roles of a cluster's credentials: the person's own, never the administrator's."""

from __future__ import annotations

import dataclasses

import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.access.roles import credential_roles
from magnum.drivers.k8s_capi_helm.model import Chart, names
from magnum.drivers.k8s_capi_helm.reconcile.credentials import credentials
from magnum.tests.unit.drivers.k8s_capi_helm.test_helm_values import REQUEST

ALL = ("Admin", "member", "reader", "load-balancer_member")


class TestGranted(testtools.TestCase):
    def test_what_is_given(self) -> None:
        rest = ALL[1:]
        for held, machines, addons, separate, wanted, inside in (
            (ALL, (), (), False, rest, None),
            (ALL, (), (), True, rest, rest),
            (ALL, ("member",), (), True, ("member",), ("member",)),
            (ALL, ("member",), ("reader",), True, ("member",), ("reader",)),
            (ALL, ("member",), ("reader",), False, ("member",), None),
            (ALL, (), ("Reader", "other"), True, rest, ("reader",)),
            (("member", "member"), ("MEMBER", "admin"), (), False, ("member",), None),
        ):
            with self.subTest((held, machines, addons)):
                found = credential_roles(held, machines, addons, separate=separate)
                self.assertEqual((wanted, inside), (found.machines, found.addons))

    def test_nothing_left_is_refused_with_what_there_is(self) -> None:
        for held, machines, addons, words in (
            ((), (), (), ("besides 'admin'", "none")),
            (("admin",), (), (), ("besides 'admin'", "you have: admin")),
            (("admin",), ("admin",), (), ("one of the roles admin",)),
            (("reader",), ("member",), (), ("one of the roles member", "reader")),
            (("member",), ("member",), ("creator",), ("one of the roles creator",)),
        ):
            with self.subTest((held, machines, addons)):
                error = self.assertRaises(
                    errors.InvalidRequest, credential_roles, held, machines, addons, separate=True
                )
                for word in words:
                    self.assertIn(word, str(error))


class TestChart(testtools.TestCase):
    """A foreign chart copies whatever is in the Secret into the cluster."""

    def check(self, separate: bool, family: str) -> None:
        request = dataclasses.replace(REQUEST, separate_addon_credential=separate)
        credentials.refuse_credential_copy(
            request, Chart("openstack-cluster", "0.27.0", "", family)
        )

    def test_only_ours_keeps_the_credentials_apart(self) -> None:
        error = self.assertRaises(errors.InvalidConfiguration, self.check, True, "")
        self.assertIn("separate_addon_credential", error.detail)

    def test_others_are_fine_without(self) -> None:
        for separate, family in ((False, ""), (True, names.CHART_FAMILY)):
            self.assertIsNone(self.check(separate, family))
