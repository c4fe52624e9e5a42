# SPDX-License-Identifier: Apache-2.0
"""``rollout patch``: the newest patch release, in the windows, once and no further than a fault."""

from __future__ import annotations

import datetime
from typing import Any
import uuid

from magnum.drivers.k8s_capi_helm.commands.rollout.store import RolloutStore
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CRITICAL,
    OK,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.test_command_rollout import RolloutCase

OLD, NEWER, NEWEST = "1.34.4", "1.34.6", "1.34.7"
#: A Saturday, in and outside of the window.
INSIDE = datetime.datetime(2026, 11, 28, 23, tzinfo=datetime.timezone.utc)
OUTSIDE = datetime.datetime(2026, 11, 28, 12, tzinfo=datetime.timezone.utc)
WINDOW = "Sat 22:00-04:00"


class PatchCase(RolloutCase):
    def setUp(self) -> None:
        super().setUp()
        self.assertEqual(f"v{OLD}", self.cluster().coe_version)
        self.stand_still(INSIDE)

    def publish(self, version: str, **fields: Any) -> Any:
        """An image, and a template that differs from that of the cluster in it alone."""
        image = f"ubuntu-kube-{version}"
        self.cloud.images[image] = (f"image-{version}", version)
        known = {"uuid": str(uuid.uuid4()), "name": f"kube-{version}", "public": True}
        return self._template(**{**known, "image_id": image, **fields})

    def patch(self, *argv: str, status: int = WARNING, window: str = WINDOW) -> list[Any]:
        return self.rows("patch", "--window", window, *argv, status=status)

    def targets(self) -> list[str]:
        """What a dry run would upgrade to."""
        printed = self.command("rollout", "patch", "--window", WINDOW, "--dry-run", "-f", "json")
        self.assertIn(printed.status, (OK, WARNING), printed.error)
        return [row["To"] for row in printed.rows()]


class TestPatchTemplates(PatchCase):
    def test_the_newest_patch_release_of_its_minor(self) -> None:
        self.assertEqual([], self.targets())
        for version in (NEWER, NEWEST, "1.34.3", "1.35.9"):
            self.publish(version)
        before = self.world()
        [row] = self.patch("--dry-run")
        self.assertEqual(
            ("demo", f"v{OLD}", f"v{NEWEST}", f"kube-{NEWEST}"),
            tuple(row[key] for key in ("Cluster", "From", "To", "Template")),
        )
        self.assertEqual(before, self.world())
        self.assertEqual([], self.stored())

    def test_templates_that_are_no_patch_release_of_its_own(self) -> None:
        for fields in (
            {"public": False},
            {"hidden": True},
            {"flavor_id": "large"},
            {"network_driver": "cilium"},
            {"labels": {"boot_volume_size": "50"}},
            {"image_id": "ubuntu-kube-none"},
        ):
            with self.subTest(fields):
                template = self.publish(NEWER, **fields)
                self.assertEqual([], self.targets())
                template.destroy()

    def test_the_label_of_the_version_may_differ(self) -> None:
        self.publish(NEWER, labels={"kube_tag": f"v{NEWER}"})
        self.assertEqual([f"v{NEWER}"], self.targets())

    def test_an_image_that_cannot_be_had_is_left_out(self) -> None:
        self.publish(NEWER)
        self.publish(NEWEST)
        del self.cloud.images[f"ubuntu-kube-{NEWEST}"]
        self.assertEqual([f"v{NEWER}"], self.targets())

    def test_clusters_that_are_left_alone(self) -> None:
        self.publish(NEWER)
        for fields in (
            {"labels": {"auto_upgrade_enabled": "false"}},
            {"labels": {"maintenance_window": "Sun 06:00-08:00"}},
            {"status": "UPDATE_FAILED"},
            {"status": "UPDATE_IN_PROGRESS"},
            {"health_status": "UNHEALTHY"},
            {"coe_version": ""},
        ):
            with self.subTest(fields):
                cluster = self.cluster()
                before = {name: getattr(cluster, name) for name in fields}
                for name, value in fields.items():
                    setattr(cluster, name, value)
                cluster.save()
                self.assertEqual([], self.targets())
                for name, value in before.items():
                    setattr(cluster, name, value)
                cluster.save()
        self.assertEqual([f"v{NEWER}"], self.targets())


