# SPDX-License-Identifier: Apache-2.0
"""Upgrades through Magnum's conductor: what is refused, the order, and what never moves."""

from __future__ import annotations

import dataclasses
from typing import Any

import fixtures

from magnum.drivers.k8s_capi_helm import errors, lease
from magnum.drivers.k8s_capi_helm.values.tree import merge
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import CONF, DriverCase, NAMESPACE, RELEASE

OLD, NEW = builders.VERSION, "1.35.2"
PINS = {"kubernetesVersion": OLD, "machineImageId": "image-1"}


class FailingLeases(lease.ReleaseLeases):
    """The Leases of a conductor that dies, or loses the management cluster, at one moment.

    :ivar finishing: what becomes of the end of an operation, None for the usual.
    :ivar additions: after so many operations it dies; None for never.
    """

    finishing: Exception | None = None
    additions: int | None = None

    def finish(self, *args: Any, **more: Any) -> Any:
        if self.finishing:
            raise self.finishing
        return super().finish(*args, **more)

    def add(self, *args: Any, **more: Any) -> Any:
        if self.additions is not None:
            self.additions -= 1
            if self.additions < 0:
                raise KeyboardInterrupt
        return super().add(*args, **more)


class UpgradeCase(DriverCase):
    """A cluster that runs, and a template of the next minor release."""

    def setUp(self) -> None:
        super().setUp()
        self.cloud.images["ubuntu-kube-1.35"] = ("image-2", NEW)
        self.next = self.template_of("ubuntu-kube-1.35")

    def template_of(self, image: str, number: int = 2, **changes: Any) -> Any:
        uuid = f"{number}1111111-2222-4333-8444-555555555555"
        return self._template(uuid=uuid, name=f"kube-{number}", image_id=image, **changes)

    @property
    def values(self) -> dict[str, Any]:
        return self.helm.live(NAMESPACE, RELEASE).values

    def pins(self, name: str = "default-worker") -> dict[str, Any]:
        """What a nodegroup has of its own that decides what its machines run."""
        (entry,) = (one for one in self.values["nodeGroups"] if one["name"] == name)
        return {key: entry[key] for key in PINS if key in entry}

    def rows(self) -> tuple[Any, ...]:
        """What Magnum shows."""
        cluster = self.cluster()
        groups = [(one.name, one.status, one.image_id, one.labels) for one in cluster.nodegroups]
        return cluster.status, cluster.cluster_template_id, cluster.labels, groups

    def notice(self) -> str:
        """What the next look at health says besides."""
        self.health_task()
        return str(self.cluster().health_status_reason.get("notice"))

    def recorded(self) -> tuple[Any, ...]:
        """What is pending."""
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        return record.operations


class TestUnforeseen(UpgradeCase):
    """An error that is none of the driver's own; its words may be anything."""

    ERROR = OSError(13, "Permission denied", "/etc/secret/path")

    def test_before_anything_is_touched(self) -> None:
        self.made()
        before = self.rows()
        log = self.useFixture(fixtures.FakeLogger())
        self.cloud.refusal = self.ERROR
        said = self.upgrade(self.next)
        self.assertIn("internal: the request failed with an unexpected error", said)
        self.assertNotIn("/etc/secret", said)
        self.assertEqual((before, ()), (self.rows(), self.recorded()))
        self.assertIn("Permission denied: '/etc/secret/path'", log.output)

    def test_after_it_was_written_down(self) -> None:
        self.made()
        self.helm.refusal = self.ERROR
        self.assertEqual("", self.upgrade(self.next))
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.helm.refusal = None
        self.status_task()
        self.assertEqual(NEW, self.values["kubernetesVersion"])


