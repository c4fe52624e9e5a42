# SPDX-License-Identifier: Apache-2.0
"""``explain`` says of each label and field what is in force, whence, and what it rolls."""

from __future__ import annotations

import pathlib
from typing import Any

import fixtures

from magnum.drivers.k8s_capi_helm import labels
from magnum.drivers.k8s_capi_helm.commands.explain import effects
from magnum.drivers.k8s_capi_helm.conf import LABELS_GROUP
from magnum.drivers.k8s_capi_helm.labels import ChangeTime, LabelScope
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    OK,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import CONF, NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

Row = dict[str, Any]


class ExplainCase(CommandCase):
    def rows(self, *argv: str, status: int = OK) -> list[Row]:
        printed = self.command("explain", "demo", *argv, "-f", "json")
        self.assertEqual(status, printed.status, printed.out + printed.error)
        self.assertEqual("", printed.error)
        return printed.rows()

    def one(self, name: str, status: int = OK, where: str = "cluster") -> Row:
        """The row of a label or field, with the same answer whether it is asked for alone."""
        [row] = [row for row in self.rows(name, status=status) if row["Where"] == where]
        return row


class TestLabels(ExplainCase):
    def assert_source(self, name: str, value: str, source: str, status: int = OK) -> Row:
        row = self.one(name, status)
        self.assertEqual((value, source), (row["Value"], row["Source"]))
        return row

    def test_every_label_has_a_row(self) -> None:
        self.made()
        rows = self.rows()
        listed = [row["Name"] for row in rows if row["Where"] == "cluster"]
        self.assertEqual([label.name for label in labels.REGISTRY], listed[: len(labels.REGISTRY)])
        self.assertNotIn("Values", rows[0])
        self.assertIn("Values", self.rows("--long")[0])

    def test_a_default_of_the_driver_and_of_the_chart(self) -> None:
        self.made()
        self.assert_source("octavia_provider", "amphora", "default of the driver")
        self.assert_source("dns_cluster_domain", "", "default of the chart")
        self.assert_source("kube_tag", "", "image of the cluster template")

    def test_a_label_of_the_cluster_and_of_its_template(self) -> None:
        self.template.labels = {"boot_volume_size": "40"}
        self.template.save()
        self.made(labels={"boot_volume_size": "40", "boot_volume_type": "fast"})
        self.assert_source("boot_volume_size", "40", "label of the cluster template")
        self.assert_source("boot_volume_type", "fast", "label of the cluster")

    def test_an_option_of_the_operator(self) -> None:
        self.config(group=LABELS_GROUP.name, csi_cinder_fstype="xfs")
        self.made()
        source = "option [capi_helm_cluster_labels] csi_cinder_fstype"
        self.assert_source("csi_cinder_fstype", "xfs", source)

    def test_an_option_is_named_with_its_file(self) -> None:
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "magnum.conf"
        path.write_text("[capi_helm_cluster_labels]\nmax_node_count = 7\n")
        self.made()
        self.addCleanup(CONF, [], project="magnum", default_config_files=[])
        CONF([], project="magnum", default_config_files=[str(path)])
        row = self.one("max_node_count")
        self.assertEqual(
            f"option [capi_helm_cluster_labels] max_node_count in {path}", row["Source"]
        )

    def test_an_option_of_magnums_own(self) -> None:
        self.made()
        if "cinder" in CONF:
            self.config(group="cinder", default_boot_volume_size=30)
            row = self.one("boot_volume_size")
            self.assertEqual("option [cinder] default_boot_volume_size", row["Source"])

    def test_a_new_default_reaches_no_cluster_that_exists(self) -> None:
        self.made(labels={"boot_volume_size": "40"})
        self.config(group=LABELS_GROUP.name, csi_cinder_fstype="xfs")
        row = self.one("csi_cinder_fstype", WARNING)
        self.assertEqual("xfs", row["Value"])
        self.assertIn("The release was made with 'ext4' and keeps it", row["Notice"])

    def test_what_rollouts_read_is_in_force_at_once(self) -> None:
        """No release has it, so a new default of the site counts for clusters that exist."""
        self.made(labels={"boot_volume_size": "40"})
        self.assert_source("maintenance_window", "", "default of the driver")
        self.config(group=LABELS_GROUP.name, maintenance_window="sun 02:00-04:00")
        source = "option [capi_helm_cluster_labels] maintenance_window"
        row = self.assert_source("maintenance_window", "Sun 02:00-04:00", source)
        self.assertEqual(("nothing", ""), (row["Rolls"], row["Notice"]))

    def test_an_overlay(self) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        text = "addons:\n  metricsServer:\n    enabled: false\n"
        (directory / "site.yaml").write_text(text)
        self.config(group="capi_helm", overlay_directory=str(directory))
        self.made()
        row = self.one("metrics_server_enabled")
        self.assertEqual("addons.metricsServer.enabled=False", row["Value"])
        self.assertEqual(
            f"overlay 'site' ({directory}/site.yaml, line 3, key addons.metricsServer.enabled)",
            row["Source"],
        )

    def test_a_label_wins_over_an_overlay(self) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (directory / "site.yaml").write_text("addons: {metricsServer: {enabled: false}}\n")
        self.config(group="capi_helm", overlay_directory=str(directory))
        self.made(labels={"metrics_server_enabled": "true"})
        self.assert_source("metrics_server_enabled", "true", "label of the cluster")

    def test_paths_objects_and_rolls(self) -> None:
        self.made(masters=3, workers=2)
        row = self.one("boot_volume_size")
        self.assertIn("controlPlane.machineRootVolume.diskSize", row["Values"])
        self.assertIn("OpenStackMachineTemplate NODEGROUP", row["Objects"])
        self.assertEqual("with an upgrade", row["Changes"])
        self.assertEqual("control plane (3), default-worker (2)", row["Rolls"])
        self.assertEqual("nothing", self.one("metrics_server_enabled")["Rolls"])
        self.assertEqual(
            ("only when it is created", ""),
            tuple(self.one("octavia_provider")[key] for key in ("Changes", "Rolls")),
        )

    def test_a_nodegroup_with_its_own(self) -> None:
        self.made()
        self.add_group("blue", labels={"availability_zone": "az-2"})
        rows = self.rows("availability_zone")
        self.assertEqual(["cluster", "nodegroup blue"], [row["Where"] for row in rows])
        self.assertEqual("az-2", rows[1]["Value"])
        self.assertEqual("default-worker (1)", rows[0]["Rolls"])
        self.assertEqual("nodeGroupDefaults.failureDomain", rows[1]["Values"])

    def test_an_old_name(self) -> None:
        self.made(labels={"master_lb_allowed_cidrs": "192.0.2.0/24"})
        for name in ("master_lb_allowed_cidrs", "api_master_lb_allowed_cidrs"):
            row = self.assert_source(name, "192.0.2.0/24", "label of the cluster", WARNING)
            self.assertIn("is an old name: use 'api_master_lb_allowed_cidrs'", row["Notice"])

    def test_what_has_no_effect_is_said_in_the_drivers_words(self) -> None:
        self.made(
            labels={
                "boot_volume_sise": "40",
                "grafana_tag": "1",
                "my_own": "x",
                "etcd_blockdevice_type": "local",
            }
        )
        self.health_task()
        shown = self.cluster().health_status_reason["notice"]
        for name in ("boot_volume_sise", "grafana_tag", "my_own", "etcd_blockdevice_type"):
            row = self.one(name, WARNING)
            self.assertIn(name, row["Notice"])
            self.assertIn(row["Notice"].split(":")[0], shown)

    def test_a_label_of_another_driver_that_is_not_set(self) -> None:
        self.made()
        row = self.one("autoscaler_tag")
        self.assertIn("in the version that this cloud's operator sets", row["Notice"])
        self.assertIn("It needs a filter", self.one("different_failure_domain")["Notice"])

    def test_a_misspelt_name(self) -> None:
        self.made()
        printed = self.command("explain", "demo", "boot_volume_sise")
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))
        self.assertIn("The nearest names: boot_volume_size", printed.error)
        printed = self.command("explain", "demo", "0000")
        self.assertEqual(UNKNOWN, printed.status)


