# SPDX-License-Identifier: Apache-2.0
"""How often credentials are tried, and that an answer is never made up."""

from __future__ import annotations

import datetime
from typing import Any

import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import ApplicationCredential, names, secrets
from magnum.drivers.k8s_capi_helm.reconcile.process.credential_check import CredentialCheck
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube

OWNER = secrets.Owner(builders.RELEASE, builders.NAMESPACE, "p1", "u1", "c1")


class Keystone:
    """A cloud that accepts what it is told to, and counts."""

    def __init__(self) -> None:
        self.dead: set[str] = set()
        self.down = False
        self.asked = 0

    def accepts(self, credential: ApplicationCredential) -> bool:
        self.asked += 1
        if self.down:
            raise errors.CloudUnreachable("Keystone does not answer.")
        return credential.id not in self.dead


class TestLogins(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.kube, self.keystone, self.now = FakeKube(), Keystone(), builders.NOW
        self.logins = CredentialCheck(lambda: 0.5, clock=lambda: self.now.timestamp())
        self.save()

    def test_clusters_that_have_gone_are_forgotten(self) -> None:
        for number in range(20):
            owner = secrets.Owner(
                f"gone-{number}", builders.NAMESPACE, "p1", "u1", f"gone-{number}"
            )
            text = self.clouds("outer")
            self.kube.put(names.SECRET, secrets.credential_secret(owner, text, "", None))
            self.logins.problem(self.kube, owner, lambda: self.keystone, self.now, is_waiting=True)
        self.assertEqual(20, len(self.logins._known))
        self.now += datetime.timedelta(hours=25)
        self.logins.problem(self.kube, OWNER, lambda: self.keystone, self.now, is_waiting=True)
        self.assertEqual(1, len(self.logins._known))

    def save(self, inside: str | None = None) -> None:
        text = self.clouds("outer")
        addons = self.clouds(inside) if inside else None
        self.kube.put(names.SECRET, secrets.credential_secret(OWNER, text, "", addons))

    @staticmethod
    def clouds(name: str) -> str:
        credential = ApplicationCredential(name, "s3cret")
        return secrets.clouds_yaml(
            credential, auth_url="http://k/v3", region=None, interface="public", verify=True
        )

    def ask(self, soon: bool = True, after: float = 0) -> str:
        self.now += datetime.timedelta(minutes=after)
        cloud: Any = self.keystone
        return self.logins.problem(self.kube, OWNER, lambda: cloud, self.now, is_waiting=soon)

    def test_what_hangs_is_asked_about_at_once_and_once_in_a_minute(self) -> None:
        self.assertEqual("", self.ask())
        self.ask(after=0.5)
        self.assertEqual(1, self.keystone.asked)
        self.ask(after=0.6)
        self.assertEqual(2, self.keystone.asked)

    def test_where_nothing_changes_it_is_asked_about_every_five_minutes(self) -> None:
        self.assertTrue(self.is_due())
        self.ask()
        self.assertFalse(self.is_due(after=4.9))
        self.assertTrue(self.is_due(after=0.1))

    def test_what_was_refused_is_asked_about_once_in_a_minute(self) -> None:
        self.keystone.dead = {"outer"}
        self.assertNotEqual("", self.ask())
        self.assertFalse(self.is_due(after=0.9))
        self.assertTrue(self.is_due(after=0.2))

    def test_an_answer_counts_for_longer_at_rest(self) -> None:
        self.ask()
        self.assertFalse(self.is_due(soon=False, after=19))
        self.assertTrue(self.is_due(soon=False, after=2))

    def is_due(self, soon: bool = True, after: float = 0) -> bool:
        self.now += datetime.timedelta(minutes=after)
        return self.logins.is_due(OWNER.cluster_uuid, self.now, is_waiting=soon)

    def test_clusters_at_rest_are_spread_over_time(self) -> None:
        for after, asked in ((0, 0), (9, 0), (2, 1), (19, 1), (2, 2)):
            self.ask(soon=False, after=after)
            self.assertEqual(asked, self.keystone.asked, after)

    def test_a_dead_one_is_said_with_what_to_do_until_it_is_replaced(self) -> None:
        self.keystone.dead = {"outer"}
        said = self.ask()
        self.assertIn("'openstack coe credential rotate c1'", said)
        self.assertEqual(said, self.ask(soon=False, after=0.5))
        self.keystone.dead = set()
        self.assertEqual("", self.ask(soon=False, after=1))

    def test_the_one_inside_the_cluster_counts_too(self) -> None:
        self.save(inside="inner")
        self.keystone.dead = {"inner"}
        self.assertIn("does not accept", self.ask())

    def test_a_secret_that_is_gone(self) -> None:
        self.kube.remove(
            names.SECRET, builders.NAMESPACE, names.credential_secret(builders.RELEASE)
        )
        self.assertIn("the cluster's application credential does not exist", self.ask())
        self.assertEqual(0, self.keystone.asked)

    def test_who_does_not_answer_changes_nothing(self) -> None:
        self.keystone.down = True
        self.assertEqual("", self.ask())
        self.keystone.down, self.keystone.dead = False, {"outer"}
        said = self.ask(after=2)
        self.keystone.down = True
        self.assertEqual(said, self.ask(after=2))
        self.kube.unreachable = True
        self.assertEqual(said, self.ask(after=2))

    def test_no_secret_is_said(self) -> None:
        self.keystone.dead = {"outer"}
        self.assertNotIn("s3cret", self.ask())