class TestOrder(UpgradeCase):
    def test_the_control_plane_goes_first_and_the_workers_follow(self) -> None:
        self.made()
        self.assertEqual("", self.upgrade(self.next))
        self.assertEqual((NEW, "image-2"), (self.values["kubernetesVersion"], self.image()))
        self.assertEqual(PINS, self.pins())
        self.status_task()
        self.assertEqual(PINS, self.pins(), "the control plane is not through")
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.capi_converges()
        self.status_task()
        self.assertEqual({}, self.pins())
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.capi_converges()
        self.status_task(2)
        cluster = self.cluster()
        self.assertEqual(("UPDATE_COMPLETE", None), (cluster.status, cluster.status_reason))
        self.assertEqual({"UPDATE_COMPLETE"}, {one.status for one in cluster.nodegroups})
        self.assertEqual(f"v{NEW}", cluster.coe_version)
        self.assertEqual((), self.recorded())

    def image(self) -> str:
        return str(self.values["machineImageId"])

    def test_the_rows_follow_the_template_once_helm_has_taken_it(self) -> None:
        self.made()
        self.upgrade(self.next)
        cluster = self.cluster()
        self.assertEqual(self.next.uuid, cluster.cluster_template_id)
        self.assertEqual({"ubuntu-kube-1.35"}, {one.image_id for one in cluster.nodegroups})

    def test_what_is_waited_for_is_said(self) -> None:
        self.made()
        self.upgrade(self.next)
        self.status_task()
        self.assertIn("control plane", self.cluster().status_reason)
        self.capi_converges()
        self.status_task()
        self.assertIn("default-worker", self.cluster().status_reason)

    def test_a_batch_is_how_many_may_be_away(self) -> None:
        self.made(workers=3)
        self.upgrade(self.next, batch=2)
        self.capi_converges()
        self.status_task()
        (entry,) = self.values["nodeGroups"]
        self.assertEqual({"rollingUpdate": {"maxUnavailable": 2}}, entry["rolloutStrategy"])

    def test_all_nodegroups_follow(self) -> None:
        self.made()
        self.add_group("more")
        self.capi_converges()
        self.status_task(2)
        self.upgrade(self.next)
        self.assertEqual(PINS, self.pins("more"))
        self.capi_converges()
        self.status_task()
        self.assertEqual({}, self.pins("more"))

    def test_a_nodegroup_that_comes_meanwhile_waits_like_the_others(self) -> None:
        self.made()
        self.upgrade(self.next)
        self.add_group("late", image_id="ubuntu-kube-1.35")
        self.assertEqual(PINS, self.pins("late"))
        self.status_task()
        self.assertEqual((PINS, PINS), (self.pins(), self.pins("late")))
        self.capi_converges()
        self.status_task()
        self.assertEqual(({}, {}), (self.pins(), self.pins("late")))
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual((), self.recorded())

    def test_a_nodegroup_that_comes_after_the_control_plane_is_through_is_new(self) -> None:
        self.made()
        self.upgrade(self.next)
        self.capi_converges()
        self.add_group("late", image_id="ubuntu-kube-1.35")
        self.assertEqual({}, self.pins("late"))

    def test_a_nodegroup_that_comes_before_helm_has_taken_it_follows_as_well(self) -> None:
        self.made()
        self.helm.refusal = errors.ManagementUnreachable("The management cluster does not answer.")
        self.upgrade(self.next)
        self.add_group("late")
        self.helm.refusal = None
        self.status_task()
        self.assertEqual((PINS, PINS), (self.pins(), self.pins("late")))
        self.assertEqual("ubuntu-kube-1.35", self.group("late").image_id)
        self.capi_converges()
        self.status_task()
        self.assertEqual(({}, {}), (self.pins(), self.pins("late")))

    def test_beside_a_control_plane_that_goes_alone_it_follows_when_that_is_through(self) -> None:
        self.made()
        self.upgrade(self.next, "default-master")
        self.add_group("late", image_id="ubuntu-kube-1.35")
        self.assertEqual(PINS, self.pins("late"))
        self.capi_converges()
        self.status_task()
        self.assertEqual((PINS, {}), (self.pins(), self.pins("late")))

    def test_a_resize_meanwhile_releases_nobody(self) -> None:
        self.made()
        self.upgrade(self.next)
        self.resize(3)
        self.status_task()
        (entry,) = self.values["nodeGroups"]
        self.assertEqual((3, PINS), (entry["machineCount"], self.pins()))


class TestParts(UpgradeCase):
    def test_the_control_plane_alone(self) -> None:
        self.made()
        self.upgrade(self.next, "default-master")
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual(PINS, self.pins())
        self.assertIn(
            f"Nodegroup 'default-worker' runs Kubernetes v{OLD} of image image-1, and the control "
            f"plane Kubernetes v{NEW} of image image-2, until the cluster, or the nodegroup by its "
            "name, is upgraded.",
            self.notice(),
        )
        self.upgrade(self.next)
        self.assertNotIn("by its name, is upgraded", self.notice(), "it follows now")
        self.capi_converges()
        self.status_task()
        self.assertEqual({}, self.pins())
        self.assertNotIn("by its name, is upgraded", self.notice())

    def test_one_nodegroup_takes_the_image_that_now_has_the_name(self) -> None:
        self.made()
        self.add_group("more")
        self.capi_converges()
        self.status_task(2)
        self.cloud.images["ubuntu-kube"] = ("image-1b", OLD)
        self.assertEqual("", self.upgrade(self.template, "more"))
        self.assertEqual({**PINS, "machineImageId": "image-1b"}, self.pins("more"))
        self.assertEqual({}, self.pins())
        self.assertEqual("image-1", self.values["machineImageId"])
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_a_nodegroup_is_not_newer_than_its_control_plane(self) -> None:
        self.made()
        self.add_group("more")
        self.capi_converges()
        self.status_task(2)
        self.cloud.images["ubuntu-kube"] = ("image-1b", NEW)
        self.assertIn("Upgrade the cluster first", self.upgrade(self.template, "more"))


