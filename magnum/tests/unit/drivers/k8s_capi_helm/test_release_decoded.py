# SPDX-License-Identifier: Apache-2.0
"""A revision's data are unpacked once for all who read them, and each has values of its own."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import fixtures
import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import release_secret

VALUES = {"controlPlane": {"machineCount": 3}, "nodeGroups": [{"name": "a", "size": 1.5}]}


def secret(**changes: Any) -> dict[str, Any]:
    """A Secret as Helm writes it."""
    release = {
        "name": "demo",
        "namespace": "magnum-p1",
        "version": 4,
        "info": {"status": "deployed"},
        "chart": {"metadata": {"name": "openstack-cluster", "version": "1.0.0"}},
        "config": VALUES,
        **changes,
    }
    packed = base64.b64encode(gzip.compress(json.dumps(release).encode(), mtime=0))
    return {
        "metadata": {"name": "sh.helm.release.v1.demo.v4"},
        "data": {"release": base64.b64encode(packed).decode()},
    }


class TestDecoded(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.unzipped = 0
        unpack = gzip.GzipFile

        def counted(**given: Any) -> gzip.GzipFile:
            self.unzipped += 1
            return unpack(**given)

        self.packed = [secret() for _ in range(2)]
        self.useFixture(fixtures.MonkeyPatch("gzip.GzipFile", counted))
        release_secret._decoded.cache_clear()

    def test_the_same_data_are_unpacked_once(self) -> None:
        first, second = map(release_secret.decode, self.packed)
        self.assertEqual(first, second)
        self.assertEqual((VALUES, 4), (first.values, first.revision))
        self.assertEqual(1, self.unzipped)

    def test_other_data_of_the_same_revision_are_read(self) -> None:
        release_secret.decode(secret())
        failed = release_secret.decode(secret(info={"status": "failed"}))
        self.assertEqual(("failed", 0), (failed.status, failed.whole))
        changed = release_secret.with_status(secret(), "superseded")
        self.assertEqual("superseded", release_secret.decode(changed).status)

    def test_when_helm_began_is_known_where_it_has_written_it(self) -> None:
        for text, expected in (
            ("2026-11-28T23:37:45.568568366Z", 1795909065.568568),
            ("2026-11-29T01:37:45+02:00", 1795909065.0),
            (None, 0.0),
        ):
            info = {"status": "deployed", "last_deployed": text}
            live = release_secret.decode(secret(info=info))
            self.assertEqual(expected, live.deployed_at)

    def test_who_changes_values_changes_nobody_elses(self) -> None:
        first = release_secret.decode(secret())
        first.values["nodeGroups"][0]["name"] = "other"
        first.values["more"] = True
        self.assertEqual(VALUES, release_secret.decode(secret()).values)

    def test_a_release_without_values_has_none(self) -> None:
        self.assertEqual({}, release_secret.decode(secret(config=None)).values)

    def test_what_is_unreadable_is_refused_each_time(self) -> None:
        for changes in ({"version": "x"}, {"config": [1]}, {"name": 1}, {"chart": None}):
            for _ in range(2):
                self.assertRaises(errors.HelmRefused, release_secret.decode, secret(**changes))

    def test_data_that_are_no_text_are_refused(self) -> None:
        for data in (None, [], {}, 1, "%"):
            broken = {**secret(), "data": {"release": data}}
            self.assertRaises(errors.HelmRefused, release_secret.decode, broken)