class TestRecord(ExplainCase):
    """What the records and the declarations say agree."""

    def test_each_label_that_moves_values_is_on_record(self) -> None:
        recorded = set(effects.label_effects())
        self.assertEqual(
            {
                label.name
                for label in labels.REGISTRY
                if LabelScope.CLUSTER in label.scopes and not label.is_for_rollouts
            },
            recorded,
        )

    def test_each_path_has_a_row_of_what_it_rolls(self) -> None:
        known = [*effects.label_effects().values(), *effects.field_effects().values()]
        for effect in at_least_one(known):
            for path in at_least_one(effect.values):
                self.assertTrue(effects.rows(path), path)

    def test_what_the_objects_do_not_let_change_an_upgrade_does_not_change(self) -> None:
        for name, effect in at_least_one(effects.label_effects().items()):
            if effects.FIXED in effects.replaced_parts(effect.values):
                self.assertEqual(ChangeTime.NEVER, labels.BY_NAME[name].change_time, name)

    def test_paths_below_and_above_a_row(self) -> None:
        for path, found in (
            ("nodeGroups[].machineCount", set()),
            ("nodeGroups[].machineFlavor", {effects.NODEGROUPS}),
            ("nodeGroupDefaults.machineRootVolume.volumeType", {effects.NODEGROUPS}),
            ("addons.monitoring.enabled", set()),
            ("controlPlane.kubeadmConfigSpec.a[].b", {effects.CONTROL_PLANE}),
            ("proxy.http", {effects.CONTROL_PLANE, effects.NODEGROUPS}),
            ("kubeNetwork.pods.cidrBlocks[]", {effects.FIXED}),
        ):
            self.assertEqual(found, effects.replaced_parts([path]), path)