class TestRefusals(UpgradeCase):
    def refused(self, template: Any) -> str:
        """The refusal of an upgrade, which has changed nothing."""
        before = (self.rows(), self.helm.live(NAMESPACE, RELEASE), self.recorded())
        reason = self.upgrade(template)
        after = (self.rows(), self.helm.live(NAMESPACE, RELEASE), self.recorded())
        self.assertEqual(before, after)
        return reason

    def test_versions(self) -> None:
        self.made()
        for number, (version, words) in enumerate(
            (("1.33.9", "downgraded"), ("1.34.3", "downgraded"), ("1.36.0", "v1.35 first")), 3
        ):
            self.cloud.images[version] = ("image-3", version)
            self.assertIn(words, self.refused(self.template_of(version, number)))

    def test_an_image_that_does_not_say_what_it_holds(self) -> None:
        self.made()
        self.cloud.images["strange"] = ("image-3", "")
        self.assertIn("kube_version", self.refused(self.template_of("strange", 3)))

    def test_a_tag_and_an_image_that_differ(self) -> None:
        self.made()
        template = self.template_of("ubuntu-kube-1.35", 3, labels={"kube_tag": "v1.35.1"})
        self.assertIn("kube_tag", self.refused(template))

    def test_a_label_of_wrong_form(self) -> None:
        self.made()
        template = self.template_of("ubuntu-kube-1.35", 3, labels={"monitoring_enabled": "maybe"})
        self.assertIn("monitoring_enabled", self.refused(template))

    def test_a_template_of_another_driver(self) -> None:
        self.made()
        template = self.template_of("ubuntu-kube-1.35", 3, driver="heat")
        self.assertIn("'heat'", self.refused(template))

    def test_a_management_cluster_that_is_away(self) -> None:
        self.made()
        before = self.rows()
        self.kube.unreachable = True
        self.assertIn("management cluster", self.upgrade(self.next))
        self.assertEqual(before, self.rows())

    def test_what_helm_refuses(self) -> None:
        self.made()
        before = self.rows()
        self.helm.refusal = errors.DriverError("The chart does not take these values.")
        self.assertIn("does not take", self.upgrade(self.next))
        self.assertEqual((before, ()), (self.rows(), self.recorded()))