class TestPatch(PatchCase):
    def test_it_needs_a_window(self) -> None:
        self.refused("Automatic upgrades need a maintenance window", "patch")
        self.assertEqual([], self.stored())

    def test_without_a_patch_release_nothing_is_recorded(self) -> None:
        self.assertEqual([], self.patch(status=OK))
        self.assertEqual([], self.stored())

    def test_outside_of_the_window_it_is_recorded_and_told_but_not_begun(self) -> None:
        self.publish(NEWER)
        self.stand_still(OUTSIDE)
        [row] = self.patch()
        self.assertEqual(("running", "2026-11-28 22:00 UTC"), (row["State"], row["Next"]))
        self.assertEqual([], self.magnum.requests)
        self.health_task()
        notice = self.cluster().health_status_reason["notice"]
        self.assertIn(f"'kube-{NEWER}', which may begin in the maintenance window {WINDOW}", notice)
        self.stand_still(INSIDE)
        self.patch()
        self.assertEqual([self.cluster().uuid], self.magnum.requests)

    def test_the_clusters_own_window_counts_as_well(self) -> None:
        self.publish(NEWER)
        cluster = self.cluster()
        cluster.labels = {"maintenance_window": "Sun 01:00-05:00"}
        cluster.save()
        [row] = self.patch()
        self.assertEqual("2026-11-29 01:00 UTC", row["Next"])
        [member] = self.rows("status", row["Name"], status=WARNING)
        self.assertEqual(
            ("Sun 01:00-05:00", "2026-11-29 01:00 UTC"), (member["Window"], member["Next"])
        )
        self.assertEqual([], self.magnum.requests)
        self.health_task()
        self.assertIn(
            "in the cluster's own maintenance window Sun 01:00-05:00",
            self.cluster().health_status_reason["notice"],
        )
        self.stand_still(INSIDE + datetime.timedelta(hours=2, minutes=1))
        self.patch()
        self.assertEqual(1, len(self.magnum.requests))

    def test_to_its_end_and_then_to_the_next_release(self) -> None:
        first = self.publish(NEWER)
        [row] = self.patch()
        self.assertEqual(f"auto-1-34-6-{first.uuid[:8]}", row["Name"])
        self.converge()
        [row] = self.patch(status=OK)
        self.assertEqual(("finished", 1), (row["State"], row["Done"]))
        self.assertEqual(first.uuid, self.cluster().cluster_template_id)
        self.assertEqual([], self.patch(status=OK))
        self.publish(NEWEST)
        self.patch()
        self.assertEqual(2, len(self.magnum.requests))

    def test_one_that_is_not_finished_is_continued_and_no_other_begun(self) -> None:
        self.publish(NEWER)
        self.patch()
        self.publish(NEWEST)
        [row] = self.patch()
        self.assertEqual((f"kube-{NEWER}", 1), (row["Template"], len(self.stored())))
        self.assertEqual(1, len(self.magnum.requests))

    def test_one_that_has_stopped_is_the_last_one(self) -> None:
        self.publish(NEWER)
        self.patch()
        cluster = self.cluster()
        cluster.status, cluster.status_reason = "UPDATE_FAILED", "quota: no more instances"
        cluster.save()
        [row] = self.patch(status=CRITICAL)
        self.assertEqual("stopped", row["State"])
        self.publish(NEWEST)
        [row] = self.patch(status=CRITICAL)
        self.assertEqual((f"kube-{NEWER}", 1), (row["Template"], len(self.stored())))
        self.assertEqual(1, len(self.magnum.requests))

    def test_a_cluster_that_was_left_out_is_not_planned_again(self) -> None:
        self.publish(NEWER)
        self.patch()
        cluster = self.cluster()
        cluster.status = "UPDATE_FAILED"
        cluster.save()
        [row] = self.patch(status=CRITICAL)
        self.rows("resume", row["Name"], status=WARNING)
        self.patch(status=WARNING)
        cluster.status, cluster.health_status = "UPDATE_COMPLETE", "HEALTHY"
        cluster.save()
        self.assertEqual(f"v{OLD}", cluster.coe_version)
        self.assertEqual([], self.targets())
        later = self.publish(NEWEST)
        self.assertEqual([f"v{NEWEST}"], self.targets())
        later.destroy()
        self.rows("delete", row["Name"], status=WARNING)
        self.assertEqual([f"v{NEWER}"], self.targets())

    def test_paused_it_waits(self) -> None:
        self.publish(NEWER)
        self.stand_still(OUTSIDE)
        [row] = self.patch()
        self.rows("pause", row["Name"], status=WARNING)
        self.stand_still(INSIDE)
        [row] = self.patch()
        self.assertEqual(("paused", []), (row["State"], self.magnum.requests))

    def test_a_cluster_of_another_rollout_is_left_to_it(self) -> None:
        self.publish(NEWER)
        self.start()
        self.assertEqual([], self.patch(status=OK))

    def test_a_record_of_an_operator_is_never_replaced(self) -> None:
        template = self.publish(NEWER)
        name = f"auto-1-34-6-{template.uuid[:8]}"
        self.rows("start", name, "--template", self.next.uuid)
        self.rows("pause", name, status=WARNING)
        store = RolloutStore(self.periodic())
        before = store.read(name)
        self.rows("patch", "--window", WINDOW, "--dry-run", status=OK)
        self.assertEqual(before, store.read(name))

    def test_a_record_that_cannot_be_read_stops_planning(self) -> None:
        self.publish(NEWER)
        self.start()
        obj = self.kube.get(names.CONFIG_MAP, "magnum-rollouts", "patch")
        assert obj is not None
        self.kube.put(names.CONFIG_MAP, {**obj, "data": {}})
        printed = self.command("rollout", "patch", "--window", WINDOW)
        self.assertEqual((UNKNOWN, []), (printed.status, self.magnum.requests))
        self.assertIn("It is 'patch'", printed.error)
