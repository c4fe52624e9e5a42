# SPDX-License-Identifier: Apache-2.0
"""Laws that hold over whole operations: what a Secret holds stands nowhere else."""

import base64
import json
import logging

import fixtures

from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import driver_case


class TestSecrets(driver_case.DriverCase):
    """Neither as text nor as Kubernetes encodes it."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.DEBUG))
        self.cluster_made = self.create()

    def pieces(self):
        """What gives a Secret away: each value as it is stored, and the lines of its text."""
        for secret in self.kube.list(names.SECRET, driver_case.NAMESPACE):
            for key, packed in secret["data"].items():
                if key in ("clouds.yaml", "tls.key"):
                    yield packed
                    yield from base64.b64decode(packed).decode().splitlines()[1:-1]
        yield driver_case.SECRET_TEXT

    def telling(self):
        """Pieces that only a Secret has: headers and settings have spaces or are short."""
        return [one for one in self.pieces() if len(one) > 24 and " " not in one]

    def test_the_pieces_are_there(self):
        self.assertGreater(len(self.telling()), 20)

    def test_not_in_what_helm_is_given(self):
        given = json.dumps(self.helm.runs)
        self.assertEqual([], [one for one in self.telling() if one in given])

    def test_not_in_the_log(self):
        self.assertEqual([], [one for one in self.telling() if one in self.log.output])

    def test_not_in_magnums_rows(self):
        rows = [self.cluster().as_dict(), *(row.as_dict() for row in self.cluster().nodegroups)]
        self.assertEqual([], [one for one in self.telling() if one in str(rows)])