class TestRecovery(UpgradeCase):
    def test_a_busy_release_is_upgraded_by_a_later_pass(self) -> None:
        self.made()
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            self.assertEqual("", self.upgrade(self.next))
            self.assertEqual(OLD, self.values["kubernetesVersion"])
            self.assertEqual(self.template.uuid, self.cluster().cluster_template_id)
        self.status_task()
        self.assertEqual(NEW, self.values["kubernetesVersion"])
        self.assertEqual(self.next.uuid, self.cluster().cluster_template_id)

    def test_a_conductor_that_dies_after_helm(self) -> None:
        self.made()

        def die(_: Any) -> None:
            raise SystemExit

        self.helm.on_apply = die
        self.assertRaises(SystemExit, self.upgrade, self.next)
        self.helm.on_apply = None
        runs = len(self.helm.runs)
        self.status_task()
        self.assertEqual(runs, len(self.helm.runs), "Helm had it already")
        self.assertEqual(self.next.uuid, self.cluster().cluster_template_id)
        self.assertEqual(PINS, self.pins())

    def test_a_refusal_after_helm_has_moved_is_not_called_nothing(self) -> None:
        self.made()

        def refuse(_: Any) -> None:
            raise errors.DriverError("The management cluster refused a part of it.")

        self.helm.on_apply = refuse
        self.assertEqual("", self.upgrade(self.next))
        self.helm.on_apply = None
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.status_task()
        self.assertEqual(self.next.uuid, self.cluster().cluster_template_id)
        self.assertEqual(PINS, self.pins())

    def test_a_refusal_that_cannot_be_taken_off_the_record_is_none_yet(self) -> None:
        self.made()
        self.helm.refusal = errors.DriverError("The chart does not take these values.")
        away = errors.ManagementUnreachable("The management cluster does not answer.")
        leases = FailingLeases(self.kube, holder="test", lease_duration=60)
        whole, leases.finishing = self.ports, away
        self.ports = dataclasses.replace(self.ports, leases=leases)
        self.assertEqual("", self.upgrade(self.next))
        self.ports = whole
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.assertEqual(1, len(self.recorded()))
        self.helm.refusal = None
        self.status_task()
        self.assertEqual((NEW, PINS), (self.values["kubernetesVersion"], self.pins()))

    def test_a_template_that_was_deleted_before_the_upgrade_began(self) -> None:
        self.made()
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            self.upgrade(self.next)
        self.next.destroy()
        self.status_task()
        cluster = self.cluster()
        self.assertEqual("UPDATE_FAILED", cluster.status)
        self.assertIn("of the upgrade was deleted before the upgrade began.", cluster.status_reason)
        self.assertEqual((OLD, ()), (self.values["kubernetesVersion"], self.recorded()))

    def test_a_conductor_that_dies_before_the_rows_say_so(self) -> None:
        self.made()
        self.upgrade(self.next)
        cluster = self.cluster()
        cluster.status = "UPDATE_COMPLETE"
        cluster.save()
        self.health_task()
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)

    def test_workers_follow_also_after_the_time_was_over(self) -> None:
        self.made()
        self.upgrade(self.next)
        self.make_late()
        self.status_task()
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.assertIn("timeout", self.cluster().status_reason)
        self.capi_converges()
        self.health_task()
        self.assertEqual({}, self.pins())
        self.capi_converges()
        self.health_task()
        self.health_task()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual((), self.recorded())


