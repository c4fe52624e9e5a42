# SPDX-License-Identifier: Apache-2.0
"""Labels of the snapshots of etcd: their forms, and what is missing beside them."""

from __future__ import annotations

import testtools

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.labels.value_types import schedule
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import validate_labels
from magnum.tests.unit.drivers.k8s_capi_helm.test_helm_values import rendered, request, SNAPSHOTS

SCHEDULES = (
    "30 1 * * *",
    "0 */6 * * *",
    "*/15 0,12 1-7 jan-mar MON-FRI",
    "0-30/5 2 31 12 0",
    "  5  4 * *  sun ",
)
NO_SCHEDULES = (
    *("daily", "@daily", "30 1 * *", "30 1 * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *"),
    *("* * * 13 *", "* * * * 7", "*/0 * * * *", "5-1 * * * *", "1,,2 * * * *", "* * * mon *"),
    *("TZ=UTC 0 1 * * *", "{{ 1 }} * * * *", "* * * * fri-mon", "0 1 * * monday", "-1 * * * *"),
)


class TestForms(testtools.TestCase):
    def test_a_schedule(self) -> None:
        for text in SCHEDULES:
            self.assertEqual(" ".join(text.lower().split()), schedule.SCHEDULE.read(text))

    def test_no_schedule(self) -> None:
        for text in NO_SCHEDULES:
            with testtools.ExpectedException(ValueError, msg=text):
                schedule.SCHEDULE.read(text)

    def test_a_bucket_is_no_path_and_no_variable(self) -> None:
        self.assertEqual("Team_a.snapshots-1", schedule.BUCKET.read(" Team_a.snapshots-1 "))
        for text in ("a/b", "$(HOME)", ".a", "a b", "a:b", "x" * 256):
            with testtools.ExpectedException(ValueError, msg=text):
                schedule.BUCKET.read(text)


class TestTogether(testtools.TestCase):
    def test_all_of_them(self) -> None:
        texts = {
            **SNAPSHOTS,
            "etcd_snapshot_schedule": "0 */6 * * *",
            "etcd_snapshot_keep_days": "30",
        }
        validate_labels.check_new_cluster(request(texts))
        job = {
            "schedule": "0 */6 * * *",
            "destination": {"bucket": "backups"},
            "secretName": "s3",
            "keepDays": 30,
        }
        expected = {"enabled": True, "release": {"values": job}}
        self.assertEqual(expected, rendered(texts)["addons"]["etcdSnapshot"])
        self.assertEqual((), labels.notices(texts))

    def test_a_new_cluster_without_destination_or_credential_is_refused(self) -> None:
        for missing in ("etcd_snapshot_bucket", "etcd_snapshot_secret"):
            texts = {name: text for name, text in SNAPSHOTS.items() if name != missing}
            refusal = self.assertRaises(
                errors.InvalidLabel, validate_labels.check_new_cluster, request(texts)
            )
            self.assertIn("etcd_snapshot_enabled", str(refusal))
            self.assertIn(f"{missing} beside it", str(refusal))

    def test_a_cluster_that_has_such_labels_gets_no_job_and_a_notice(self) -> None:
        """The chart would refuse the job, and with it every later change of the cluster."""
        for missing in SNAPSHOTS:
            texts = {name: text for name, text in SNAPSHOTS.items() if name != missing}
            self.assertNotIn("etcdSnapshot", rendered(texts)["addons"])
            self.assertIn(f"'{missing}'", " ".join(labels.notices(texts)))

    def test_another_chart_does_not_have_it(self) -> None:
        parsed = labels.parse(SNAPSHOTS, {})
        refusal = self.assertRaises(
            errors.InvalidRequest, validate_labels.check_chart, parsed, "another"
        )
        self.assertIn("etcd_snapshot_", str(refusal))