class TestFields(ExplainCase):
    def test_fields_of_template_cluster_and_nodegroups(self) -> None:
        self.template.dns_nameserver = "192.0.2.53, 192.0.2.54"
        self.template.save()
        self.made(masters=3, keypair="mine", docker_volume_size=20)
        row = self.one("dns_nameserver", where="cluster template")
        self.assertEqual(("192.0.2.53,192.0.2.54", "nothing"), (row["Value"], row["Rolls"]))
        self.assertEqual("with an upgrade", row["Changes"])
        self.assertEqual("mine", self.one("keypair")["Value"])
        self.assertEqual(
            "clusterNetworking.externalNetworkId",
            self.one("external_network_id", where="cluster template")["Values"],
        )
        row = self.one("flavor_id", where="nodegroup default-master")
        self.assertEqual(("small", "controlPlane.machineFlavor"), (row["Value"], row["Values"]))
        row = self.one("docker_volume_size", where="nodegroup default-worker")
        self.assertEqual(("20", "nodegroup"), (row["Value"], row["Source"]))
        row = self.one("node_count", where="nodegroup default-worker")
        self.assertEqual(
            ("1", "at any time", "nothing"), (row["Value"], row["Changes"], row["Rolls"])
        )

    def test_a_change_that_rolls_one_nodegroup(self) -> None:
        self.made(workers=2)
        self.add_group("blue", count=3)
        row = self.one("node_taints", where="nodegroup blue")
        self.assertEqual(("at any time", "blue (3)"), (row["Changes"], row["Rolls"]))
        row = self.one("image_id", where="cluster template")
        self.assertEqual("control plane (1), default-worker (2), blue (3)", row["Rolls"])

    def test_where_a_fields_value_comes_from(self) -> None:
        self.config(group="capi_helm", ignore_keypairs=True)
        self.made(keypair="mine", labels={"master_lb_floating_ip_enabled": "false"})
        row = self.one("keypair", WARNING)
        self.assertEqual(("", "option [capi_helm] ignore_keypairs"), (row["Value"], row["Source"]))
        row = self.one("floating_ip_enabled")
        self.assertEqual(
            ("false", "label master_lb_floating_ip_enabled"), (row["Value"], row["Source"])
        )

    def test_bounds_of_a_label(self) -> None:
        self.made(labels={"auto_scaling_enabled": "true", "max_node_count": "4"})
        row = self.one("max_node_count", where="nodegroup default-worker")
        self.assertEqual(("4", "label max_node_count"), (row["Value"], row["Source"]))

    def test_a_field_without_effect(self) -> None:
        self.template.network_driver = "flannel"
        self.template.save()
        self.made()
        row = self.one("network_driver", WARNING, where="cluster template")
        self.assertEqual(("calico", "the driver"), (row["Value"], row["Source"]))
        self.assertIn("network_driver 'flannel' is not available", row["Notice"])
        self.assertIn("Magnum copies it", self.one("master_flavor_id")["Notice"])