class TestMachines(UpgradeCase):
    """New labels reach a nodegroup's machines with its new version, and no other nodegroup's."""

    def setUp(self) -> None:
        super().setUp()
        self.made()
        self.cloud.images["own"] = ("image-9", OLD)
        self.add_group("gpu", image_id="own")
        self.capi_converges()
        self.status_task(2)
        labels = {
            "boot_volume_size": "50",
            "kubelet_options": "--max-pods=64",
            "auto_healing_enabled": "false",
        }
        self.changed = self.template_of(
            "ubuntu-kube-1.35", 3, labels=labels, http_proxy="http://proxy.example.org:3128"
        )

    def machines(self, name: str) -> dict[str, Any]:
        """What decides about a nodegroup's machines, but for the version."""
        values = self.values
        (entry,) = (one for one in values["nodeGroups"] if one["name"] == name)
        whole = merge.merge(values["nodeGroupDefaults"], entry)
        found = {key: value for key, value in whole.items() if key not in PINS}
        return {**found, "proxy": values.get("proxy")}

    def test_the_control_plane_alone_leaves_the_workers_alone(self) -> None:
        before = self.machines("default-worker"), self.machines("gpu")
        self.assertEqual("", self.upgrade(self.changed, "default-master"))
        self.capi_converges()
        self.status_task(2)
        self.assertEqual(before, (self.machines("default-worker"), self.machines("gpu")))
        self.assertEqual({"diskSize": 50}, self.values["controlPlane"]["machineRootVolume"])

    def test_workers_take_everything_at_once_and_others_nothing(self) -> None:
        worker, gpu = self.machines("default-worker"), self.machines("gpu")
        self.assertEqual("", self.upgrade(self.changed, batch=2))
        self.status_task()
        self.assertEqual((worker, gpu), (self.machines("default-worker"), self.machines("gpu")))
        self.capi_converges()
        self.status_task()
        self.assertEqual({}, self.pins())
        after = self.machines("default-worker")
        self.assertEqual({"diskSize": 50}, after["machineRootVolume"])
        self.assertIs(False, after["healthCheck"]["enabled"])
        self.assertIn("kubeadmConfigSpec", after)
        self.assertEqual({"http": "http://proxy.example.org:3128"}, after["proxy"])
        self.assertEqual({"rollingUpdate": {"maxUnavailable": 2}}, after["rolloutStrategy"])
        self.assertEqual({**gpu, "proxy": after["proxy"]}, self.machines("gpu"))

    def test_who_was_left_out_takes_it_when_upgraded_by_name(self) -> None:
        self.upgrade(self.changed)
        self.finished()
        self.assertIn("not applied yet to the machines of 'gpu'", self.notice())
        self.assertEqual("", self.upgrade(self.changed, "gpu"))
        self.assertEqual({}, self.pins("gpu"))
        self.assertNotIn("'gpu'", self.notice())
        self.assertEqual({"diskSize": 50}, self.machines("gpu")["machineRootVolume"])
        self.finished()
        before = self.machines("default-worker"), self.machines("gpu")
        self.assertEqual("", self.upgrade(self.next))
        self.finished()
        after = self.machines("default-worker"), self.machines("gpu")
        for old, new in zip(before, after, strict=True):
            self.assertNotEqual(old, new)
            self.assertNotIn("machineRootVolume", new)
            self.assertIsNone(new["proxy"])
        self.assertEqual((), self.ports.leases.read(NAMESPACE, RELEASE).deferred)

    def test_workers_take_it_with_the_upgrade_after_that_of_the_control_plane(self) -> None:
        self.upgrade(self.changed, "default-master")
        self.finished()
        self.assertEqual("", self.upgrade(self.changed))
        self.finished()
        after = self.machines("default-worker")
        self.assertEqual({"diskSize": 50}, after["machineRootVolume"])
        self.assertEqual({"http": "http://proxy.example.org:3128"}, after["proxy"])

    def test_a_new_nodegroup_has_the_new_labels(self) -> None:
        self.upgrade(self.changed, "default-master")
        self.finished()
        self.add_group("more")
        self.assertEqual({"diskSize": 50}, self.machines("more")["machineRootVolume"])
        self.assertNotIn("machineRootVolume", self.machines("default-worker"))

    def test_a_conductor_that_dies_when_the_rows_follow_forgets_nothing(self) -> None:
        leases = FailingLeases(self.kube, holder="test", lease_duration=60)
        whole, leases.additions = self.ports, 1
        self.ports = dataclasses.replace(self.ports, leases=leases)
        self.assertRaises(KeyboardInterrupt, self.upgrade, self.changed)
        self.ports = whole
        self.assertEqual(self.changed.uuid, self.cluster().cluster_template_id)
        self.status_task()
        self.finished()
        self.assertEqual({"diskSize": 50}, self.machines("default-worker")["machineRootVolume"])

    def test_a_conductor_that_dies_between_helm_and_the_record(self) -> None:
        def die(*_: Any) -> None:
            raise SystemExit

        self.helm.on_apply = die
        self.assertRaises(SystemExit, self.upgrade, self.changed)
        self.helm.on_apply = None
        before = self.machines("default-worker"), self.machines("gpu")
        self.status_task()
        self.assertEqual(before, (self.machines("default-worker"), self.machines("gpu")))
        self.capi_converges()
        self.helm.on_apply = die
        self.assertRaises(SystemExit, self.status_task)
        self.helm.on_apply = None
        self.assertEqual({"default-worker"}, self.owed_to("default-worker"))
        runs = len(self.helm.runs)
        self.status_task()
        self.assertEqual((set(), runs), (self.owed_to("default-worker"), len(self.helm.runs)))
        self.assertEqual({"diskSize": 50}, self.machines("default-worker")["machineRootVolume"])
        self.finished()

    def test_a_nodegroup_that_comes_meanwhile_moves_once(self) -> None:
        self.upgrade(self.changed)
        self.add_group("late", image_id="ubuntu-kube-1.35")
        before = self.machines("late")
        self.assertEqual((PINS, {"diskSize": 50}), (self.pins("late"), before["machineRootVolume"]))
        self.capi_converges()
        self.status_task()
        released = self.machines("late")
        self.assertEqual({**before, "proxy": released["proxy"]}, released)
        self.assertEqual({}, self.pins("late"))
        self.finished()
        self.assertEqual(released, self.machines("late"))

    def test_what_the_chart_will_refuse_of_workers_is_refused_before(self) -> None:
        def refuses(values: dict[str, Any]) -> errors.DriverError | None:
            said = [values["nodeGroupDefaults"], *values["nodeGroups"]]
            wrong = any("machineRootVolume" in one for one in said)
            return errors.ValuesRefused("The disk is too big.", "", ()) if wrong else None

        self.helm.refuses = refuses
        before, runs = self.rows(), len(self.helm.runs)
        self.assertIn("too big", self.upgrade(self.changed))
        self.assertEqual((before, (), runs), (self.rows(), self.recorded(), len(self.helm.runs)))
        self.assertEqual("", self.upgrade(self.changed, "default-master"))

    def test_a_chart_that_cannot_be_looked_at_is_taken(self) -> None:
        self.helm.check_refusal = errors.HelmRefused("The chart needs a management cluster.")
        self.assertEqual("", self.upgrade(self.changed))

    def test_what_was_refused_is_owed_to_nobody(self) -> None:
        self.helm.refusal = errors.DriverError("The chart does not take these values.")
        self.assertIn("does not take", self.upgrade(self.changed))
        self.assertEqual((), self.ports.leases.read(NAMESPACE, RELEASE).deferred)

    def owed_to(self, *names: str) -> set[str]:
        """Which of these nodegroups wait for something."""
        owing = self.ports.leases.read(NAMESPACE, RELEASE).deferred
        return {name for name in names for one in owing if name in one.groups}

    def finished(self) -> None:
        """Let an upgrade come to its end."""
        for _ in range(2):
            self.capi_converges()
            self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)


