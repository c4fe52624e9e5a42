# SPDX-License-Identifier: Apache-2.0
"""A clock of this host that differs from the management cluster's is in the operator's log."""

from __future__ import annotations

import datetime
import email.utils

import fixtures
import testtools

from magnum.drivers.k8s_capi_helm.kube.http.clock_check import ClockCheck, LIMIT
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.suites import http_server


def date(seconds: float) -> str:
    """The header of a server whose clock is so much ahead."""
    now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return email.utils.format_datetime(now, usegmt=True)


class TestClockCheck(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.seconds = 0.0
        self.check = ClockCheck(lambda: self.seconds)

    def test_which_clock_is_ahead_and_by_how_much(self) -> None:
        self.check.compare(date(-8 * 3600))
        self.assertRegex(
            self.log.output,
            r"^The clock of this host is 2880\d seconds ahead of that of the management cluster "
            r"\(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC here, .+ UTC there\)\. "
            r".+: synchronize the clocks of all hosts\.$",
        )
        self.seconds = 3600
        self.check.compare(date(8 * 3600))
        self.assertRegex(self.log.output, r"is 2(8800|879\d) seconds behind that of the management")

    def test_it_is_said_once_an_hour(self) -> None:
        for self.seconds in (0, 1, 600, 3599):
            self.check.compare(date(3600))
        self.assertEqual(1, len(self.log.output.splitlines()))
        self.seconds = 3600
        self.check.compare(date(3600))
        self.assertEqual(2, len(self.log.output.splitlines()))

    def test_a_difference_is_found_within_a_minute(self) -> None:
        self.check.compare(date(0))
        for self.seconds in (1, 59):
            self.check.compare(date(3600))
        self.assertEqual("", self.log.output)
        self.seconds = 60
        self.check.compare(date(3600))
        self.assertIn("behind", self.log.output)

    def test_what_is_no_time_or_differs_little_is_not_said(self) -> None:
        for text in (None, "", "yesterday", "Thu, 99 Nov 2026 17:00:00 GMT", date(LIMIT - 5)):
            self.check.compare(text)
        self.assertEqual("", self.log.output)


class TestRequests(http_server.WireCase):
    def test_each_answer_has_the_time_of_the_management_cluster(self) -> None:
        log = self.useFixture(fixtures.FakeLogger())
        self.kube.get(names.LEASE, "n", "one")
        self.assertEqual("", log.output)
        self.server.ahead = 600
        kube = type(self.kube)(str(self.config))
        kube.get(names.LEASE, "n", "one")
        kube.get(names.LEASE, "n", "one")
        [line] = log.output.splitlines()
        self.assertRegex(line, r"is (600|59\d) seconds behind that of the management cluster")