class TestHostile(ExplainCase):
    def test_a_cluster_of_another_driver(self) -> None:
        cluster = self.made()
        cluster.stack_id = "kube-abcde"
        cluster.save()
        printed = self.command("explain", "demo")
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))
        self.assertIn("was not created by this driver", printed.error)

    def test_a_cluster_without_a_release(self) -> None:
        self.create(labels={"boot_volume_size": "huge"})
        row = self.one("boot_volume_size", WARNING)
        self.assertEqual("0", row["Value"])
        self.assertIn("Label 'boot_volume_size' has the value 'huge' and no effect", row["Notice"])

    def test_a_management_cluster_that_is_away(self) -> None:
        self.made(labels={"boot_volume_size": "40"})
        self.helm.refusal = None
        self.helm.live = self.unreachable  # type: ignore[method-assign]
        printed = self.command("explain", "demo", "boot_volume_size", "-f", "json")
        self.assertEqual(UNKNOWN, printed.status)
        self.assertIn("connection refused", printed.error)
        self.assertEqual("40", printed.rows()[0]["Value"])

    def unreachable(self, namespace: str, release: str) -> Any:
        self.kube.unreachable = True
        return self.kube.get(names.LEASE, namespace, names.lease(release))

    def test_texts_of_tenants_do_nothing_to_the_terminal(self) -> None:
        self.made(labels={"my\x1b[2J": "a\x1b]0;b\x07\u202e\nc"})
        printed = self.command("explain", "demo", "-f", "value")
        self.assertIn("my?[2J", printed.out)
        self.assertIn("a?]0;b?? c label of the cluster", printed.out)
        self.assertTrue(printed.out.replace("\n", "").isprintable())
        error = self.command("explain", "demo", "\x1b[2J").error
        self.assertTrue(error.replace("\n", "").isprintable())

    def test_no_secret_is_printed(self) -> None:
        self.made(labels={"grafana_admin_passwd": "none", "my_token": "tell-nobody"})
        printed = self.command("explain", "demo", "-f", "value")
        self.assertNotIn("tell-nobody", printed.out + printed.error)
        self.assertIn("my_token cluster *** label of the cluster", printed.out)

    def test_nothing_is_changed(self) -> None:
        self.made(labels={"my_own": "x"})
        before = (list(self.kube.everything()), self.cluster().as_dict())
        self.kube.calls.clear()
        self.command("explain", "demo")
        self.assertEqual(before, (list(self.kube.everything()), self.cluster().as_dict()))
        self.assertLessEqual({verb for verb, _, _, _ in self.kube.calls}, {"get", "list"})
        self.assertEqual([], [run for run in self.helm.runs if run[1] != RELEASE])
        self.assertIsNotNone(self.helm.live(NAMESPACE, RELEASE))