class TestValues(UpgradeCase):
    """What an upgrade changes is what the templates differ in."""

    def test_the_configuration_of_today_does_not_come_along(self) -> None:
        self.made()
        before = self.values
        self.config(group="capi_helm", server_start_timeout=77)
        CONF.set_override("monitoring_enabled", True, group="capi_helm_cluster_labels")
        self.addCleanup(CONF.clear_override, "monitoring_enabled", "capi_helm_cluster_labels")
        self.upgrade(self.next)
        self.capi_converges()
        self.status_task()
        wanted = {**before, "kubernetesVersion": NEW, "machineImageId": "image-2"}
        self.assertEqual(wanted, self.values)

    def test_labels_follow_unless_the_tenant_set_them(self) -> None:
        old = {"monitoring_enabled": "false", "auto_healing_enabled": "true", "x": "dropped"}
        self.template.labels = old
        self.template.save()
        mine = {"monitoring_enabled": "false", "auto_healing_enabled": "false"}
        self.made(labels=mine)
        new = {**old, "monitoring_enabled": "true", "boot_volume_size": "20"}
        self.assertEqual("", self.upgrade(self.template_of("ubuntu-kube-1.35", 3, labels=new)))
        self.assertEqual(
            {
                "monitoring_enabled": "true",
                "auto_healing_enabled": "false",
                "boot_volume_size": "20",
            },
            self.cluster().labels,
        )
        values = self.values
        self.assertEqual({"enabled": True}, values["addons"]["monitoring"])
        self.assertIs(False, values["controlPlane"]["healthCheck"]["enabled"])
        self.assertEqual({"diskSize": 20}, values["controlPlane"]["machineRootVolume"])

    def test_what_cannot_be_changed_stays(self) -> None:
        self.made()
        before = self.values
        labels = {"octavia_provider": "ovn", "fixed_subnet_cidr": "10.9.0.0/24"}
        template = self.template_of(
            "ubuntu-kube-1.35",
            3,
            labels=labels,
            network_driver="cilium",
            external_network_id="other",
        )
        self.assertEqual("", self.upgrade(template))
        for section in ("clusterNetworking", "apiServer", "addons"):
            self.assertEqual(before[section], self.values[section], section)
        self.assertEqual({}, self.cluster().labels)

    def test_storage_classes_are_only_added(self) -> None:
        self.made()
        before = self.values["addons"]["openstack"]["csiCinder"]
        self.cloud.volume_types = ("new", "fast")
        self.upgrade(self.next)
        after = self.values["addons"]["openstack"]["csiCinder"]
        self.assertEqual(before["defaultStorageClass"], after["defaultStorageClass"])
        names_ = [one["name"] for one in after["additionalStorageClasses"]]
        self.assertEqual(1, len(names_))
        self.assertIn("new", names_[0])

    def test_the_chart_is_the_one_that_is_wanted_now(self) -> None:
        self.made()
        live = self.helm.releases[NAMESPACE, RELEASE]
        # Nobody has this one any more; only what keeps the chart would need it.
        old = dataclasses.replace(live, chart_version="0.9.0")
        self.helm.releases[NAMESPACE, RELEASE] = old
        self.ports.leases.remember(NAMESPACE, RELEASE, chart_digest="of another chart")
        self.assertEqual("", self.upgrade(self.next))
        after = self.helm.live(NAMESPACE, RELEASE)
        self.assertEqual(live.chart_version, after.chart_version)
        self.assertEqual(NEW, after.values["kubernetesVersion"])
